package appserver

import (
	"context"
	"errors"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
)

// follow sends what a subscription brings until it ends, and then returns false;
// true means that the connection is over or is to finish.
func (c *conn) follow(in *thread.Subscription, frames func(*thread.Batch) []*frame) (over bool) {
	for {
		var batch *thread.Batch
		var ok bool
		select {
		case batch, ok = <-in.Events:
			if !ok {
				return false
			}
		case <-c.stop:
			c.last(in, frames)
			return true
		}
		if !c.send(in, frames(batch)) {
			return in.Err() == nil
		}
	}
}

// linger is how long a connection that finishes waits for events on their way.
const linger = 20 * time.Millisecond

// last sends what was published before the connection had to finish.
func (c *conn) last(in *thread.Subscription, frames func(*thread.Batch) []*frame) {
	t := time.NewTimer(linger)
	defer t.Stop()
	for {
		select {
		case batch, ok := <-in.Events:
			if !ok || !c.send(in, frames(batch)) {
				return
			}
		case <-t.C:
			return
		case <-c.rpc.Done():
			return
		}
	}
}

// patience is how often a sender that waits for room looks whether its
// subscription still lives.
const patience = 250 * time.Millisecond

// send queues frames after everything queued so far. It waits while the client
// has more than the backlog to read, and reports false when there is no point in
// going on.
func (c *conn) send(in *thread.Subscription, frames []*frame) bool {
	out := pick(c.peer(), frames)
	if len(out) == 0 {
		return true
	}
	for c.rpc.Stats().OutboundBytes > backlog {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := c.rpc.Drain(ctx)
		cancel()
		if err == nil {
			break
		}
		if c.rpc.Err() != nil || in.Err() != nil {
			return false
		}
	}
	c.order.Lock()
	defer c.order.Unlock()
	err := c.rpc.TrySend(out...)
	if errors.Is(err, jsonrpc.ErrFull) { // of answers: the peer asks and does not read
		c.rpc.Close(ReasonSlow)
	}
	return err == nil
}

// watch sends what every connection hears of all threads. Threads it is
// subscribed to send the same in their own order.
func (c *conn) watch() error {
	in, err := c.srv.cfg.Threads.Watch(context.Background(), c.actor)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		in.Close()
		return nil
	}
	c.pumps.Add(1)
	go func() {
		defer c.pumps.Done()
		defer in.Close()
		if c.follow(in, c.news) {
			return
		}
		if err := in.Err(); errors.Is(err, thread.ErrSlow) {
			c.rpc.Close(ReasonSlow)
		} else if err != nil {
			c.lost(err)
		}
	}()
	return nil
}

func (c *conn) news(batch *thread.Batch) []*frame {
	frames := batch.Encode(c.srv, func() any {
		var out []*frame
		for i := range batch.Events {
			e := &batch.Events[i]
			had := len(out)
			if e.Kind == event.ThreadCreated {
				if f := c.srv.created(e); f != nil {
					out = append(out, f)
				}
			} else {
				out = c.srv.coarse(out, e, "")
			}
			for _, f := range out[had:] {
				f.thread, f.birth = e.Thread, e.Kind == event.ThreadCreated
			}
		}
		return out
	}).([]*frame)
	kept := make([]*frame, 0, len(frames))
	for _, f := range frames {
		if f.birth || !c.subscribed(f.thread) {
			kept = append(kept, f)
		}
	}
	return kept
}
