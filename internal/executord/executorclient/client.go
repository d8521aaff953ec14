// Package executorclient talks to an executord: calls, its event stream, its
// terminals. It decides nothing and links nothing of the server.
package executorclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// Client talks to one executord. Safe for concurrent use. An error of class
// CodeUnavailable means that nobody knows whether the call had an effect; every
// call but Terminal is idempotent, so it may be repeated. A call takes as long as it
// takes, but not longer than executord answers at all. Nothing that an executor says is
// believed to be small: see bounds.go.
type Client struct {
	base  string
	token string
	http  *http.Client
	dial  func(context.Context) (net.Conn, error)
	// execAt is where the exec-server is dialed.
	execAt string
	via    bool // dial leads there, and no address
	probe  time.Duration
	soon   time.Duration // in which a call that moves no files is answered
}

// Dial makes a client for "unix:PATH" or "http://HOST:PORT". It connects lazily.
func Dial(endpoint, token string) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 2, DisableCompression: true, MaxResponseHeaderBytes: maxHeader}
	c := &Client{base: endpoint, token: token, http: &http.Client{Transport: transport, CheckRedirect: stay}, probe: probeEvery, soon: soon, execAt: execAddress(endpoint)}
	c.dial = func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(endpoint, "http://"))
	}
	if path, ok := cutUnix(endpoint); ok {
		c.base = "http://executord"
		c.dial = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", path) }
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) }
	}
	return c
}

// Via makes a client for an executord that no address of this machine leads to; dial opens
// connections to it.
func Via(dial func(context.Context) (net.Conn, error), token string) *Client {
	c := Dial("http://localhost", token)
	c.dial, c.via = dial, true
	c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	return c
}

// Connect opens a connection to executord on which nothing has been said, also no token.
func (c *Client) Connect(ctx context.Context) (net.Conn, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	return conn, nil
}

func cutUnix(endpoint string) (string, bool) {
	const prefix = "unix:"
	if len(endpoint) > len(prefix) && endpoint[:len(prefix)] == prefix {
		return endpoint[len(prefix):], true
	}
	return "", false
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Run starts a run, or returns the one that is there; of one from before its executord's
// restart the thread is not known.
func (c *Client) Run(ctx context.Context, req wire.RunRequest) (wire.Run, error) {
	r, err := call[wire.Run](ctx, c, "POST", "/run", req)
	if err == nil && (r.ID != req.Turn.ID || r.For != req.For || r.Thread != "" && r.Thread != req.Thread) {
		err = beyond("it was asked for run %s and answered for %.64q", req.Turn.ID, r.ID)
	}
	return r, err
}

// Cancel stops a run.
func (c *Client) Cancel(ctx context.Context, req wire.CancelRequest) (wire.Run, error) {
	return call[wire.Run](ctx, c, "POST", "/cancel", req)
}

// Steer adds input to a run.
func (c *Client) Steer(ctx context.Context, req wire.SteerRequest) (wire.Run, error) {
	return call[wire.Run](ctx, c, "POST", "/steer", req)
}

// Reply answers or parks an ask.
func (c *Client) Reply(ctx context.Context, req wire.ReplyRequest) (wire.Run, error) {
	return call[wire.Run](ctx, c, "POST", "/human-loop/reply", req)
}

// Ack acknowledges events.
func (c *Client) Ack(ctx context.Context, req wire.AckRequest) error {
	_, err := call[struct{}](ctx, c, "POST", "/ack", req)
	return err
}

// Status asks what the executor is doing.
func (c *Client) Status(ctx context.Context) (wire.Status, error) {
	return call[wire.Status](ctx, c, "GET", "/status", nil)
}

// Network asks what the executor's processes exchanged with the network since its last run ended, with
// targets that showed no sign of life since after left out. An executord of an earlier version has no
// answer: CodeNotFound.
func (c *Client) Network(ctx context.Context, after time.Time) (wire.Network, error) {
	n, err := call[wire.Network](ctx, c, "GET", "/network?after="+strconv.FormatInt(max(0, after.UnixMilli()), 10), nil)
	n.Traffic, n.Models = event.BoundTraffic(n.Traffic), n.Models[:min(len(n.Models), maxModels)]
	return n, err
}

// Inventory asks what the agent of a thread has. CodeConflict: none runs; CodeNotFound: an
// executord of an earlier version.
func (c *Client) Inventory(ctx context.Context, id thole.ThreadID) (provider.Inventory, error) {
	has, err := call[provider.Inventory](ctx, c, "GET", "/inventory?thread="+url.QueryEscape(string(id)), nil)
	return has.Bounded(), err
}

// CallServer calls an MCP server of the agent of a thread. CodeConflict: no agent runs;
// CodeUnsupported: it lets nobody call them.
func (c *Client) CallServer(ctx context.Context, id thole.ThreadID, to provider.ServerCall) (json.RawMessage, error) {
	a, err := call[wire.ServerAnswer](ctx, c, "POST", "/mcp", wire.ServerRequest{Thread: id, ServerCall: to})
	if thole.CodeOf(err) == thole.CodeNotFound { // an executord of an earlier version
		err = thole.Errorf(thole.CodeConflict, "the executor of thread %s is of an earlier version", id).WithHint("thole thread close %s; the next message starts another", id)
	}
	return a.Result, err
}

// SetNetwork sets what the thread's agents reach, nil for what the configuration allows.
func (c *Client) SetNetwork(ctx context.Context, n *event.NetworkPolicy) error {
	_, err := call[struct{}](ctx, c, "POST", "/network", wire.NetworkRequest{Network: n})
	return err
}

// Pending lists the asks that wait for a human.
func (c *Client) Pending(ctx context.Context) ([]wire.PendingAsk, error) {
	p, err := call[wire.Pending](ctx, c, "GET", "/human-loop/pending", nil)
	return p.Pending, err
}

// Post calls a workspace endpoint with a JSON body and decodes its answer.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	resp, err := c.do(ctx, "POST", path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		out = &json.RawMessage{}
	}
	return decode(resp.Body, out)
}

// Events reads a run's log after a cursor and calls fn for every event, batched
// as they arrive. It returns nil when the run is over and fn has seen its last
// event, and an error when the stream broke or fn returned one.
func (c *Client) Events(ctx context.Context, run thole.TurnID, after uint64, fn func([]wire.LogEvent) error) error {
	resp, err := c.do(ctx, "GET", "/runs/"+string(run)+"/events?after="+strconv.FormatUint(after, 10), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	var batch []wire.LogEvent
	size := 0
	for {
		line, err := readLine(r)
		if errors.Is(err, ErrBeyond) {
			return err
		}
		if err == nil {
			var ev wire.LogEvent
			if err := strictjson.Unmarshal(line, &ev); err != nil {
				return thole.Errorf(thole.CodeInternal, "decode event: %w", err)
			}
			if after++; ev.Cursor != after || after > MaxEvents {
				return beyond("event %d of at most %d has cursor %d", after, MaxEvents, ev.Cursor)
			}
			batch, size = append(batch, ev), size+len(line)
		}
		// Hand over what is there before waiting for more.
		if len(batch) > 0 && (err != nil || r.Buffered() == 0 || len(batch) >= 256 || size >= maxBatch) {
			if err := fn(batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return thole.Errorf(thole.CodeUnavailable, "event stream broke: %w", err)
		}
	}
}

func call[Out any](ctx context.Context, c *Client, method, path string, in any) (out Out, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.soon)
	defer cancel()
	resp, err := c.do(ctx, method, path, in)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	return out, decode(resp.Body, &out)
}

func (c *Client) do(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	ctx, release := c.guard(ctx)
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		release()
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if r, ok := in.(interface{ WriteHeader(http.Header) }); ok {
		r.WriteHeader(req.Header)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		defer release()
		if errors.Is(context.Cause(ctx), errSilent) {
			return nil, errSilent
		}
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	resp.Body = guarded{resp.Body, release}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, jsonhttp.ReadError(resp)
}

// Terminal opens a login shell in the workspace. Each call has a shell of
// its own, which ends with the connection.
func (c *Client) Terminal(ctx context.Context, size terminal.Size) (*terminal.Conn, error) {
	return c.TerminalAt(ctx, "/terminal", size)
}

// TerminalAt opens a terminal through a proxy at path.
func (c *Client) TerminalAt(ctx context.Context, path string, size terminal.Size) (*terminal.Conn, error) {
	return terminal.Dial(ctx, c.http, c.base+path, http.Header{"Authorization": {"Bearer " + c.token}}, size, jsonhttp.ReadError)
}
