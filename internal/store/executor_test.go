package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/store/storetest"
	"pgregory.net/rapid"
)

func wantExecutor(n, thread int) executor.Row {
	return executor.Row{ID: thole.ExecutorID(uuid(n)), Thread: thole.ThreadID(uuid(thread)), Scope: executor.ScopeThread, Driver: "local"}
}

func TestExecutorRows(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		t.Run("a thread has one live executor", func(t *testing.T) {
			rows := open(t).Executors()
			first, err := rows.Ensure(ctx, wantExecutor(1, 1))
			if err != nil || first.State != executor.RowCreating {
				t.Fatal(first, err)
			}
			if again, err := rows.Ensure(ctx, wantExecutor(2, 1)); err != nil || again.ID != first.ID {
				t.Fatal(again, err)
			}
			if ok, err := rows.MarkMissing(ctx, first.ID); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if next, err := rows.Ensure(ctx, wantExecutor(2, 1)); err != nil || next.ID == first.ID {
				t.Fatal(next, err)
			}
			if _, err := rows.OfThread(ctx, thole.ThreadID(uuid(9))); thole.CodeOf(err) != thole.CodeNotFound {
				t.Fatal(err)
			}
		})
		t.Run("a sync that keeps failing keeps no other waiting", func(t *testing.T) {
			rows := open(t).Executors()
			for n := 1; n <= 2; n++ {
				if _, err := rows.Ensure(ctx, wantExecutor(n, n)); err != nil {
					t.Fatal(err)
				}
				_, err1 := rows.MarkRunning(ctx, thole.ExecutorID(uuid(n)))
				_, err2 := rows.MarkRestored(ctx, thole.ExecutorID(uuid(n)))
				if err := errors.Join(err1, err2); err != nil {
					t.Fatal(err)
				}
			}
			_, err1 := rows.BeginSync(ctx, thole.ExecutorID(uuid(1)), "catch-up")
			_, err2 := rows.EndSync(ctx, thole.ExecutorID(uuid(1)), "", errors.New("no \xffspace\x00"))
			now, err3 := rows.Now(ctx)
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			got, err := rows.Stale(ctx, now.Add(time.Minute), 1)
			if err != nil || len(got) != 1 || got[0].ID != thole.ExecutorID(uuid(2)) {
				t.Errorf("%+v, %v", got, err)
			}
			// Just tried is not overdue, failed or not.
			if got, err := rows.Stale(ctx, now.Add(-time.Minute), 10); err != nil || len(got) != 1 {
				t.Errorf("%+v, %v", got, err)
			}
		})
		t.Run("sweeps find what is theirs", func(t *testing.T) {
			rows := open(t).Executors()
			if _, err := rows.Ensure(ctx, wantExecutor(1, 1)); err != nil {
				t.Fatal(err)
			}
			id := thole.ExecutorID(uuid(1))
			must := func(ok bool, err error) {
				t.Helper()
				if !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			must(rows.MarkRunning(ctx, id))
			must(rows.MarkRestored(ctx, id))
			now, err := rows.Now(ctx)
			if err != nil {
				t.Fatal(err)
			}
			later := now.Add(time.Minute)
			count := func(list []executor.Row, err error) int {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				return len(list)
			}
			if n := count(rows.Idle(ctx, later, 10)); n != 1 {
				t.Errorf("%d idle", n)
			}
			if n := count(rows.Stale(ctx, later, 10)); n != 1 {
				t.Errorf("%d stale", n)
			}
			must(rows.BeginSync(ctx, id, "pre.stop"))
			must(rows.EndSync(ctx, id, "snap", nil))
			must(rows.MarkStopped(ctx, id))
			if a, b, c := count(rows.Idle(ctx, later, 10)), count(rows.Stale(ctx, later, 10)), count(rows.Old(ctx, later, 10)); a != 0 || b != 0 || c != 1 {
				t.Errorf("idle %d, stale %d, old %d", a, b, c)
			}
			if n := count(rows.Live(ctx, "", 10)); n != 1 {
				t.Errorf("%d live", n)
			}
		})
	})
}

// Whatever the order of calls, an executor that ran an agent is deleted only
// after a sync that began after its stop succeeded.
func TestNoExecutorIsDeletedUnsynced(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	rows := storetest.SQLite(t, storetest.Clock(func() time.Time { return now })).Executors()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++ // each run has an executor of its own
		ctx := context.Background()
		row, err := rows.Ensure(ctx, wantExecutor(n, n))
		if err != nil {
			rt.Fatal(err)
		}
		id := row.ID
		restored, stopped, good := false, false, false // good: a sync begun after the stop succeeded
		syncing, begunAfterStop := false, false
		check := func(got bool, err error, want bool) bool {
			if err != nil || got != want {
				rt.Fatalf("changed %v (%v), want %v", got, err, want)
			}
			return got
		}
		state := executor.RowCreating
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { now = now.Add(time.Millisecond) },
			"run": func(*rapid.T) {
				ok, err := rows.MarkRunning(ctx, id)
				if check(ok, err, state != executor.RowDeleted) {
					state, stopped, good = executor.RowRunning, false, false
				}
			},
			"restore": func(*rapid.T) {
				ok, err := rows.MarkRestored(ctx, id)
				restored = check(ok, err, state == executor.RowRunning) || restored
			},
			"begin": func(*rapid.T) {
				ok, err := rows.BeginSync(ctx, id, "x")
				if check(ok, err, restored && (state == executor.RowRunning || state == executor.RowStopped)) {
					syncing, begunAfterStop, good = true, stopped, false
				}
			},
			"end": func(rt *rapid.T) {
				var failure error
				if rapid.Bool().Draw(rt, "fails") {
					failure = errors.New("no space")
				}
				ok, err := rows.EndSync(ctx, id, "snap", failure)
				if check(ok, err, syncing) {
					syncing = false
					good = failure == nil && begunAfterStop
				}
			},
			"stop": func(*rapid.T) {
				before, _ := rows.Get(ctx, id)
				ok, err := rows.MarkStopped(ctx, id)
				if check(ok, err, state == executor.RowRunning && (!restored || before.SyncStatus == executor.SyncSuccess)) {
					state, stopped, good = executor.RowStopped, true, false
				}
			},
			"delete": func(*rapid.T) {
				ok, err := rows.MarkDeleted(ctx, id)
				want := (state == executor.RowStopped || state == executor.RowCreating) && (!restored || good)
				if check(ok, err, want) {
					state = executor.RowDeleted
				}
			},
		})
	})
}
