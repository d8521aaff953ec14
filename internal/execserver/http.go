//go:build linux

package execserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

// httpBody bounds an answer that is not streamed: encoded it must fit a message.
const httpBody = 47 << 20

// httpChunk is the most that is read of a body at once.
const httpChunk = 64 << 10

// secretVars may not leave the executor in a header.
var secretVars = []string{
	"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CONNECTORS_TOKEN",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET",
	"AZURE_FEDERATED_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS",
}

// httpStreams are the bodies a connection is streaming.
type httpStreams struct {
	mu     sync.Mutex
	active map[string]bool
	count  int
}

// enter takes a place among the requests under way and, for a stream, its id.
func (h *httpStreams) enter(id string, stream bool) *jsonrpc.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count >= httpRequests {
		return jsonrpc.Overloaded()
	}
	if stream && h.active[id] {
		return jsonrpc.Errorf(exec.CodeInvalidParams, "http/request streamResponse requestId `%s` is already active", id)
	}
	h.count++
	if stream {
		if h.active == nil {
			h.active = map[string]bool{}
		}
		h.active[id] = true
	}
	return nil
}

func (h *httpStreams) leave(id string, stream bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	if stream {
		delete(h.active, id)
	}
}

func (c *conn) httpRequest(req *jsonrpc.Request) {
	var p exec.HTTPRequestParams
	if e := decode(req.Params, &p); e != nil {
		_ = req.Error(e)
		return
	}
	ctx, cancel := c.rpc.Context(), func() {}
	if p.TimeoutMs != nil {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(min(*p.TimeoutMs, 1<<40))*time.Millisecond)
	}
	hreq, e := c.srv.buildHTTP(ctx, &p)
	if e == nil {
		e = c.https.enter(p.RequestID, p.StreamResponse)
	}
	if e != nil {
		cancel()
		_ = req.Error(e)
		return
	}
	room := int64(len(req.Params)) + copies*httpChunk
	if !c.ses.held.bodies.take(room) {
		cancel()
		c.https.leave(p.RequestID, p.StreamResponse)
		_ = req.Error(jsonrpc.Overloaded())
		return
	}
	c.wg.Go(func() {
		defer cancel()
		defer c.https.leave(p.RequestID, p.StreamResponse)
		defer c.ses.held.bodies.give(room)
		c.sendHTTP(req, &p, hreq)
	})
}

func (s *Server) buildHTTP(ctx context.Context, p *exec.HTTPRequestParams) (*http.Request, *jsonrpc.Error) {
	if p.Method == "" || strings.ContainsFunc(p.Method, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
		return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "http/request method is invalid: invalid HTTP method")
	}
	u, err := url.Parse(p.URL)
	switch {
	case err != nil || u.Scheme == "":
		return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "http/request url is invalid: relative URL without a base")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "http/request only supports http and https URLs, got %s", u.Scheme)
	case u.Host == "":
		return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "http/request url is invalid: empty host")
	case p.RedirectPolicy != "" && p.RedirectPolicy != "follow" && p.RedirectPolicy != "stop":
		return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "unknown variant `%s`, expected `follow` or `stop`", p.RedirectPolicy)
	}
	hreq, err := http.NewRequestWithContext(ctx, p.Method, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return nil, invalid(err)
	}
	hreq.Header["User-Agent"] = nil
	for _, h := range p.Headers {
		value := h.Value
		if h.ValueEnvVar != nil {
			v, e := s.headerVar(h.Name, *h.ValueEnvVar)
			if e != nil {
				return nil, e
			}
			value += v
		}
		if !validHeader(h.Name, value) {
			return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "http/request header %s is invalid", h.Name)
		}
		if strings.EqualFold(h.Name, "host") {
			hreq.Host = value
			continue
		}
		hreq.Header.Add(h.Name, value)
	}
	if hreq.Header.Get("Accept") == "" {
		hreq.Header.Set("Accept", "*/*")
	}
	return hreq, nil
}

func (s *Server) headerVar(header, name string) (string, *jsonrpc.Error) {
	upper := strings.ToUpper(name)
	if slices.Contains(secretVars, upper) || slices.Contains(scrubbedNames, upper) {
		return "", jsonrpc.Errorf(exec.CodeInvalidParams, "http/request header %s cannot use executor environment variable %s", header, name)
	}
	v := lookup(s.cfg.Environ, name)
	if v == "" {
		return "", jsonrpc.Errorf(exec.CodeInvalidParams, "http/request header %s requires executor environment variable %s", header, name)
	}
	return v, nil
}

func validHeader(name, value string) bool {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// httpTransport sends what the request has: no compression of its own, no user agent.
var httpTransport = sync.OnceValue(func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	return t
})

// followRedirect follows ten and names to another origin only the origin it came from, not
// the page.
func followRedirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("too many redirects")
	}
	from := via[len(via)-1].URL
	if next.Header.Get("Referer") != "" && (from.Scheme != next.URL.Scheme || from.Host != next.URL.Host) {
		next.Header.Set("Referer", from.Scheme+"://"+from.Host+"/")
	}
	return nil
}

func (c *conn) sendHTTP(req *jsonrpc.Request, p *exec.HTTPRequestParams, hreq *http.Request) {
	client := http.Client{Transport: httpTransport(), CheckRedirect: followRedirect}
	if p.RedirectPolicy == "stop" {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := client.Do(hreq)
	if err != nil {
		_ = req.Error(jsonrpc.Errorf(exec.CodeInternal, "http/request failed: %s", httpCause(err)))
		return
	}
	defer resp.Body.Close()
	res := exec.HTTPRequestResult{Status: resp.StatusCode, Headers: headerList(resp), Body: []byte{}}
	if p.StreamResponse {
		_ = req.Reply(res)
		c.streamBody(p.RequestID, resp.Body)
		return
	}
	var taken int64
	res.Body, taken, err = readBody(resp.Body, &c.ses.held.bodies)
	defer c.ses.held.bodies.give(taken)
	if errors.Is(err, errNoRoom) {
		_ = req.Error(jsonrpc.Overloaded())
		return
	}
	if err != nil {
		_ = req.Error(jsonrpc.Errorf(exec.CodeInternal, "http/request failed: %s", err))
		return
	}
	_ = req.Reply(res)
}

// errNoRoom: other bodies take all the memory there is for them.
var errNoRoom = errors.New("no room for the body")

// readBody reads a body and takes room for it as it grows; taken is to be given back.
func readBody(body io.Reader, room *budget) (data []byte, taken int64, err error) {
	data = make([]byte, 0, 512)
	for {
		if len(data) > httpBody {
			return nil, taken, fmt.Errorf("response body exceeds %d bytes; use streamResponse", httpBody)
		}
		if len(data) == cap(data) {
			more := min(max(cap(data), httpChunk), httpBody+1-cap(data))
			if !room.take(int64(copies * more)) {
				return nil, taken, errNoRoom
			}
			taken += int64(copies * more)
			data = append(make([]byte, 0, cap(data)+more), data...)
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, taken, nil
		}
		if err != nil {
			return nil, taken, err
		}
	}
}

func httpCause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("error sending request for url (%s): %w", u.URL, u.Err)
	}
	return err
}

// headerList gives names in lower case and the repeats of a name in order.
func headerList(resp *http.Response) []exec.HTTPHeader {
	out := []exec.HTTPHeader{}
	for name, values := range resp.Header {
		for _, v := range values {
			out = append(out, exec.HTTPHeader{Name: strings.ToLower(name), Value: v})
		}
	}
	slices.SortStableFunc(out, func(a, b exec.HTTPHeader) int { return strings.Compare(a.Name, b.Name) })
	if len(resp.TransferEncoding) > 0 {
		out = append(out, exec.HTTPHeader{Name: "transfer-encoding", Value: strings.Join(resp.TransferEncoding, ", ")})
	}
	return out
}

// streamBody sends a body as numbered deltas; the last one says done.
func (c *conn) streamBody(id string, body io.Reader) {
	buf := make([]byte, httpChunk)
	delta := exec.BodyDeltaParams{RequestID: id}
	for {
		n, err := body.Read(buf)
		if n > 0 {
			delta.Seq++
			delta.Delta = buf[:n]
			if c.rpc.Notify(c.rpc.Context(), exec.NotifyBodyDelta, delta) != nil {
				return
			}
		}
		if err == nil {
			continue
		}
		delta.Seq++
		delta.Delta, delta.Done = []byte{}, true
		if !errors.Is(err, io.EOF) {
			text := "error decoding response body: " + err.Error()
			delta.Error = &text
		}
		_ = c.rpc.Notify(c.rpc.Context(), exec.NotifyBodyDelta, delta)
		return
	}
}
