package delivery_test

import (
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/testkit/crash"
)

const keep = 30 * 24 * time.Hour

// What ended is kept for its time and then gone with all its rows; what is open stays, and
// the numbers of a thread go on rising.
func TestForget(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		count := func(table string) (n int) {
			r.ok(r.db.View(ctx, func(tx *sqldb.Tx) error { return tx.QueryRow("select count(*) from " + table).Scan(&n) }))
			return n
		}
		parent := r.submit("a", thole.TargetCLI)
		child := r.submit("a", thole.TargetCLI, func(s *delivery.Submit) { s.Parent = parent })
		_, err := r.Finish(ctx, actor, delivery.Finish{Job: child, State: thole.JobReady, Request: "r", Result: &artifact.Record{
			ID: "file", Job: child, Owner: thole.DefaultOwner, Path: "file", SHA256: strings.Repeat("0", 64), CreatedAt: r.c.Now(), Held: true,
		}})
		r.ok(err)
		r.finish(parent, thole.JobReady, "whole")
		r.c.add(testLimits().WaitWindow)
		r.sweep()
		p := r.begin("a")
		r.accept(p, "t")
		r.see(p, "t", thole.TurnEventCompleted)
		cancelled := r.submit("b", thole.TargetCLI)
		_, err = r.Cancel(ctx, actor, cancelled, "r", "no")
		r.ok(err)
		ledger, err := r.Ledger(ctx, actor, delivery.AuditFilter{LaneID: address("b").LaneID()})
		r.ok(err)
		last := ledger[len(ledger)-1].Seq
		forget := func(want int) {
			t.Helper()
			n, err := r.Forget(ctx, keep)
			r.ok(err)
			if n != want {
				t.Fatalf("%d were forgotten, want %d", n, want)
			}
			r.check()
		}
		r.c.add(keep - time.Millisecond)
		forget(0)
		running := r.submit("a", thole.TargetCLI)
		r.c.add(time.Millisecond)
		file := func(held string) {
			r.ok(r.db.Update(ctx, "test.file", func(tx *sqldb.Tx) error {
				_, err := tx.Exec("update artifacts set removed_at = " + held)
				return err
			}))
		}
		file("0")
		forget(1)
		file("1")
		forget(1)
		forget(0)
		for _, id := range []thole.JobID{parent, child, cancelled} {
			if _, _, err := r.Job(ctx, actor, id); thole.CodeOf(err) != thole.CodeNotFound {
				t.Errorf("job %s: %v", id, err)
			}
		}
		if _, _, err := r.Job(ctx, actor, running); err != nil {
			t.Error(err)
		}
		if n := count("delivery_batches") + count("delivery_attempts") + count("artifacts"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		r.ready("a", thole.TargetCLI)
		if again := r.begin("a"); again.Attempt.Generation <= p.Attempt.Generation || again.Batch.Seq <= p.Batch.Seq {
			t.Errorf("the thread counts from the beginning: %+v", again.Attempt)
		}
		r.submit("b", thole.TargetCLI)
		ledger, err = r.Ledger(ctx, actor, delivery.AuditFilter{LaneID: address("b").LaneID()})
		r.ok(err)
		if ledger[len(ledger)-1].Seq <= last {
			t.Errorf("the ledger went back to %d from %d", ledger[len(ledger)-1].Seq, last)
		}
		if n, err := r.Forget(ctx, 0); n != 0 || err != nil {
			t.Errorf("without a retention %d were forgotten, %v", n, err)
		}
	})
}

// TestKillInForget kills the process before and after every removal.
func TestKillInForget(t *testing.T) {
	crash.Enumerate(t, func(w *crash.Work) error {
		s, err := openSite(w.Dir, w.Hook)
		if err != nil {
			return err
		}
		defer s.db.Close()
		for n := range 2 {
			id, err := s.submit("a", n)
			if err != nil {
				return err
			}
			if _, err := s.m.Cancel(ctx, actor, id, "r", "no"); err != nil {
				return err
			}
		}
		id, err := s.submit("a", 5)
		if err != nil {
			return err
		}
		w.Ack(string(id))
		time.Sleep(2 * time.Millisecond) // of store time, for what ended to be older than the retention
		_, err = s.m.Forget(ctx, time.Millisecond)
		return err
	}, func(t *testing.T, dir string, acked []string, killed string) {
		s, err := openSite(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.db.Close()
		for _, id := range acked {
			if _, _, err := s.m.Job(ctx, actor, thole.JobID(id)); err != nil {
				t.Errorf("open work was forgotten: %v", err)
			}
		}
		if found, err := s.db.CheckDelivery(ctx); err != nil || len(found) > 0 {
			t.Errorf("%v %v", found, err)
		}
		if _, err := s.m.Forget(ctx, time.Millisecond); err != nil {
			t.Error(err)
		}
	})
}
