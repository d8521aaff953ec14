package appserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/protocol/app"
)

// conn is one client: its capabilities, its subscriptions, what it is owed.
type conn struct {
	srv   *Server
	rpc   *jsonrpc.Conn
	actor thole.Actor
	id    uint64

	// order puts an answer before the notifications it causes: a request that may
	// cause some holds it for reading until its answer is queued, and a caller that
	// sends notifications takes it for writing.
	order    sync.RWMutex
	inFlight atomic.Int32

	mu     sync.Mutex // guards what follows
	client *peer      // nil until initialize
	subs   map[thole.ThreadID]*sub
	ended  bool
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
	if f.experimental && !p.experimental || f.extension && !p.extended {
		return false
	}
	return len(p.optOut) == 0 || !slices.Contains(p.optOut, f.method)
}

func newConn(s *Server, stream jsonrpc.Stream, actor thole.Actor, id uint64) *conn {
	c := &conn{srv: s, actor: actor, id: id, subs: map[thole.ThreadID]*sub{}, stop: make(chan struct{})}
	c.rpc = jsonrpc.NewConn(stream, jsonrpc.Options{
		Handler:       c,
		OutboundBytes: maxOutbound,
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
		c.run(m, req, call)
		c.inFlight.Add(-1)
		return
	}
	key, mode := lane{"conn", ""}, serial.Shared
	if m.key != nil {
		key, mode = m.key(call)
	}
	if key.kind == "conn" {
		key.id = uintString(c.id)
	}
	err := c.srv.lanes.Submit(key, mode, func() {
		defer c.inFlight.Add(-1)
		if c.rpc.Err() == nil { // what a client that left had queued is dropped
			c.run(m, req, call)
		}
	})
	if err != nil {
		c.inFlight.Add(-1)
		_ = req.Error(jsonrpc.Overloaded())
	}
}

// run calls the processor. Its context is not the connection's: what began is
// finished also when the client leaves.
func (c *conn) run(m *method, req *jsonrpc.Request, call any) {
	ctx := context.WithoutCancel(req.Context())
	if m.causes {
		c.order.RLock()
		defer c.order.RUnlock()
	}
	a, err := m.run(ctx, c, call)
	if a.held {
		defer c.order.RUnlock()
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
	subs := c.subs
	c.subs = map[thole.ThreadID]*sub{}
	c.mu.Unlock()
	for _, s := range subs {
		s.in.Close()
	}
	c.pumps.Wait()
}
