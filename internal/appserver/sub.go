package appserver

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// sub is one connection's subscription to one thread. Its pump sends what the
// thread publishes; when the client does not read, events stay in the thread's own
// bounded buffer, which merges deltas and finally ends the subscription. A sub that is
// no longer its connection's sends nothing more, so nobody waits for the end of a pump.
type sub struct {
	conn   *conn
	thread thole.ThreadID
	in     *thread.Subscription
	// old translates events up to the snapshot, for a client that resumed after a
	// cursor; inFlight are the items whose text the snapshot has.
	old      *translator
	inFlight map[thole.ItemID]bool

	// over: it was taken away, and its connection's answer to that is on its way.
	over bool
	// sent is the revision up to which the client has the news; missed is the news that
	// the watch left to this subscription since then.
	sent   uint64
	missed []*frame
	used   uint64 // conn.uses when a request last named the thread
	// open is the turn that the client believes to run.
	open thole.TurnID
	// left are the commands that a TUI believes to go on, by item; looks says that the
	// agent is asked for them, and again that there is a new reason to.
	left         map[string]app.Item
	looks, again bool
}

// subscribe opens a subscription without starting its pump: the answer that
// carries the snapshot goes first. It takes the place of an older one to the same
// thread, so that nothing comes twice.
func (c *conn) subscribe(ctx context.Context, id thole.ThreadID, o thread.SubscribeOptions) (*sub, error) {
	in, err := c.srv.cfg.Threads.Subscribe(ctx, c.who(), id, o)
	if err != nil {
		return nil, err
	}
	s := &sub{conn: c, thread: id, in: in}
	if open := in.Snapshot.Open; open != nil {
		s.open = open.ID
	}
	if o.After != nil {
		s.old = &translator{srv: c.srv, state: in.Snapshot.Fold.Copy(), replay: true, usage: in.Snapshot.Thread.Usage, held: map[thole.ItemID]bool{}}
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
		in.Close()
		return nil, &jsonrpc.CloseError{Reason: jsonrpc.ReasonEOF}
	}
	s.sent = c.news.sent[id]
	if before := c.subs[id]; before != nil {
		before.in.Close()
		s.sent, s.missed, s.left = before.sent, before.missed, before.left
	}
	c.uses++
	s.used = c.uses
	c.subs[id] = s
	return s, nil
}

// start runs the pump, once the answer with the snapshot is queued.
func (s *sub) start() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.subs[s.thread]
	if now == nil { // the connection is over
		s.in.Close()
		return
	}
	now.sentLocked(s.in.Snapshot.Revision)
	if now != s || s.over { // resumed again, or unsubscribed meanwhile
		s.in.Close()
		return
	}
	c.pumps.Go(s.pump)
	s.lookLocked()
}

// use notes that a request names a thread.
func (c *conn) use(id thole.ThreadID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.subs[id]; s != nil {
		c.uses++
		s.used = c.uses
		return
	}
	c.looked = id
}

// sentLocked notes that the client has what was published up to a revision.
func (s *sub) sentLocked(revision uint64) {
	s.sent = max(s.sent, revision)
	for len(s.missed) > 0 && s.missed[0].revision <= s.sent {
		s.missed = s.missed[1:]
	}
}

// remove takes the subscription from its connection, unless another has its place, and
// sends the client the news of the thread that it does not have.
func (s *sub) remove() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.in.Close()
	if c.subs[s.thread] != s {
		return
	}
	delete(c.subs, s.thread)
	c.pushLocked(s.missed)
	if s.sent > c.news.passed {
		c.news.sent[s.thread] = s.sent
	}
}

// unsubscribe ends a subscription: nothing more comes of it. It is to be removed when
// the client has the answer, which may have to follow that to a resume.
func (c *conn) unsubscribe(id thole.ThreadID) (s *sub, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.subs[id]; s == nil || s.over {
		return nil, false
	}
	s.over = true
	s.in.Close()
	return s, true
}

func (s *sub) pump() {
	c := s.conn
	if c.follow(s.in, s.deliver) {
		return
	}
	err := s.in.Err()
	s.remove()
	switch {
	case err == nil, thole.CodeOf(err) == thole.CodeGone: // unsubscribed, or deleted
	case thole.CodeOf(err) == thole.CodeNotFound: // the right to read it was taken away
	case errors.Is(err, thread.ErrSlow):
		c.slow()
	default:
		c.lost(err)
	}
}

// deliver queues a batch, after the answers to the requests of its thread. It reports
// whether there may be more.
func (s *sub) deliver(batch *thread.Batch) bool {
	c := s.conn
	out := pick(c.peer(), s.frames(batch))
	if len(out) > 0 && !c.room(s.wanted) {
		return false
	}
	done, ok := make(chan struct{}), false
	c.mu.Lock()
	c.afterHolds(s.thread, func() {
		defer close(done)
		if ok = s.currentLocked() && c.sendLocked(out); ok {
			s.sentLocked(batch.Revision)
			s.turnsLocked(batch.Events)
		}
	})
	c.mu.Unlock()
	<-done
	return ok
}

// turnsLocked notes which turn the client believes to run after events that it was sent.
func (s *sub) turnsLocked(sent []event.Event) {
	for _, e := range sent {
		switch e.Kind {
		case event.TurnStarted:
			s.open = e.Turn
		case event.TurnEnded:
			s.open = ""
			s.lookLocked()
		}
	}
}

func (s *sub) currentLocked() bool { return s.conn.subs[s.thread] == s && !s.over }

// wanted reports whether the subscription is its connection's and goes on.
func (s *sub) wanted() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.currentLocked() && s.in.Err() == nil
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
