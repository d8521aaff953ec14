// Package execclient is a client of the exec-server protocol, for our server and
// for Codex's. It delivers every process's events once and in order, without a
// read on the clean path, and repairs what was missed with one read: after its
// own lag, a gap on the wire, an old server, or a lost connection, which it
// resumes for Options.RecoverFor. What cannot be repaired is said, never hidden:
// output beyond the server's window is a Lost event, a lost session a failure.
//
// A Client is one session. It starts no server and opens no new session by itself.
package execclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/exec"
)

// Options shape a Client. Zero fields take the defaults.
type Options struct {
	Name  string // clientName; default "thole"
	Token string // bearer token for the upgrade

	RecoverFor time.Duration // how long a lost connection is resumed; default 25 s
	RetryEvery time.Duration // default 100 ms
	CallFor    time.Duration // bound of one dial and of one initialize; default 10 s
	GapAfter   time.Duration // how long a gap on the wire may last; default 1 s

	// OnNotification gets notifications that belong to no process: missing-path
	// watches and streamed http bodies. It must not block.
	OnNotification func(method string, params json.RawMessage)
	// Dial opens another connection; default: a WebSocket to the address given to
	// the function Dial. A Dial that cannot resume (a pipe) may fail the second time.
	Dial func(ctx context.Context) (Stream, error)
}

// Stream carries whole messages; see Options.Dial.
type Stream = jsonrpc.Stream

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.RecoverFor, 25*time.Second)
	def(&o.RetryEvery, 100*time.Millisecond)
	def(&o.CallFor, 10*time.Second)
	def(&o.GapAfter, time.Second)
	if o.Name == "" {
		o.Name = "thole"
	}
	return o
}

// ErrLost is the failure of everything that a lost session took with it.
var ErrLost = errors.New("execclient: session lost")

// Error is a refusal by the server; match on its Code.
type Error = jsonrpc.Error

// Client is one session. It is safe for concurrent use.
type Client struct {
	opts Options
	info *exec.EnvironmentInfo
	id   string // session

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the rest
	link     *jsonrpc.Conn
	ready    chan struct{} // closed when link is usable or err is set; replaced by a loss
	err      error         // final
	procs    map[string]*Process
	attached bool // once
	resumed  int
}

// Dial connects to ws://, wss:// or unix://PATH and opens a session.
func Dial(ctx context.Context, addr string, o Options) (*Client, error) {
	o = o.withDefaults()
	if o.Dial == nil {
		o.Dial = func(ctx context.Context) (Stream, error) { return ws.Dial(ctx, addr, ws.DialOptions{Token: o.Token}) }
	}
	return Open(ctx, o)
}

// Open opens a session over Options.Dial.
func Open(ctx context.Context, o Options) (*Client, error) {
	c := &Client{opts: o.withDefaults(), procs: map[string]*Process{}, ready: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.attach(ctx); err != nil {
		c.cancel()
		c.wg.Wait()
		return nil, err
	}
	return c, nil
}

// Close ends the connection. The server keeps the session's processes for its
// grace period; terminate them first if they should go now.
func (c *Client) Close() error {
	c.fail(ErrLost)
	c.cancel()
	c.mu.Lock()
	link := c.link
	c.mu.Unlock()
	if link != nil {
		link.Close("client closed")
	}
	c.wg.Wait()
	return nil
}

// Info describes the executor; nil when an old server did not say.
func (c *Client) Info() *exec.EnvironmentInfo { return c.info }

// SessionID names the session.
func (c *Client) SessionID() string { return c.id }

// Resumed counts the connections after the first.
func (c *Client) Resumed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resumed
}

// attach dials and initialises once, resuming when there is a session.
func (c *Client) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.CallFor)
	defer cancel()
	stream, err := c.opts.Dial(ctx)
	if err != nil {
		return err
	}
	link := jsonrpc.NewConn(stream, jsonrpc.Options{
		Handler: handler{c}, Overflow: jsonrpc.OverflowBlock,
		IngressLimit: 16 << 10, Limits: jsonrpc.Limits{Bytes: 128 << 20},
	})
	c.wg.Go(func() {
		_ = link.Run(context.Background())
		c.lost(link)
	})
	stop := context.AfterFunc(c.ctx, func() { link.Close("client closed") })
	defer stop()
	params := exec.InitializeParams{ClientName: c.opts.Name}
	if c.id != "" {
		params.ResumeSessionID = &c.id
	}
	var res exec.InitializeResult
	err = link.Call(ctx, exec.MethodInitialize, params, &res)
	switch {
	case err != nil:
	case res.SessionID == "":
		err = errors.New("execclient: the server named no session; it is too old")
	case c.id != "" && res.SessionID != c.id:
		err = fmt.Errorf("execclient: resumed session %s and got %s", c.id, res.SessionID)
	default:
		err = link.Notify(ctx, exec.NotifyInitialized, exec.Empty{})
	}
	if err != nil {
		link.Close("initialize failed")
		return err
	}
	if c.id == "" {
		c.id, c.info = res.SessionID, res.EnvironmentInfo
	}
	c.use(link)
	return nil
}

// use makes a connection the current one and repairs every process over it.
func (c *Client) use(link *jsonrpc.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attached {
		c.resumed++
		for _, p := range c.procs {
			p.repair()
		}
	}
	c.link, c.attached = link, true
	close(c.ready)
}

// lost starts recovery when the current connection has ended.
func (c *Client) lost(link *jsonrpc.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != link || c.err != nil {
		return
	}
	c.link, c.ready = nil, make(chan struct{})
	c.wg.Go(c.recover)
}

// recover resumes the session until the time is up or the server refuses it.
func (c *Client) recover() {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.RecoverFor)
	defer cancel()
	for {
		err := c.attach(ctx)
		if err == nil {
			return
		}
		if !retryable(err) {
			c.fail(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
		if backoff.Sleep(ctx, c.opts.RetryEvery) != nil {
			c.fail(fmt.Errorf("%w: not resumed within %s: %w", ErrLost, c.opts.RecoverFor, err))
			return
		}
	}
}

// retryable: the transport failed, or the server still sees the old connection.
func retryable(err error) bool {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return refused.Code == exec.CodeSessionAttached
	}
	return true
}

// fail ends the session for good; every process fails visibly.
func (c *Client) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	select {
	case <-c.ready:
	default:
		close(c.ready)
	}
	procs := c.procs
	c.procs = map[string]*Process{}
	c.mu.Unlock()
	for _, p := range procs {
		p.fail(err)
	}
}

// current returns a usable connection, waiting for a recovery under way.
func (c *Client) current(ctx context.Context) (*jsonrpc.Conn, error) {
	for {
		c.mu.Lock()
		link, ready, err := c.link, c.ready, c.err
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-ready:
			switch {
			case link == nil: // resumed since: look again
			case link.Err() == nil:
				return link, nil
			default:
				c.lost(link)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Call calls any method. A call that a lost connection interrupts is not
// repeated: the server may or may not have acted. The error is an *Error when
// the server refused.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	link, err := c.current(ctx)
	if err != nil {
		return err
	}
	return link.Call(ctx, method, params, result)
}

// repeat calls a method that may be repeated after a lost connection.
func (c *Client) repeat(ctx context.Context, method string, params, result any) error {
	for {
		err := c.Call(ctx, method, params, result)
		if !errors.Is(err, jsonrpc.ErrClosed) {
			return err
		}
	}
}

// handler takes what the server sends.
type handler struct{ c *Client }

func (h handler) Request(req *jsonrpc.Request) {
	_ = req.Error(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method))
}

func (h handler) Notification(n *jsonrpc.Notification) {
	ev, id, ok := decodeEvent(n.Method, n.Params)
	if !ok {
		if h.c.opts.OnNotification != nil {
			h.c.opts.OnNotification(n.Method, n.Params)
		}
		return
	}
	h.c.mu.Lock()
	p := h.c.procs[id]
	h.c.mu.Unlock()
	if p != nil {
		p.arrive(ev)
	}
}
