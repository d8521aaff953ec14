package thread

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/authz"
)

// Subscribe implements Service.
func (m *Machine) Subscribe(ctx context.Context, actor thole.Actor, id thole.ThreadID, o SubscribeOptions) (*Subscription, error) {
	l, err := m.hold(ctx, actor, id, authz.ViewThread)
	if err != nil {
		return nil, err
	}
	defer l.release()
	if m.shared {
		if _, err := m.refresh(ctx, l); err != nil {
			return nil, err
		}
		if err := m.drafts(ctx, l); err != nil {
			return nil, err
		}
	}
	if o.After != nil {
		if err := checkAfter(l.st.Row.Thread, *o.After); err != nil {
			return nil, err
		}
	}
	if was := l.st.Row.Status(l.attached.Swap(true)); !was.Loaded {
		m.announce(l, l.st, []event.Event{statusEvent(event.Event{Thread: id, Time: m.now(), Actor: actor}, l.st.Row.Status(true))})
	}
	s := newSubscriber(o, m.spawn, m.cfg.Slow)
	if o.After != nil {
		var tail []event.Event
		if !o.NoDeltas {
			tail = l.textSoFar(m.now())
		}
		if *o.After < l.st.Seq() || len(tail) > 0 {
			s.replay(*o.After, l.st.Seq(), tail, func(ctx context.Context, after uint64) ([]event.Event, error) {
				events, err := m.store.Events(ctx, id, after, replayPage)
				if err != nil {
					return nil, failed("read log", err)
				}
				return events, nil
			})
		}
	}
	l.subs[s] = struct{}{}
	m.welcome(actor, l.st.Row.Thread.Owner, id, s)
	snap := l.snapshot(m.now())
	snap.Revision = m.published()
	return &Subscription{
		Snapshot: snap,
		Events:   s.ch,
		err:      s.failure,
		close:    func() { m.detach(l, s) },
	}, nil
}

const replayPage = 256

// detach ends a subscription. It does not wait for the thread: if that is busy,
// the next publication drops the entry.
func (m *Machine) detach(l *live, s *subscriber) {
	s.end(nil, false)
	m.leave(s)
	select {
	case <-l.lock:
		delete(l.subs, s)
		l.used = m.now()
		l.release()
	default:
	}
}

// watcher is a subscriber to the coarse changes of all threads in a scope.
type watcher struct {
	scope authz.Scope
	sub   *subscriber
}

// Watch implements Service: of the actor's own threads, whatever else they may see.
func (m *Machine) Watch(ctx context.Context, actor thole.Actor) (*Subscription, error) {
	if !actor.Valid() {
		return nil, errNoActor()
	}
	scope, err := m.cfg.Access(ctx, actor, authz.ViewThread)
	if err != nil {
		return nil, failed("read rights", err)
	}
	w := &watcher{scope: scope.Mine(actor), sub: newSubscriber(SubscribeOptions{NoDeltas: true}, m.spawn, m.cfg.Slow)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, thole.Errorf(thole.CodeUnavailable, "threads are shutting down")
	}
	m.watchers[w] = struct{}{}
	return &Subscription{
		Events: w.sub.ch,
		err:    w.sub.failure,
		close: func() {
			w.sub.end(nil, false)
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.watchers, w)
		},
	}, nil
}

// coarse selects what a list of threads shows, and what a person who looks at none of
// them is shown: ends of turns and asks. A provider's session id is neither.
func coarse(e event.Event) bool {
	switch e.Kind {
	case event.ThreadCreated, event.ThreadDeleted, event.ThreadStatus, event.TurnEnded, event.AskRequested, event.AskResolved:
		return true
	case event.ThreadUpdated:
		return e.Data.NativeID == ""
	}
	return false
}

// notifyWatchers publishes to those who watch all threads, and returns the revision:
// watchers see revisions in their order.
func (m *Machine) notifyWatchers(owner thole.Owner, outs []event.Event) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	if len(m.watchers) == 0 {
		return m.revision
	}
	news := &Batch{Revision: m.revision}
	for _, e := range outs {
		if coarse(e) {
			news.Events = append(news.Events, e)
		}
	}
	for w := range m.watchers {
		if w.scope.Sees(owner) {
			w.sub.push(news)
		}
	}
	return m.revision
}

// Loaded implements Service.
func (m *Machine) Loaded(ctx context.Context, actor thole.Actor) ([]thole.ThreadID, error) {
	if !actor.Valid() {
		return nil, errNoActor()
	}
	m.mu.Lock()
	var ids []thole.ThreadID
	for id, l := range m.threads {
		if l.attached.Load() {
			ids = append(ids, id)
		}
	}
	m.mu.Unlock()
	kept := ids[:0]
	for _, id := range ids {
		if _, err := m.visible(authz.Sifting(ctx), actor, id); err == nil {
			kept = append(kept, id)
		}
	}
	return kept, nil
}
