package appserver

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
)

// follow delivers what a subscription brings until it ends, and then returns false;
// true means that the connection is over or is to finish.
func (c *conn) follow(in *thread.Subscription, deliver func(*thread.Batch) bool) (over bool) {
	for {
		var batch *thread.Batch
		var ok bool
		select {
		case batch, ok = <-in.Events:
			if !ok {
				return false
			}
		case <-c.stop:
			c.last(in, deliver)
			return true
		}
		if !deliver(batch) {
			return in.Err() == nil
		}
	}
}

// linger is how long a connection that finishes waits for events on their way.
const linger = 20 * time.Millisecond

// last delivers what was published before the connection had to finish.
func (c *conn) last(in *thread.Subscription, deliver func(*thread.Batch) bool) {
	t := time.NewTimer(linger)
	defer t.Stop()
	for {
		select {
		case batch, ok := <-in.Events:
			if !ok || !deliver(batch) {
				return
			}
		case <-t.C:
			return
		case <-c.rpc.Done():
			return
		}
	}
}

// patience is how often a sender that waits for room looks whether it is still wanted.
const patience = 250 * time.Millisecond

// room waits while the client has more than the backlog to read. It reports false when
// there is no point in going on.
func (c *conn) room(wanted func() bool) bool {
	for c.rpc.Stats().OutboundBytes > backlog {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := c.rpc.Drain(ctx)
		cancel()
		if err == nil {
			break
		}
		if c.rpc.Err() != nil || !wanted() {
			return false
		}
	}
	return true
}

// sendLocked queues frames after everything queued so far, and does not wait.
func (c *conn) sendLocked(out []jsonrpc.Frame) bool {
	if len(out) == 0 {
		return c.rpc.Err() == nil
	}
	err := c.rpc.TrySend(out...)
	if errors.Is(err, jsonrpc.ErrFull) { // of answers: the peer asks and does not read
		c.slow()
	}
	return err == nil
}

// slow gives up a client that does not read.
func (c *conn) slow() { c.rpc.CloseSlow(ReasonSlow) }

// lost ends a connection whose threads are going away, after what it is owed.
func (c *conn) lost(err error) {
	reason := ReasonGone
	if thole.CodeOf(err) == thole.CodeUnavailable {
		reason = ReasonShutdown
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	_ = c.rpc.Drain(ctx)
	c.rpc.Close(reason)
}
