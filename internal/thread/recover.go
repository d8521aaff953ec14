package thread

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
)

// Fate is what becomes of a turn that was running when its process ended.
type Fate string

const (
	FateResume    Fate = "resume"    // the runner takes it up again
	FateInterrupt Fate = "interrupt" // it ends visibly as interrupted
	FateLeave     Fate = "leave"     // another process has it
)

// Recover takes up every open turn: those nobody had begun are woken, those
// that ran meet the fate the runner gives them, those parked on an ask wait on.
// Start calls it; repeating it is harmless.
func (m *Machine) Recover(ctx context.Context) error {
	after := thole.ThreadID("")
	for {
		ids, err := m.store.Busy(ctx, after, sweepBatch)
		if err != nil {
			return failed("find open turns", err)
		}
		for _, id := range ids {
			if err := m.recover(ctx, id); err != nil && thole.CodeOf(err) != thole.CodeNotFound {
				return err
			}
		}
		if len(ids) < sweepBatch {
			return nil
		}
		after = ids[len(ids)-1]
	}
}

func (m *Machine) recover(ctx context.Context, id thole.ThreadID) error {
	return m.change(ctx, thole.SystemActor, id, "thread.recover", func(_ *live, w *writer) error {
		t := w.s.Open
		if t == nil || fold.SlotOf(t) == fold.Parked {
			return nil
		}
		wake := func(r Runner) { r.Wake(id, t.ID) }
		if t.Phase == thole.PhaseQueued {
			w.call(wake)
			return nil
		}
		switch m.fate(ctx, w.s.Row.View(w.loaded), *t) {
		case FateLeave:
		case FateResume:
			w.call(wake)
		default:
			w.endTurn(thole.OutcomeInterrupted, &thole.TurnError{
				Code: thole.ErrProviderCrashed, Message: "the runtime stopped while this turn was running",
				Hint: "send the message again to continue",
			})
		}
		return w.err
	})
}

// Without a runner, a turn whose process is certainly gone is interrupted.
func (m *Machine) fate(ctx context.Context, t fold.Thread, turn fold.Turn) Fate {
	if r := m.runs(); r != nil {
		return r.Recover(ctx, t, turn)
	}
	if m.shared {
		return FateLeave
	}
	return FateInterrupt
}

// woke notes that the store has news of a thread. It runs on the store's
// goroutine and does not block.
func (m *Machine) woke(id thole.ThreadID) {
	m.mu.Lock()
	m.woken[id] = true
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// follow brings loaded threads up to what other processes wrote, and notifies
// watchers of the others.
func (m *Machine) follow(ctx context.Context) {
	m.mu.Lock()
	woken := m.woken
	m.woken = map[thole.ThreadID]bool{}
	watched := len(m.watchers) > 0
	m.mu.Unlock()
	everything := woken[""]
	for _, l := range m.all() {
		if !everything && !woken[l.id] {
			continue
		}
		delete(woken, l.id)
		if err := l.acquire(ctx); err != nil {
			return
		}
		if l.st != nil && !l.dead {
			_, err := m.refresh(ctx, l)
			if err == nil {
				err = m.drafts(ctx, l)
			}
			if err != nil && ctx.Err() == nil && !l.dead {
				l.unsure = true
				m.cfg.Log.Warn("thread cannot follow the store", "thread", l.id, "err", err)
			}
		}
		l.release()
	}
	delete(woken, "")
	if watched && everything {
		// News may have been missed: the threads that changed last are the likely ones.
		rows, err := m.store.Threads(ctx, ThreadQuery{Scope: authz.Scope{All: true}, Desc: true, Limit: sweepBatch})
		if err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("watchers cannot catch up", "err", err)
		}
		for _, r := range rows {
			if m.live(r.Thread.ID) == nil {
				woken[r.Thread.ID] = true
			}
		}
	}
	if watched {
		for id := range woken {
			m.showWatchers(ctx, id)
		}
	}
}

// showWatchers shows watchers how a thread that is not loaded here looks now.
func (m *Machine) showWatchers(ctx context.Context, id thole.ThreadID) {
	row, err := m.store.Thread(ctx, id)
	switch {
	case errors.Is(err, ErrNone):
		m.notifyWatchers(thole.Owner{}, []event.Event{{Thread: id, Time: m.now(), Kind: event.ThreadDeleted}})
		return
	case err != nil:
		return
	}
	e := event.Event{Thread: id, Time: row.Thread.Updated, Kind: event.ThreadUpdated}
	e.Data.Name, e.Data.Archived, e.Data.Pinned = &row.Thread.Name, &row.Thread.Archived, &row.Thread.Pinned
	m.notifyWatchers(row.Thread.Owner, []event.Event{e, statusEvent(e, row.Status(false))})
}
