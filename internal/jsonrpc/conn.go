package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// Conn is one connection. A reader, a writer and a dispatcher run inside Run;
// none of them ever waits for another's peer: a peer that does not read stops the
// writer only.
type Conn struct {
	stream Stream
	opts   Options
	ctx    context.Context // ends with the connection; its cause is the CloseError
	cancel context.CancelCauseFunc

	mu sync.Mutex // guards s
	s  inFlight

	work  chan struct{} // to the dispatcher: something arrived, or the end
	write chan struct{} // to the writer: something is queued, or the end
	wg    sync.WaitGroup
	once  sync.Once

	wrote chan struct{} // closed when the writer has ended
	hurry chan struct{} // closed when the stream is to be closed at once
	rush  sync.Once
}

// NewConn makes a connection; it lives from Run on. Messages queued before Run
// are sent by it.
func NewConn(stream Stream, opts Options) *Conn {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Conn{
		stream: stream, opts: opts.withDefaults(), ctx: ctx, cancel: cancel,
		work: make(chan struct{}, 1), write: make(chan struct{}, 1),
		wrote: make(chan struct{}), hurry: make(chan struct{}),
	}
	c.s.calls = map[ID]func(json.RawMessage, error){}
	return c
}

// update is the only way to change the in-flight state.
func (c *Conn) update(f func(s *inFlight)) {
	c.mu.Lock()
	f(&c.s)
	live := c.s.end == nil
	work := live && c.s.in.len() > 0 && !c.s.handling
	write := live && c.s.out.len() > 0 && !c.s.writing
	if c.s.out.len() == 0 {
		wake(&c.s.outEmpty)
	}
	c.mu.Unlock()
	if work {
		signal(c.work)
	}
	if write {
		signal(c.write)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Run serves the connection until it ends and all its goroutines are gone. It
// returns nil when the peer closed in an orderly way or Close was called, and a
// *CloseError otherwise. It is called once.
func (c *Conn) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.end(ReasonContext, context.Cause(ctx)) })
	defer stop()
	c.wg.Go(c.writeLoop)
	c.wg.Go(c.dispatchLoop)
	c.readLoop()
	c.wg.Wait()
	var end *CloseError
	errors.As(c.Err(), &end)
	if end.Err == nil || errors.Is(end.Err, io.EOF) {
		return nil
	}
	return end
}

// Close ends the connection at once; queued output is lost. It does not wait and
// may be repeated: the first reason stays.
func (c *Conn) Close(reason string) {
	c.end(reason, nil)
	c.rush.Do(func() { close(c.hurry) })
}

// CloseSlow is Close for a peer that does not read. For its owner the connection is over
// at once. The peer has until Options.Farewell to read the message that is under way,
// which nothing can be put before: then the reason follows it.
func (c *Conn) CloseSlow(reason string) { c.end(reason, nil) }

// Drain waits until everything queued so far has been handed to the transport.
func (c *Conn) Drain(ctx context.Context) error {
	for {
		var ch <-chan struct{}
		c.update(func(s *inFlight) {
			if s.out.len() > 0 {
				ch = wait(&s.outEmpty)
			}
		})
		if ch == nil {
			return nil
		}
		select {
		case <-ch:
		case <-c.ctx.Done():
			return c.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Done is closed when the connection has ended; Run may still be on its way out.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err is nil while the connection lives and a *CloseError afterwards.
func (c *Conn) Err() error {
	if c.ctx.Err() == nil {
		return nil
	}
	return context.Cause(c.ctx)
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Stats returns the present load.
func (c *Conn) Stats() (st Stats) {
	c.update(func(s *inFlight) {
		st = Stats{len(s.calls), s.in.len(), s.out.len(), s.outBytes}
	})
	return st
}

// end is the one way a connection ends. A caller that waits for an answer learns that
// none will come, which is not an error answer.
func (c *Conn) end(reason string, cause error) {
	c.once.Do(func() {
		end := &CloseError{Reason: reason, Err: cause}
		var calls map[ID]func(json.RawMessage, error)
		c.update(func(s *inFlight) {
			s.end = end
			calls, s.calls = s.calls, nil
			wake(&s.inRoom)
			wake(&s.outRoom)
		})
		if cause != nil {
			c.rush.Do(func() { close(c.hurry) })
		}
		// The stream may take a moment to reach the peer; callers do not wait. Run
		// does, so this is counted before Run can see the end.
		c.wg.Go(func() {
			late := time.NewTimer(c.opts.Farewell)
			defer late.Stop()
			select {
			case <-c.wrote:
			case <-c.hurry:
			case <-late.C:
			}
			_ = c.stream.Close(reason)
		})
		c.cancel(end)
		signal(c.work)
		signal(c.write)
		for _, done := range calls {
			done(nil, end)
		}
	})
}
