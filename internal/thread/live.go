package thread

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// live is a thread in this process: its fold, its text in flight, its
// subscribers. lock orders everything that happens to the thread here; it is a
// channel so that waiting for it ends with the caller's context.
type live struct {
	id   thole.ThreadID
	lock chan struct{} // holds one token while free

	// attached: a client works with the thread here, which is what clients see as
	// loaded. Read without the lock.
	attached atomic.Bool

	// The rest is guarded by lock.
	st      *fold.State // nil until read
	flights flights
	subs    map[*subscriber]struct{}
	used    time.Time
	unsure  bool  // a commit's outcome is unknown, or events may be missing
	unsaved int64 // bytes in flight without a checkpoint
	stuck   bool  // the last checkpoint failed
	dead    bool  // removed from the machine's map; take a new one
}

func newLive(id thole.ThreadID) *live {
	l := &live{id: id, lock: make(chan struct{}, 1), flights: flights{}, subs: map[*subscriber]struct{}{}}
	l.lock <- struct{}{}
	return l
}

func (l *live) acquire(ctx context.Context) error {
	select {
	case <-l.lock:
		return nil
	default:
	}
	select {
	case <-l.lock:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *live) release() { l.lock <- struct{}{} }

// plan begins a set of flight changes.
func (l *live) plan() *flightPlan {
	return &flightPlan{base: l.flights, turn: l.st.OpenID()}
}

// publish sends to the thread's subscribers. It never blocks.
func (l *live) publish(b *Batch) {
	var bare *Batch
	for s := range l.subs {
		if s.over() {
			delete(l.subs, s)
			continue
		}
		if !s.noDeltas {
			s.push(b)
			continue
		}
		if bare == nil {
			bare = b.withoutDeltas()
		}
		s.push(bare)
	}
}

// snapshot is the thread as it is now, items in flight with their text so far.
func (l *live) snapshot(now time.Time) Snapshot {
	snap := Snapshot{
		Thread: l.st.Row.View(l.attached.Load()), Seq: l.st.Seq(),
		Asks: l.st.Asks, Todos: l.st.Todos, Queue: l.st.Queue, Taken: now, Fold: l.st,
	}
	if l.st.Open != nil {
		t, plan := *l.st.Open, l.plan()
		t.Items = make([]event.Item, len(l.st.Items))
		for i, r := range l.st.Items {
			t.Items[i] = r.Item
			if r.Open {
				t.Items[i] = plan.fill(r.Item)
			}
		}
		snap.Open = &t
	}
	return snap
}

// textSoFar is one delta at offset 0 for each stream in flight, for a reader
// that resumes after the log and may have missed any of them.
func (l *live) textSoFar(now time.Time) []event.Event {
	var outs []event.Event
	for _, r := range l.st.Items {
		if !r.Open {
			continue
		}
		for k, f := range l.flights {
			if k.item == r.Item.ID && len(f.text) > 0 {
				outs = append(outs, event.Event{
					Thread: l.id, Turn: r.Turn, Time: now, Kind: event.ItemDelta,
					Data: event.Data{ItemID: k.item, Stream: k.stream, Delta: string(f.text)},
				})
			}
		}
	}
	return outs
}

// read fills the thread from the store.
func (m *Machine) read(ctx context.Context, l *live) error {
	h, err := m.store.Head(ctx, l.id)
	if errors.Is(err, ErrNone) {
		return errNoThread(l.id)
	}
	if err != nil {
		return failed("read thread", err)
	}
	l.st = newState(h)
	l.flights.load(h.Drafts)
	return nil
}

// refresh folds what others wrote since and sends it to the subscribers. It reports
// whether there was anything.
func (m *Machine) refresh(ctx context.Context, l *live) (moved bool, err error) {
	for {
		events, err := m.store.Events(ctx, l.id, l.st.Seq(), refreshPage)
		if errors.Is(err, ErrNone) {
			m.vanish(l)
			return true, errNoThread(l.id)
		}
		if err != nil {
			return moved, failed("read log", err)
		}
		if len(events) == 0 {
			break
		}
		moved = true
		if err := m.catchUp(l, events); err != nil {
			return moved, err
		}
		if len(events) < refreshPage {
			break
		}
	}
	l.unsure = false
	return moved, nil
}

const refreshPage = 512

func (m *Machine) catchUp(l *live, events []event.Event) error {
	next, scratch, plan := l.st.Clone(), &fold.Changes{}, l.plan()
	var outs []event.Event
	for _, e := range events {
		before := next.Row.Status(l.attached.Load())
		if err := next.Apply(e, scratch); err != nil {
			return failed("fold log", err)
		}
		if after := next.Row.Status(l.attached.Load()); after != before {
			outs = append(outs, statusEvent(e, after))
		}
		outs = append(outs, e)
	}
	plan.gone = scratch.Closed
	before := l.st
	l.st = next
	l.unsaved = plan.land()
	m.announce(l, before, outs)
	return nil
}

// drafts publishes text that the turn's driver in another process checkpointed.
func (m *Machine) drafts(ctx context.Context, l *live) error {
	if l.st.Open == nil || len(l.subs) == 0 {
		return nil
	}
	ds, err := m.store.Drafts(ctx, l.id)
	if err != nil {
		return failed("read drafts", err)
	}
	w := m.writer(l, thole.SystemActor)
	for _, d := range ds {
		i := l.st.Item(d.Item)
		if i < 0 || !l.st.Items[i].Open {
			continue
		}
		text, at, ok := w.flights.take(flightKey{d.Item, d.Stream}, "", d.Offset, d.Text)
		if !ok {
			continue
		}
		w.outs = append(w.outs, event.Event{
			Thread: l.id, Turn: d.Turn, Time: w.now, Kind: event.ItemDelta,
			Data: event.Data{ItemID: d.Item, Stream: d.Stream, Delta: text, Offset: at},
		})
	}
	w.flights.land()
	for k, f := range l.flights { // what came from the store is in the store
		for _, d := range ds {
			if k == (flightKey{d.Item, d.Stream}) {
				f.saved = max(f.saved, d.Offset+int64(len(d.Text)))
			}
		}
	}
	m.announce(l, l.st, w.outs)
	return nil
}

// vanish ends a thread that was deleted, here or by another process.
func (m *Machine) vanish(l *live) {
	e := event.Event{Thread: l.id, Seq: l.st.Seq() + 1, Time: m.now(), Kind: event.ThreadDeleted}
	m.announce(l, l.st, []event.Event{e})
	for s := range l.subs {
		s.end(thole.Errorf(thole.CodeGone, "thread %s was deleted", l.id), true)
	}
	m.forget(l)
}
