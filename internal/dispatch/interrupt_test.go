package dispatch_test

import (
	"context"
	"errors"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/store/storetest"
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
