package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/store/storetest"
)

// An agent that fills the disk ends its turn, by its own code; what it made is
// saved, a file that only looks large does not count, and the next turn may clean up.
func TestAnExecutorThatTakesTooMuchDisk(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Room.Disk, c.DiskEvery = 32<<20, 10*time.Millisecond })
	id := r.thread()
	turn := r.start(id, "sim: run truncate -s 1T sparse && rm sparse && head -c 40000000 /dev/zero > big ;; hang")
	got := r.settled(id, turn)
	if got.Outcome != thole.OutcomeFailed || got.Error == nil || got.Error.Code != thole.ErrLimit || !strings.Contains(got.Error.Hint, "executor.disk_mb") {
		t.Fatalf("the turn ended %s: %+v", got.Outcome, got.Error)
	}
	turn = r.start(id, "sim: run sleep 0.2; rm big && echo cleaned")
	if got = r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "cleaned") {
		t.Errorf("cleaning up ended %s: %+v", got.Outcome, got.Error)
	}
	turn = r.start(id, "sim: run truncate -s 1T sparse; sleep 0.2; rm sparse; echo small")
	if got = r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "small") {
		t.Errorf("a sparse file ended the turn %s: %+v", got.Outcome, got.Error)
	}
}

// Where as many executors run as may, an idle one makes room; while all work, a turn
// waits and says so.
func TestNoMoreExecutorsThanMayRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.MaxLive = 2 })
	a, b, c := r.thread(), r.thread(), r.thread()
	r.settled(a, r.start(a, "sim: say idle"))
	long := r.start(b, "sim: say working ;; wait 1m")
	r.until(b, func(e event.Event) bool { return e.Kind == event.ItemDelta && e.Turn == long })
	turn := r.start(c, "sim: say there ;; wait 1m")
	waited := r.until(c, func(e event.Event) bool {
		return e.Turn == turn && e.Kind == event.TurnPhase && e.Data.Phase == thole.PhaseQueued && strings.Contains(e.Data.Text, "max_live")
	})
	r.until(c, func(e event.Event) bool { return e.Kind == event.ItemDelta && e.Turn == turn })
	row, err := r.db.Executors().OfThread(ctx, a)
	if err != nil || row.State != executor.RowStopped || row.SyncStatus != executor.SyncSuccess {
		t.Errorf("after %v the idle executor is %s, saved: %s (%v)", waited.Data, row.State, row.SyncStatus, err)
	}
	last := r.start(a, "sim: say back")
	r.until(a, func(e event.Event) bool {
		return e.Turn == last && e.Kind == event.TurnPhase && e.Data.Phase == thole.PhaseQueued && strings.Contains(e.Data.Text, "max_live")
	})
	if err := r.Interrupt(ctx, me, b, long); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(a, last); got.Outcome != thole.OutcomeCompleted {
		t.Errorf("the turn that waited ended %s: %+v", got.Outcome, got.Error)
	}
}

// stuck is a store that never answers.
type stuck struct{ *shelf }

func (stuck) Sync(ctx context.Context, _ dispatch.ExecutorWorkspace, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// A sync that does not end is ended, and the row says why; the turn keeps its answer.
func TestASyncHasATimeOutOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Workspaces, c.SyncTimeout = stuck{w.shelf}, 50*time.Millisecond })
	id := r.thread()
	if got := r.settled(id, r.start(id, "sim: say done")); got.Outcome != thole.OutcomeCompleted {
		t.Errorf("the turn ended %s: %+v", got.Outcome, got.Error)
	}
	row, err := r.db.Executors().OfThread(context.Background(), id)
	if err != nil || row.SyncStatus != executor.SyncFailed || !strings.Contains(row.SyncError, "longer than it may") {
		t.Errorf("the sync is %s: %s (%v)", row.SyncStatus, row.SyncError, err)
	}
}
