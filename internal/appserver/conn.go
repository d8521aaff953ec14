package appserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/protocol/app"
)

// conn is one client: its capabilities, its subscriptions, what it is owed.
type conn struct {
	srv   *Server
	rpc   *jsonrpc.Conn
	actor thole.Actor
	from  audit.Source // what the edge knows of where the client is; set before it runs
	id    uint64

	inFlight atomic.Int32

	mu     sync.Mutex // guards what follows and every sub; never held while waiting
	client *peer      // nil until initialize
	subs   map[thole.ThreadID]*sub
	holds  map[thole.ThreadID][]*hold // oldest first
	news   news
	ended  bool
	uses   uint64         // counts requests that named a thread
	looked thole.ThreadID // the last thread that was named and not followed
	space  workspaces     // what the connection runs and watches in executors
	// pumps are the goroutines that send notifications.
	pumps sync.WaitGroup
	stop  chan struct{} // closed: pumps send what is there and end
	once  sync.Once
}

// peer is what a client said of itself. It never changes.
type peer struct {
	info         app.ClientInfo
	experimental bool
	extended     bool
	optOut       []string
}

// takes reports whether a notification may go to the client.
func (p *peer) takes(f *frame) bool {
	if f.experimental && !p.experimental || f.extension && !p.extended || f.client != "" && f.client != p.info.Name {
		return false
	}
	return len(p.optOut) == 0 || !slices.Contains(p.optOut, f.method)
}

func newConn(s *Server, stream jsonrpc.Stream, actor thole.Actor, id uint64) *conn {
	c := &conn{
		srv: s, actor: actor, id: id, stop: make(chan struct{}),
		subs: map[thole.ThreadID]*sub{}, holds: map[thole.ThreadID][]*hold{},
		news: news{sent: map[thole.ThreadID]uint64{}},
	}
	c.rpc = jsonrpc.NewConn(stream, jsonrpc.Options{
		Handler:       c,
		OutboundBytes: maxOutbound,
		Farewell:      farewell,
		// What is no message is ignored, as upstream does: the framing is intact.
		OnMalformed:       func(*jsonrpc.DecodeError) jsonrpc.Reaction { return jsonrpc.Ignore() },
		OnUnknownResponse: c.answered,
	})
	return c
}

func (c *conn) peer() *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// Notification implements jsonrpc.Handler. The only one, initialized, needs
// nothing; unknown ones are ignored.
func (c *conn) Notification(*jsonrpc.Notification) {}

// Request implements jsonrpc.Handler: the gates, then the lane.
func (c *conn) Request(req *jsonrpc.Request) {
	m := c.srv.methods[req.Method]
	if m == nil {
		_ = req.Error(c.srv.unknown(req.Method))
		return
	}
	p := c.peer()
	call, bad := m.decode(req.Params)
	switch {
	case bad != nil: // sent first, as upstream does
	case p != nil:
		bad = m.gate(p, req.Params)
	case req.Method != "initialize":
		bad = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Not initialized")
	}
	if bad != nil {
		_ = req.Error(bad)
		return
	}
	if c.inFlight.Add(1) > maxInFlight {
		c.inFlight.Add(-1)
		_ = req.Error(jsonrpc.Overloaded())
		return
	}
	if p == nil {
		// At once, so that a client may send its first requests right after it.
		a, err := m.run(c.doing(req, m), c, call)
		c.reply(req, a, err)
		return
	}
	key, mode := lane{laneConn, uintString(c.id)}, serial.Shared
	if m.key != nil {
		key, mode = m.key(c, call)
	}
	if key.kind == laneThread {
		c.use(thole.ThreadID(key.id))
	}
	if c.srv.lanes.Submit(key, mode, func() { c.run(m, req, call, key, mode) }) != nil {
		c.reply(req, answer{}, jsonrpc.Overloaded())
	}
}

// doing is the context of a request: what it wants to do, and who it is from. It is not the
// connection's: what began is finished also when the client leaves.
func (c *conn) doing(req *jsonrpc.Request, m *method) context.Context {
	from := c.from
	from.Actor = c.who()
	return audit.With(authz.Doing(context.WithoutCancel(req.Context()), ActionOf(m.name)), from)
}

// run calls the processor inside its lane.
func (c *conn) run(m *method, req *jsonrpc.Request, call any, key lane, mode serial.Mode) {
	if c.rpc.Err() != nil { // what a client that left had queued is dropped
		c.inFlight.Add(-1)
		return
	}
	ctx := c.doing(req, m)
	release := func() {}
	if key.kind == laneThread && mode == serial.Exclusive {
		release = c.hold(thole.ThreadID(key.id))
	}
	a, err := m.run(ctx, c, call)
	if err != nil {
		if instead, ok := c.srv.spare(ctx, c, m.name, call, err); ok {
			instead.release = a.release
			a, err = instead, nil
		}
	}
	if a.release == nil {
		a.release = release
	}
	c.refused(ctx, m, err)
	if err != nil || a.rest == nil {
		c.reply(req, a, err)
		return
	}
	// Answers of one connection about one thing stay in the order of their requests.
	rest := lane{laneRest, uintString(c.id) + "/" + string(key.kind) + "/" + key.id}
	finish := func() {
		var err error
		a.result, a.after, err = a.rest(ctx)
		c.refused(ctx, m, err)
		c.reply(req, a, err)
	}
	if c.srv.lanes.Submit(rest, serial.Exclusive, finish) != nil {
		finish() // what has begun is not refused
	}
}

// refused records a request that its client may not make.
func (c *conn) refused(ctx context.Context, m *method, err error) {
	if thole.CodeOf(err) == thole.CodeForbidden {
		c.srv.cfg.Audit.Refused(ctx, audit.Entry{Action: "contract.request", Kind: "method", ID: m.name, Reason: err.Error()})
	}
}

// reply queues the answer and does what comes after it.
func (c *conn) reply(req *jsonrpc.Request, a answer, err error) {
	defer c.inFlight.Add(-1)
	if a.release != nil {
		defer a.release()
	}
	if err != nil {
		_ = req.Error(toWire(err))
		if a.undo != nil {
			a.undo()
		}
		return
	}
	if err := req.ReplyThen(a.result, a.after...); err != nil {
		if !req.Answered() {
			_ = req.Error(jsonrpc.Errorf(jsonrpc.CodeInternal, "encode answer: %v", err))
		}
		if !errors.Is(err, jsonrpc.ErrClosed) {
			c.srv.cfg.Log.Warn("answer could not be sent", "conn", c.id, "err", err)
		}
	}
	if a.then != nil {
		a.then()
	}
}

// finish delivers what the pumps have and closes the connection.
func (c *conn) finish(reason string) {
	c.once.Do(func() { close(c.stop) })
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	done := make(chan struct{})
	go func() { c.pumps.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	case <-c.rpc.Done():
	}
	_ = c.rpc.Drain(ctx)
	c.rpc.Close(reason)
}

// end frees what a gone connection held. Turns and asks go on without it.
func (c *conn) end() {
	c.once.Do(func() { close(c.stop) })
	c.mu.Lock()
	c.ended = true
	for _, s := range c.subs {
		s.in.Close()
	}
	clear(c.subs)
	c.mu.Unlock()
	c.space.end()
	c.pumps.Wait()
}
