package thread

import (
	"context"
	"errors"
	"math"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// kickBytes of text without a checkpoint bring the next one forward.
const kickBytes = 64 << 10

// Start takes up what an earlier process left (Recover) and begins the
// background work: checkpoints, sweeps, and news from other processes.
func (m *Machine) Start(ctx context.Context) error {
	if err := m.Recover(ctx); err != nil {
		return err
	}
	run, stop := context.WithCancel(context.Background())
	m.stop = stop
	if m.shared {
		m.unwatch = m.store.Watch(m.woke)
		m.spawn(func() { m.loop(run, nil, m.wake, m.follow) })
	}
	checkpoint, sweep := time.NewTicker(m.cfg.Checkpoint), time.NewTicker(m.cfg.Sweep)
	context.AfterFunc(run, func() { checkpoint.Stop(); sweep.Stop() })
	m.spawn(func() { m.loop(run, checkpoint.C, m.kick, m.checkpoint) })
	m.spawn(func() {
		m.loop(run, sweep.C, nil, func(ctx context.Context) {
			if err := m.Sweep(ctx); err != nil && ctx.Err() == nil {
				m.cfg.Log.Warn("thread sweep failed", "err", err)
			}
		})
	})
	return nil
}

func (m *Machine) loop(ctx context.Context, tick <-chan time.Time, kick <-chan struct{}, work func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-kick:
		}
		work(ctx)
	}
}

// Close stores the text in flight, delivers what subscribers have pending until
// ctx ends, and ends them. Turns stay open: the runner is closed before.
func (m *Machine) Close(ctx context.Context) error {
	m.checkpoint(ctx)
	m.mu.Lock()
	again := m.closed
	m.closed = true
	watchers := m.watchers
	m.watchers = map[*watcher]struct{}{}
	m.mu.Unlock()
	if again {
		m.wg.Wait()
		return nil
	}
	if m.unwatch != nil {
		m.unwatch()
	}
	if m.stop != nil {
		m.stop()
	}
	closing := thole.Errorf(thole.CodeUnavailable, "threads are shutting down")
	var subs []*subscriber
	for w := range watchers {
		subs = append(subs, w.sub)
	}
	for _, l := range m.all() {
		if err := l.acquire(ctx); err != nil {
			continue // held by a step that ends with the store
		}
		for s := range l.subs {
			subs = append(subs, s)
		}
		l.release()
	}
	for _, s := range subs {
		s.end(closing, true)
	}
	done := make(chan struct{})
	go func() { m.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		for _, s := range subs {
			s.end(closing, false)
		}
		<-done
	}
	return nil
}

func (m *Machine) all() []*live {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*live, 0, len(m.threads))
	for _, l := range m.threads {
		all = append(all, l)
	}
	return all
}

// checkpoint stores what grew since the last one, so that a restart and other
// processes see the text so far.
func (m *Machine) checkpoint(ctx context.Context) {
	for _, l := range m.all() {
		if err := l.acquire(ctx); err != nil {
			return
		}
		if l.unsaved > 0 && !l.dead {
			err := m.save(ctx, l)
			if failed := err != nil && ctx.Err() == nil; failed != l.stuck { // once, not at every try
				if l.stuck = failed; failed {
					m.cfg.Log.Warn("what a turn says cannot be stored", "thread", l.id, "err", err)
				} else if err == nil {
					m.cfg.Log.Info("what a turn says is stored again", "thread", l.id)
				}
			}
		}
		l.release()
	}
}

func (m *Machine) save(ctx context.Context, l *live) error {
	var drafts []Draft
	for k, f := range l.flights {
		if kept := int64(len(f.text)); f.saved < kept {
			drafts = append(drafts, Draft{Turn: f.turn, Item: k.item, Stream: k.stream, Offset: f.saved, Text: string(f.text[f.saved:])})
		}
	}
	if err := m.store.Draft(ctx, l.id, drafts); err != nil {
		return err
	}
	for _, d := range drafts {
		l.flights[flightKey{d.Item, d.Stream}].saved = d.Offset + int64(len(d.Text))
	}
	l.unsaved = 0
	return nil
}

// sweepBatch bounds what one pass takes on of what the pass takes off its list.
const sweepBatch = 100

// Sweep does what is overdue: asks past their deadline, threads idle for long,
// ephemeral threads nobody uses, events nobody needs. Each is an ordinary compare-and-set, so passes
// may overlap and repeat.
func (m *Machine) Sweep(ctx context.Context) error {
	now := m.now()
	m.dismiss(ctx)
	due, err := m.store.Due(ctx, now, sweepBatch)
	if err != nil {
		return failed("find overdue asks", err)
	}
	for _, id := range due {
		err := m.change(ctx, thole.SystemActor, id, "thread.expire_asks", func(_ *live, w *writer) error { return w.expire() })
		if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
			return err
		}
	}
	m.unload(now)
	if err := m.dropEphemeral(ctx, now); err != nil {
		return err
	}
	return m.compactResting(ctx, now)
}

// compactEvery is how often resting threads are looked for.
const compactEvery = time.Hour

// compactResting removes the events of threads that nothing happened to for as
// long as events are kept.
func (m *Machine) compactResting(ctx context.Context, now time.Time) error {
	m.mu.Lock()
	early := now.Sub(m.compacted) < compactEvery
	if !early {
		m.compacted = now
	}
	m.mu.Unlock()
	if early {
		return nil
	}
	before := now.Add(-m.cfg.KeepEvents)
	ids, err := m.store.Resting(ctx, before, sweepBatch)
	if err != nil {
		return failed("find resting threads", err)
	}
	for _, id := range ids {
		rests := func(t fold.Thread) error {
			if t.Updated.Before(before) {
				return nil
			}
			return errBusyAgain
		}
		_, err := m.Compact(ctx, thole.SystemActor, id, math.MaxInt64, rests)
		if err != nil && !errors.Is(err, errBusyAgain) && thole.CodeOf(err) != thole.CodeNotFound {
			return err
		}
	}
	return nil
}

// errBusyAgain: something happened to a thread that was found resting.
var errBusyAgain = errors.New("thread: not resting any more")

// unload forgets threads that nobody used for a while.
func (m *Machine) unload(now time.Time) {
	for _, l := range m.all() {
		select {
		case <-l.lock:
		default:
			continue // in use
		}
		for s := range l.subs {
			if s.over() {
				delete(l.subs, s)
			}
		}
		if l.st != nil && !l.dead && len(l.subs) == 0 && l.st.Open == nil && !l.unsure && now.Sub(l.used) >= m.idle(l) {
			was := l.attached.Load()
			m.forget(l)
			if was {
				e := event.Event{Thread: l.id, Time: now, Actor: thole.SystemActor}
				m.notifyWatchers(l.st.Row.Thread.Owner, []event.Event{statusEvent(e, l.st.Row.Status(false))})
			}
		}
		l.release()
	}
}

func (m *Machine) idle(l *live) time.Duration {
	if l.st.Row.Thread.Ephemeral {
		return m.cfg.UnloadEphemeral
	}
	return m.cfg.Unload
}

// dropEphemeral deletes ephemeral threads that are not loaded. On a shared store
// another process may have one loaded, so only old ones go.
func (m *Machine) dropEphemeral(ctx context.Context, now time.Time) error {
	before := now.Add(-m.cfg.UnloadEphemeral)
	if m.shared {
		before = now.Add(-24 * time.Hour)
	}
	ids, err := m.store.Ephemeral(ctx, before, math.MaxInt32) // all: those in use stay, and may be many
	if err != nil {
		return failed("find ephemeral threads", err)
	}
	for _, id := range ids {
		if m.loaded(id) {
			continue
		}
		if err := m.Delete(ctx, thole.SystemActor, id); err != nil && thole.CodeOf(err) != thole.CodeNotFound {
			return err
		}
	}
	return nil
}
