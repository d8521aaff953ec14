// Package appclient is a typed client of the thread contract, for thole and for a
// real Codex app-server alike: over a unix socket, ws, wss, or the pipes of a child
// process.
//
// A client observes by default: it never answers a server request on its own,
// because on a Codex server even an error would count as the answer.
package appclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/app"
)

// Options shape a connection.
type Options struct {
	// Name and Version introduce the program; Name is needed.
	Name    string
	Version string
	// Experimental asks for the server's experimental methods, Extended for thole's
	// own: a Codex server ignores the latter.
	Experimental bool
	Extended     bool
	OptOut       []string
	// Token is sent as bearer token by Dial.
	Token string
	// Limit bounds an inbound message; 0 takes the transport's.
	Limit int64

	// OnNotification and OnRequest run one at a time, in the order the server sent
	// them. They may take their time, but must not call the server and wait.
	OnNotification func(Notification)
	// OnRequest gets server requests; nil leaves them to other clients.
	OnRequest func(*Request)
}

// Notification is a message that needs no answer.
type Notification struct {
	Method string
	Params json.RawMessage
	// Seq is the cursor after it, 0 when the server sent none.
	Seq uint64
	// ID is set by callers that keep server requests in the same list.
	ID json.RawMessage
}

// Request is a server's question. Not answering it is allowed: it stays open for
// other clients.
type Request struct {
	Method string
	Params json.RawMessage
	req    *jsonrpc.Request
}

// ID is the request's id as it is on the wire.
func (r *Request) ID() json.RawMessage {
	raw, _ := r.req.ID.MarshalJSON()
	return raw
}

// Reply answers.
func (r *Request) Reply(result any) error { return r.req.Reply(result) }

// Refuse answers with an error.
func (r *Request) Refuse(code int64, message string) error {
	return r.req.Error(jsonrpc.Errorf(code, "%s", message))
}

// Error is a server's refusal. Code is the JSON-RPC number, Class and Hint are
// thole's own and empty for other servers.
type Error struct {
	Code    int64
	Message string
	Class   string
	Hint    string
	Data    json.RawMessage
}

func (e *Error) Error() string { return e.Message }

// ErrClosed says that the connection ended; a call that gets it may or may not
// have had its effect.
var ErrClosed = jsonrpc.ErrClosed

// Client is one connection. Safe for concurrent use.
type Client struct {
	conn   *jsonrpc.Conn
	opts   Options
	done   chan struct{}
	server app.InitializeResult
	peer   int

	mu  sync.Mutex
	err error
}

// Dial connects to ws://, wss:// or unix://PATH and initializes. ctx bounds that.
func Dial(ctx context.Context, addr string, o Options) (*Client, error) {
	s, err := ws.Dial(ctx, addr, ws.DialOptions{Token: o.Token, Limit: o.Limit})
	if err != nil {
		return nil, err
	}
	return open(ctx, s, o)
}

// Pipe initializes on the pipes of a child process that speaks JSON lines.
func Pipe(ctx context.Context, r io.Reader, w io.Writer, o Options) (*Client, error) {
	return open(ctx, stdio.New(r, w, int(o.Limit)), o)
}

func open(ctx context.Context, s jsonrpc.Stream, o Options) (*Client, error) {
	c := &Client{opts: o, done: make(chan struct{})}
	if p, ok := s.(interface{ PeerPID() int }); ok {
		c.peer = p.PeerPID()
	}
	c.conn = jsonrpc.NewConn(s, jsonrpc.Options{
		Handler: c, Overflow: jsonrpc.OverflowBlock, Lossless: true, IngressLimit: 16,
		Limits:      jsonrpc.Limits{Values: -1, LastKeyWins: true},
		OnMalformed: func(*jsonrpc.DecodeError) jsonrpc.Reaction { return jsonrpc.Ignore() },
	})
	go func() {
		err := c.conn.Run(context.Background())
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.done)
	}()
	caps := &app.Capabilities{ExperimentalAPI: o.Experimental, OptOut: o.OptOut}
	if o.Extended {
		caps.Extensions = map[string]json.RawMessage{app.Extension: json.RawMessage("{}")}
	}
	p := app.InitializeParams{ClientInfo: app.ClientInfo{Name: o.Name, Version: o.Version}, Capabilities: caps}
	if p.ClientInfo.Version == "" {
		p.ClientInfo.Version = "0"
	}
	err := c.Call(ctx, "initialize", p, &c.server)
	if err == nil {
		err = c.conn.Notify(ctx, "initialized", nil)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Server is what the server said of itself.
func (c *Client) Server() app.InitializeResult { return c.server }

// PeerPID is the process that listens at the other end of a unix socket, 0 where the
// transport does not report. Only with its start time it is one process for ever.
func (c *Client) PeerPID() int { return c.peer }

// Call sends a request and waits. A refusal is an *Error, a connection that ended
// is ErrClosed.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return refusal(c.conn.Call(ctx, method, params, result))
}

// Go sends a request and returns when it is on its way. answer runs once, unless Go
// failed: before anything is handled that the server sent after it. It may take its
// time, but must not call the server and wait.
func (c *Client) Go(ctx context.Context, method string, params any, answer func(json.RawMessage, error)) error {
	_, err := c.conn.Go(ctx, method, params, func(raw json.RawMessage, err error) { answer(raw, refusal(err)) })
	return err
}

func refusal(err error) error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return err
	}
	out := &Error{Code: e.Code, Message: e.Message, Data: e.Data}
	var d app.ErrorData
	if strictjson.Unmarshal(e.Data, &d) == nil {
		out.Class, out.Hint = d.Code, d.Hint
	}
	return out
}

// Close ends the connection and waits for its goroutines.
func (c *Client) Close() {
	c.conn.Close("done")
	<-c.done
}

// Done is closed when the connection has ended; Err then says why, nil for an
// orderly end.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is why the connection ended.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Request implements jsonrpc.Handler.
func (c *Client) Request(r *jsonrpc.Request) {
	if c.opts.OnRequest != nil {
		c.opts.OnRequest(&Request{Method: r.Method, Params: r.Params, req: r})
	}
}

// Notification implements jsonrpc.Handler.
func (c *Client) Notification(n *jsonrpc.Notification) {
	if c.opts.OnNotification == nil {
		return
	}
	out := Notification{Method: n.Method, Params: n.Params}
	if raw := n.Member("seq"); raw != nil {
		_ = strictjson.Unmarshal(raw, &out.Seq)
	}
	c.opts.OnNotification(out)
}

// Over initializes on a stream that the caller connected.
func Over(ctx context.Context, s jsonrpc.Stream, o Options) (*Client, error) { return open(ctx, s, o) }
