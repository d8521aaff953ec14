package store_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

func openPipeline(dir string, hook sqldb.Hook) (*store.DB, error) {
	return storetest.OpenAt(context.Background(), sqldb.Config{Path: filepath.Join(dir, "home", "thole.db"), Hook: hook})
}

// pipelineWork takes two turns and their executor through every durable step of
// the queue and the executor rows, acknowledging what returned.
func pipelineWork(w *crash.Work) error {
	db, err := openPipeline(w.Dir, w.Hook)
	if err != nil {
		return err
	}
	ctx, q, rows := context.Background(), db.Queue(), db.Executors()
	a, b, stop := thole.TurnID(uuid(1)), thole.TurnID(uuid(2)), thole.TurnID(uuid(3))
	thread, id := thole.ThreadID(uuid(1)), thole.ExecutorID(uuid(9))
	var failed error
	do := func(ack string, err error) {
		if failed == nil {
			failed = err
		}
		if err == nil {
			w.Ack(ack)
		}
	}
	changed := func(ack string, ok bool, err error) {
		if err == nil && !ok {
			err = thole.Errorf(thole.CodeConflict, "%s changed nothing", ack)
		}
		do(ack, err)
	}
	claim := func(ack string, lease time.Duration, maintenance bool) queue.Lease {
		got, err := q.Claim(ctx, queue.Claim{Owner: "x", Token: "token " + ack, Max: 1, Lease: lease, Maintenance: maintenance})
		if err == nil && len(got) != 1 {
			err = thole.Errorf(thole.CodeConflict, "%s: claimed %d", ack, len(got))
		}
		do(ack, err)
		if len(got) == 0 {
			return queue.Lease{}
		}
		return got[0]
	}
	do("enqueued", q.Enqueue(ctx, queue.Item{Turn: a, Thread: thread, User: "u"}, queue.Item{Turn: b, Thread: thread, User: "u"}))
	claim("claimed once", 0, false)
	_, err = q.Reap(ctx, false, 10)
	do("reaped", err)
	l := claim("claimed", time.Hour, false)
	_, err = rows.Ensure(ctx, executor.Row{ID: id, Thread: thread, Scope: executor.ScopeThread, Driver: "d"})
	do("intended", err)
	mark := func(ack string, f func(context.Context, thole.ExecutorID) (bool, error)) {
		ok, err := f(ctx, id)
		changed(ack, ok, err)
	}
	mark("running", rows.MarkRunning)
	do("minted", db.GatewayTokens().Mint(ctx, store.GatewayToken{Token: [32]byte{1}, Proof: [32]byte{2}, Executor: id, Thread: thread, Provider: "test"}))
	mark("restored", rows.MarkRestored)
	do("touched", rows.Touch(ctx, id))
	_, err = q.Renew(ctx, a, l.Token, time.Hour)
	do("renewed", err)
	do("waiting", q.Wait(ctx, a, l.Token, true))
	do("parked", q.Park(ctx, a, l.Token))
	ok, err := q.Unpark(ctx, a)
	changed("unparked", ok, err)
	l = claim("claimed untried", time.Hour, false)
	do("put back", q.PutBack(ctx, a, l.Token, time.Hour, "the store is away"))
	do("hastened", q.Hasten(ctx, a))
	l = claim("claimed again", time.Hour, false)
	do("released", q.Release(ctx, a, l.Token, 0, "why"))
	ok, err = q.Cancel(ctx, a)
	changed("cancelled", ok, err)
	l = claim("claimed to end", time.Hour, false)
	sync := func(ack string, failure error) {
		ok, err := rows.BeginSync(ctx, id, ack)
		changed(ack+" begun", ok, err)
		ok, err = rows.EndSync(ctx, id, "snap", failure)
		changed(ack, ok, err)
	}
	sync("failed sync", thole.Errorf(thole.CodeUnavailable, "no space"))
	sync("sync", nil)
	do("completed", q.Complete(ctx, a, l.Token))
	do("asked to stop", q.Enqueue(ctx, queue.Item{Kind: queue.Stop, Turn: stop, Thread: thread, User: "u"}))
	l = claim("claimed second", time.Hour, false)
	do("completed second", q.Complete(ctx, b, l.Token))
	l = claim("claimed maintenance", time.Hour, true)
	mark("stopped", rows.MarkStopped)
	sync("sync after stop", nil)
	mark("deleted", rows.MarkDeleted)
	do("completed maintenance", q.Complete(ctx, stop, l.Token))
	_, err = rows.Ensure(ctx, executor.Row{ID: thole.ExecutorID(uuid(10)), Thread: thread, Scope: executor.ScopeThread, Driver: "d"})
	do("intended another", err)
	ok, err = rows.MarkMissing(ctx, thole.ExecutorID(uuid(10)))
	changed("missing", ok, err)
	_, err = q.Prune(ctx, time.Now().Add(time.Hour), 1)
	do("pruned", err)
	return failed
}

// Whatever was acknowledged is there after the kill, and nothing is there that
// the steps before it do not allow.
func TestPipelineRowsSurviveAKill(t *testing.T) {
	crash.Enumerate(t, pipelineWork, func(t *testing.T, dir string, acked []string, killed string) {
		db, err := openPipeline(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx := context.Background()
		has := func(ack string) bool { return slices.Contains(acked, ack) }
		row, err := db.Queue().Get(ctx, thole.TurnID(uuid(1)))
		if err != nil {
			if has("enqueued") && !has("pruned") && !strings.Contains(killed, "queue.prune") {
				t.Fatalf("acknowledged turn is gone: %v", err)
			}
			return
		}
		for ack, bad := range map[string]bool{
			"claimed":   !has("parked") && has("claimed") && row.State == queue.Ready,
			"put back":  has("put back") && !has("released") && !strings.Contains(killed, "queue.release") && row.Attempt != 0,
			"waiting":   has("waiting") && !has("claimed untried") && row.State == queue.Leased && !row.Waiting,
			"cancelled": has("cancelled") && !row.Cancel,
			"completed": has("completed") && row.State != queue.Done,
		} {
			if bad {
				t.Errorf("%s was acknowledged, row is %+v", ack, row)
			}
		}
		if has("hastened") && row.State == queue.Ready {
			if got, err := db.Queue().Claim(ctx, queue.Claim{Owner: "x", Token: "after", Max: 1, Lease: time.Hour}); err != nil || len(got) != 1 {
				t.Errorf("hastened was acknowledged, and nothing is due: %v, %v", got, err)
			}
		}
		tokens, err := crash.Rows(db, "gateway_tokens")
		if err != nil {
			t.Fatal(err)
		}
		if has("minted") && !has("deleted") && !strings.Contains(killed, "executor.deleted") && !strings.Contains(tokens, uuid(9)) {
			t.Errorf("an acknowledged token is gone: %s", tokens)
		}
		ex, err := db.Executors().Get(ctx, thole.ExecutorID(uuid(9)))
		if err != nil {
			if has("intended") {
				t.Fatal(err)
			}
			return
		}
		if has("restored") && !ex.Restored && ex.State != executor.RowDeleted {
			t.Errorf("restore forgotten: %+v", ex)
		}
		if has("sync") && ex.LastSync.IsZero() {
			t.Errorf("sync forgotten: %+v", ex)
		}
		if ex.State == executor.RowDeleted && (ex.SyncStatus != executor.SyncSuccess || ex.SyncStarted.Before(ex.Stopped)) {
			t.Errorf("deleted without a sync after the stop: %+v", ex)
		}
		if ex.State == executor.RowDeleted && strings.Contains(tokens, uuid(9)) {
			t.Errorf("the executor is deleted and its agents' token is not: %s", tokens)
		}
		if has("deleted") && ex.State != executor.RowDeleted {
			t.Errorf("removal forgotten: %+v", ex)
		}
	})
}
