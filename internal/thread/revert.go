package thread

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Revert implements Service. The log keeps what was reverted; nothing that is folded of it
// shows it any more.
func (m *Machine) Revert(ctx context.Context, actor thole.Actor, id thole.ThreadID, before thole.TurnID) (fold.Thread, error) {
	l, err := m.hold(ctx, actor, id, actions["thread.revert"])
	if err != nil {
		return fold.Thread{}, err
	}
	l.release()
	t, err := m.Turn(ctx, actor, id, before)
	if err != nil {
		return fold.Thread{}, err
	}
	var out fold.Thread
	err = whenSaved(ctx, "revert", func(ctx context.Context) error {
		return m.change(ctx, actor, id, "thread.revert", func(_ *live, w *writer) error {
			if w.s.Open != nil {
				return thole.Errorf(thole.CodeBusy, "turn %s is running", w.s.Open.ID).WithHint("interrupt it first, or wait for its end")
			}
			w.add(event.ThreadReverted, "", event.Data{Cut: &event.Cut{Turn: t.ID, Number: t.Number}})
			out = w.s.Row.View(w.loaded)
			return w.err
		})
	})
	if errors.Is(err, ErrNone) {
		err = errNoTurn(before)
	}
	return out, err
}

// A turn has its outcome before its files and its agent's memory are saved. What needs them
// waits that long.
const (
	savingTime = 30 * time.Second
	savingLook = 50 * time.Millisecond
)

// whenSaved repeats do, which a verb names, while the thread's last turn is still being saved.
func whenSaved(ctx context.Context, verb string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, savingTime, thole.Errorf(thole.CodeBusy, "the files of the thread's last turn are still being saved").
		WithHint("%s it when they are, or up to an earlier turn; thole thread show says how far they are", verb))
	defer cancel()
	tick := time.NewTicker(savingLook)
	defer tick.Stop()
	for {
		err := do(ctx)
		if !errors.Is(err, ErrSaving) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
