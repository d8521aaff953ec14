package dispatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
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

// together is a driver that stops no executor before so many are to be stopped.
type together struct {
	*local.Driver
	all chan struct{} // closed when they are
	n   atomic.Int32  // how many are missing
}

func (d *together) Stop(ctx context.Context, id thole.ExecutorID) error {
	if d.n.Add(-1) == 0 {
		close(d.all)
	}
	select {
	case <-d.all:
		return d.Driver.Stop(ctx, id)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drowsy is a queue that lets nobody look again by itself.
type drowsy struct{ queue.Store }

func (q drowsy) PutBack(ctx context.Context, turn thole.TurnID, token string, delay time.Duration, why string) error {
	if delay > 0 {
		delay = time.Hour
	}
	return q.Store.PutBack(ctx, turn, token, delay, why)
}

// As many idle executors make room as turns wait, all at once, and each turn begins
// when there is room, not when it happens to look again.
func TestIdleExecutorsGiveWayAtOnce(t *testing.T) {
	const n = 3
	driver := &together{all: make(chan struct{})}
	driver.n.Store(n)
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) {
		driver.Driver = c.Driver.(*local.Driver)
		c.Driver, c.Queue, c.MaxLive = driver, drowsy{c.Queue}, n
	})
	for range n {
		id := r.thread()
		r.settled(id, r.start(id, "sim: say idle"))
	}
	turns := map[thole.ThreadID]thole.TurnID{}
	for range n {
		id := r.thread()
		turns[id] = r.start(id, "sim: say there")
	}
	for id, turn := range turns {
		if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
			t.Errorf("a turn that waited for room ended %s: %+v", got.Outcome, got.Error)
		}
	}
	// More turns than there is room for, and none is idle when they come.
	for range 2 * n {
		id := r.thread()
		turns[id] = r.start(id, "sim: say there")
	}
	for id, turn := range turns {
		if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
			t.Errorf("a turn that waited for room ended %s: %+v", got.Outcome, got.Error)
		}
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

// endless is a store whose trees are never whole.
type endless struct {
	*shelf
	restore, validate bool
}

func (e endless) Restore(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	if !e.restore {
		return e.shelf.Restore(ctx, t)
	}
	<-ctx.Done()
	return ctx.Err()
}

func (e endless) Validate(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	if !e.validate {
		return e.shelf.Validate(ctx, t)
	}
	<-ctx.Done()
	return ctx.Err()
}

// A restore or a check of files that does not end is ended, and the row says why the
// turn did not begin.
func TestPreparingHasATimeOut(t *testing.T) {
	for name, e := range map[string]endless{"restore": {restore: true}, "validate": {validate: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e.shelf = w.shelf
			r := w.rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Workspaces, c.SyncTimeout = e, 50*time.Millisecond })
			id := r.thread()
			turn := r.start(id, "sim: say done")
			poll.Until(t, "a reason", func() bool {
				row, err := r.db.Queue().Get(context.Background(), turn)
				return err == nil && strings.Contains(row.LastError, "longer than it may")
			})
			if err := r.Interrupt(context.Background(), me, id, turn); err != nil {
				t.Fatal(err)
			}
			r.settled(id, turn)
		})
	}
}
