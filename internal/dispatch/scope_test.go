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
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
)

// An executor of scope turn lives as long as its turn; the next turn has another
// one, with the files of the first.
func TestAnExecutorForEachTurn(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Scope = executor.ScopeTurn })
	id := r.thread()
	seen := map[thole.ExecutorID]bool{}
	for _, prompt := range []string{"sim: run echo kept > f ;; run cat f", "sim: run cat f"} {
		turn := r.start(id, prompt)
		got := r.settled(id, turn)
		if got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "kept") {
			t.Fatalf("%+v said %q", got, r.said(id, turn))
		}
		if seen[got.Executor] {
			t.Errorf("executor %s again", got.Executor)
		}
		seen[got.Executor] = true
		r.gone(got.Executor)
	}
}

// gone waits until an executor is removed, in its row and in fact.
func (r *rig) gone(id thole.ExecutorID) {
	r.t.Helper()
	r.becomes(id, executor.RowDeleted)
	if info, err := r.driver.Inspect(context.Background(), id); err != nil || info.State != executor.Missing {
		r.t.Errorf("%+v, %v", info, err)
	}
}

func (r *rig) becomes(id thole.ExecutorID, want executor.RowState) {
	r.t.Helper()
	waitFor(r.t, func() bool {
		row, err := r.db.Executors().Get(context.Background(), id)
		return err == nil && row.State == want
	})
}

// A thread that is deleted while its turn runs, or while it waits for a human
// with nothing running, leaves no executor behind, whatever its scope.
func TestADeletedThreadLeavesNoExecutor(t *testing.T) {
	t.Parallel()
	for _, scope := range []executor.Scope{executor.ScopeTurn, executor.ScopeThread} {
		for name, prompt := range map[string]string{"running": "sim: say begun ;; wait 60s", "parked": "sim: say begun ;; ask Which? | red | blue"} {
			t.Run(string(scope)+" "+name, func(t *testing.T) {
				ctx := context.Background()
				r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Scope, c.ParkAfter = scope, 10*time.Millisecond })
				id := r.thread()
				turn := r.start(id, prompt)
				r.until(id, func(e event.Event) bool {
					return e.Turn == turn && e.Kind == event.ItemCompleted && e.Data.Item.Text == "begun"
				})
				where := r.turn(id, turn).Executor
				if name == "parked" {
					r.becomes(where, executor.RowStopped) // nothing runs while the question waits
					waitFor(t, func() bool {
						row, err := r.db.Queue().Get(ctx, turn)
						return err == nil && row.State == queue.Parked
					})
				}
				if err := r.Delete(ctx, me, id); err != nil {
					t.Fatal(err)
				}
				r.gone(where)
				waitFor(t, func() bool {
					row, err := r.db.Queue().Get(ctx, turn)
					return err == nil && row.State == queue.Done
				})
			})
		}
	}
}

// Nobody asks for a sweep: the timer finds what is overdue by the store's clock.
func TestAnIdleExecutorStopsAndGoesByItself(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	clock := storetest.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	r := newWorld(t).rig(t, storetest.SQLite(t, clock), func(c *dispatch.Config) { c.SweepEvery = 20 * time.Millisecond })
	id := r.thread()
	turn := r.start(id, "sim: run echo kept > f")
	where := r.settled(id, turn).Executor
	waitFor(t, func() bool {
		row, err := r.db.Queue().Get(context.Background(), turn)
		return err == nil && row.State == queue.Done
	})
	if row, err := r.db.Executors().Get(context.Background(), where); err != nil || row.State != executor.RowRunning {
		t.Fatalf("%+v, %v", row, err)
	}
	ahead.Store(int64(21 * time.Minute)) // the default is 20
	r.becomes(where, executor.RowStopped)
	if info, err := r.driver.Inspect(context.Background(), where); err != nil || info.State != executor.Stopped {
		t.Fatalf("%+v, %v", info, err)
	}
	ahead.Store(int64(25 * time.Hour)) // and 24 h after that
	r.gone(where)
	again := r.start(id, "sim: run cat f")
	if r.settled(id, again); !strings.Contains(r.said(id, again), "kept") {
		t.Errorf("said %q", r.said(id, again))
	}
}

// A stop that a sweep asked for is not given to an executor that was active again
// meanwhile; one that a user asked for is, also while the other still waits.
func TestASweptStopLooksAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	where := r.settled(id, r.start(id, "sim: say hello")).Executor
	swept := queue.Item{Kind: queue.Stop, Turn: thole.NewID[thole.TurnID](time.Now()), Thread: id, User: "u"}
	if err := r.db.Queue().Enqueue(ctx, swept); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		row, err := r.db.Queue().Get(ctx, swept.Turn)
		return err == nil && row.State == queue.Done
	})
	if row, err := r.db.Executors().Get(ctx, where); err != nil || row.State != executor.RowRunning {
		t.Fatalf("%+v, %v", row, err)
	}
	if err := r.disp.Close(ctx, id); err != nil {
		t.Fatal(err)
	}
	r.becomes(where, executor.RowStopped)
}
