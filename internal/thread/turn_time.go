package thread

import (
	"context"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/event/turntime"
)

// clock adds to a commit what the time of a turn was spent on that gets its outcome, or whose
// pipeline is done: its files may have been saved meanwhile, and its last model calls settled.
// A time that cannot be read stays unknown; no turn fails for it.
func (m *Machine) clock(ctx context.Context, w *writer) {
	for _, turn := range w.over() {
		events, calls, err := m.store.Timeline(ctx, w.s.Row.Thread.ID, turn)
		if err != nil {
			m.cfg.Log.Warn("read the time of a turn", "thread", w.s.Row.Thread.ID, "turn", turn, "err", err)
			continue
		}
		for _, e := range w.c.Events {
			if e.Turn == turn {
				events = append(events, e)
			}
		}
		if t, ok := turntime.Split(events, calls); ok {
			if w.c.Spent == nil {
				w.c.Spent = map[thole.TurnID]thole.TurnTime{}
			}
			w.c.Spent[turn] = t
		}
	}
}

// over lists the turns that have their outcome, or the end of their pipeline, by this commit.
func (w *writer) over() (turns []thole.TurnID) {
	for _, e := range w.c.Events {
		if e.Kind == event.TurnEnded || e.Kind == event.TurnPhase && e.Phase.Terminal() {
			turns = append(turns, e.Turn)
		}
	}
	return slices.Compact(turns)
}

// finished reports whether the pipeline is done with a turn by this commit.
func (w *writer) finished(turn thole.TurnID) bool {
	for _, p := range w.c.Phases {
		if p.Turn == turn && p.Phase.Terminal() {
			return true
		}
	}
	return slices.ContainsFunc(w.c.Turns, func(t fold.Turn) bool { return t.ID == turn && t.Phase.Terminal() })
}
