// Package mcpclient calls tools of a Model Context Protocol server on this machine's
// loopback, over its streamable HTTP transport. It goes nowhere else: no proxy, no
// redirect, no name that is resolved.
package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Bounds.
const (
	maxAnswer = 16 << 20
	maxPages  = 32
)

const protocolVersion = "2025-06-18"

// Tool is one that a server has.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Content is a part of what a tool returned; Raw is all of it.
type Content struct {
	Type, Text, Data, MIME string
	Raw                    json.RawMessage
}

// Client is one server. It is safe for concurrent use. It greets the server before the
// first call.
type Client struct {
	url, as string
	headers map[string]string
	http    *http.Client
	ids     atomic.Int64
	greets  chan struct{} // has one token: held while greeting

	mu               sync.Mutex // guards what follows
	session, version string
	begun            bool
}

// New makes a client of a server at an http URL of the loopback. as is its version.
func New(address string, headers map[string]string, as string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.User != nil || !loopback(u.Hostname()) {
		return nil, thole.Errorf(thole.CodeInvalid, "%q is not an http address of this machine's loopback", address).WithHint("use http://127.0.0.1:PORT/…")
	}
	return &Client{url: u.String(), as: as, headers: headers, greets: make(chan struct{}, 1), http: &http.Client{
		Transport:     &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 2},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// dial connects to the loopback alone; localhost is not looked up.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	if host != "localhost" {
		return d.DialContext(ctx, network, address)
	}
	c, err := d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		if six, also := d.DialContext(ctx, network, net.JoinHostPort("::1", port)); also == nil {
			return six, nil
		}
	}
	return c, err
}

// begin greets the server, once.
func (c *Client) begin(ctx context.Context) error {
	select {
	case c.greets <- struct{}{}:
		defer func() { <-c.greets }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	begun := c.begun
	c.mu.Unlock()
	if begun {
		return nil
	}
	var hello struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	err := c.call(ctx, "initialize", map[string]any{
		"protocolVersion": protocolVersion, "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "thole", "version": c.as},
	}, &hello)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.version = hello.ProtocolVersion
	c.mu.Unlock()
	resp, err := c.post(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.begun = true
	c.mu.Unlock()
	return resp.Body.Close()
}

// Tools lists what the server has.
func (c *Client) Tools(ctx context.Context) (all []Tool, err error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	params := map[string]any{}
	for range maxPages {
		var page struct {
			Tools []Tool `json:"tools"`
			Next  string `json:"nextCursor"`
		}
		if err := c.call(ctx, "tools/list", params, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if page.Next == "" {
			return all, nil
		}
		params["cursor"] = page.Next
	}
	return nil, thole.Errorf(thole.CodeInvalid, "its list of tools has more than %d pages", maxPages)
}

// Call calls a tool. failed says that the tool itself reports a failure.
func (c *Client) Call(ctx context.Context, tool string, input json.RawMessage) (content []Content, failed bool, err error) {
	if err := c.begin(ctx); err != nil {
		return nil, false, err
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	var out struct {
		Content []json.RawMessage `json:"content"`
		IsError bool              `json:"isError"`
	}
	if err := c.call(ctx, "tools/call", map[string]any{"name": tool, "arguments": input}, &out); err != nil {
		return nil, false, err
	}
	for _, raw := range out.Content {
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
			Data string `json:"data"`
			MIME string `json:"mimeType"`
		}
		if err := strictjson.Unmarshal(raw, &part); err != nil {
			return nil, false, thole.Errorf(thole.CodeInvalid, "the result of %s cannot be read: %w", tool, err)
		}
		content = append(content, Content{part.Type, part.Text, part.Data, part.MIME, raw})
	}
	return content, out.IsError, nil
}

// answer is a response of JSON-RPC.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (c *Client) call(ctx context.Context, method string, params, out any) error {
	id := c.ids.Add(1)
	resp, err := c.post(ctx, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	want, _ := json.Marshal(id)
	a, err := read(resp, want)
	switch {
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "%s: %w", method, err)
	case a.Error != nil:
		return thole.Errorf(thole.CodeUnavailable, "%s: %s", method, a.Error.Message)
	}
	if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
		c.mu.Lock()
		c.session = s
		c.mu.Unlock()
	}
	if err := strictjson.Unmarshal(a.Result, out); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "%s: its answer cannot be read: %w", method, err)
	}
	return nil
}

func (c *Client) post(ctx context.Context, message any) (*http.Response, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "encode a request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "make a request: %w", err)
	}
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.mu.Lock()
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.version != "" {
		req.Header.Set("Mcp-Protocol-Version", c.version)
	}
	c.mu.Unlock()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "the server does not answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		_ = resp.Body.Close()
		return nil, thole.Errorf(thole.CodeUnavailable, "the server answers %s", resp.Status)
	}
	return resp, nil
}

// read takes the response with an id from a body, which is one message or a stream of them.
func read(resp *http.Response, id []byte) (answer, error) {
	body := io.LimitReader(resp.Body, maxAnswer)
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		var a answer
		raw, err := io.ReadAll(body)
		if err == nil {
			err = strictjson.Unmarshal(raw, &a)
		}
		if err == nil && !bytes.Equal(a.ID, id) {
			err = thole.Errorf(thole.CodeUnavailable, "the server answered another request")
		}
		return a, err
	}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxAnswer)
	var data strings.Builder
	for lines.Scan() {
		line := lines.Text()
		if more, ok := strings.CutPrefix(line, "data:"); ok {
			data.WriteString(strings.TrimPrefix(more, " ") + "\n")
			continue
		}
		if line != "" || data.Len() == 0 {
			continue
		}
		var a answer
		if err := strictjson.Unmarshal([]byte(data.String()), &a); err != nil {
			return a, err
		}
		if data.Reset(); a.Method == "" && bytes.Equal(a.ID, id) {
			return a, nil
		}
	}
	if err := lines.Err(); err != nil {
		return answer{}, err
	}
	return answer{}, io.ErrUnexpectedEOF
}
