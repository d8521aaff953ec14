package appserver

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
)

// sub is one connection's subscription to one thread. Its pump sends what the
// thread publishes; when the client does not read, events stay in the thread's own
// bounded buffer, which merges deltas and finally ends the subscription.
type sub struct {
	conn   *conn
	thread thole.ThreadID
	in     *thread.Subscription
	// old translates events up to the snapshot, for a client that resumed after a
	// cursor; inFlight are the items whose text the snapshot has.
	old      *translator
	inFlight map[thole.ItemID]bool
	gone     chan struct{} // closed when the pump has ended
}

// subscribe opens a subscription without starting its pump: the answer that
// carries the snapshot goes first. An older subscription to the same thread is
// ended before, so that nothing comes twice.
func (c *conn) subscribe(ctx context.Context, id thole.ThreadID, o thread.SubscribeOptions) (*sub, error) {
	c.unsubscribe(id)
	in, err := c.srv.cfg.Threads.Subscribe(ctx, c.who(), id, o)
	if err != nil {
		return nil, err
	}
	s := &sub{
		conn: c, thread: id, in: in, gone: make(chan struct{}),
	}
	if o.After != nil {
		s.old = &translator{srv: c.srv, state: in.Snapshot.Fold.Copy(), replay: true, usage: in.Snapshot.Thread.Usage}
		s.inFlight = map[thole.ItemID]bool{}
		if in.Snapshot.Open != nil {
			for _, it := range in.Snapshot.Open.Items {
				s.inFlight[it.ID] = true
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		s.drop()
		return nil, &jsonrpc.CloseError{Reason: jsonrpc.ReasonEOF}
	}
	c.subs[id] = s
	return s, nil
}

// drop ends a subscription whose pump never ran.
func (s *sub) drop() {
	s.in.Close()
	close(s.gone)
}

// start runs the pump.
func (s *sub) start() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.subs[s.thread] != s {
		s.drop()
		return
	}
	c.pumps.Add(1)
	go func() {
		defer c.pumps.Done()
		defer close(s.gone)
		s.pump()
	}()
}

// unsubscribe ends a subscription and waits until nothing more comes of it.
func (c *conn) unsubscribe(id thole.ThreadID) bool {
	c.mu.Lock()
	s := c.subs[id]
	delete(c.subs, id)
	c.mu.Unlock()
	if s == nil {
		return false
	}
	s.in.Close()
	<-s.gone
	return true
}

func (c *conn) subscribed(id thole.ThreadID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subs[id] != nil
}

func (s *sub) pump() {
	c := s.conn
	if c.follow(s.in, s.frames) {
		return
	}
	err := s.in.Err()
	c.mu.Lock()
	if c.subs[s.thread] == s {
		delete(c.subs, s.thread)
	}
	c.mu.Unlock()
	switch {
	case err == nil, thole.CodeOf(err) == thole.CodeGone: // unsubscribed, or deleted
	case errors.Is(err, thread.ErrSlow):
		c.rpc.Close(ReasonSlow)
	default:
		c.lost(err)
	}
}

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

func (s *sub) frames(batch *thread.Batch) []*frame {
	if batch.Before == nil { // read from the log, up to the snapshot
		events := s.unseen(batch.Events)
		return s.old.frames(events)
	}
	return batch.Encode(s.conn.srv, func() any {
		t := &translator{srv: s.conn.srv, state: batch.Before.Copy()}
		return t.frames(batch.Events)
	}).([]*frame)
}

// unseen leaves out the text so far of items that the snapshot has with their text.
func (s *sub) unseen(batch []event.Event) []event.Event {
	kept := make([]event.Event, 0, len(batch))
	for _, e := range batch {
		if e.Kind == event.ItemDelta && e.Data.Offset == 0 && s.inFlight[e.Data.ItemID] {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// cancel takes back a subscription whose answer was not given.
func (s *sub) cancel() {
	s.conn.mu.Lock()
	if s.conn.subs[s.thread] == s {
		delete(s.conn.subs, s.thread)
	}
	s.conn.mu.Unlock()
	s.drop()
}
