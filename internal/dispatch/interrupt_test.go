package dispatch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// unready is a shelf that never gets to the end of a restore.
type unready struct {
	*shelf
	tried chan struct{} // one token
	fail  error         // at once, instead of taking for ever
}

func (u *unready) Restore(ctx context.Context, _ dispatch.ExecutorWorkspace) error {
	select {
	case u.tried <- struct{}{}:
	default:
	}
	if u.fail != nil {
		return u.fail
	}
	<-ctx.Done()
	return ctx.Err()
}

// A turn is stopped before its agent could begin: while its files are laid, and
// between two tries to.
func TestInterruptBeforeTheAgentBegins(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{"restoring": nil, "between tries": errors.New("no store")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unready{tried: make(chan struct{}, 1), fail: fail}
			r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) {
				u.shelf = c.Workspaces.(*shelf)
				c.Workspaces = u
			})
			id := r.thread()
			turn := r.start(id, "sim: say never")
			<-u.tried
			if fail != nil {
				waitFor(t, func() bool {
					row, err := r.db.Queue().Get(context.Background(), turn)
					return err == nil && row.LastError != ""
				})
			}
			if err := r.Interrupt(context.Background(), me, id, turn); err != nil {
				t.Fatal(err)
			}
			if got := r.settled(id, turn); got.Outcome != thole.OutcomeInterrupted || got.Phase != thole.PhaseCanceled || got.Error != nil {
				t.Errorf("%+v, %+v", got, got.Error)
			}
		})
	}
}

// hasty stops a turn when the first report of its run is on its way.
type hasty struct {
	thread.Service
	turn thole.TurnID
	once sync.Once
}

func (h *hasty) Apply(ctx context.Context, ref thread.TurnRef, events []event.Event) (err error) {
	if ref.Turn == h.turn {
		h.once.Do(func() { err = h.Interrupt(ctx, thole.SystemActor, ref.Thread, h.turn) })
	}
	return errors.Join(err, h.Service.Apply(ctx, ref, events))
}

// A turn in a warm executor is stopped before the thread hears of its run, and ends at
// once. Its run ends too, or the next turn could not begin.
func TestInterruptBeforeTheFirstReport(t *testing.T) {
	t.Parallel()
	h := &hasty{turn: thole.NewID[thole.TurnID](time.Now())}
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) {
		h.Service = c.Threads
		c.Threads = h
	})
	id := r.thread()
	r.settled(id, r.start(id, "sim: say warm"))
	if _, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, ID: h.turn, Input: thole.Text("sim: hang")}); err != nil {
		t.Fatal(err)
	}
	var row queue.Row
	waitFor(t, func() bool {
		var err error
		row, err = r.db.Queue().Get(context.Background(), h.turn)
		return err == nil && row.State == queue.Done
	})
	if got := r.turn(id, h.turn); got.Outcome != thole.OutcomeInterrupted || row.Attempt != 0 {
		t.Errorf("%d failed tries: %+v, %+v", row.Attempt, got, got.Error)
	}
	next := r.start(id, "sim: say next")
	if got := r.settled(id, next); got.Outcome != thole.OutcomeCompleted {
		t.Errorf("%+v, %+v", got, got.Error)
	}
}
