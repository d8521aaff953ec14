package delivery_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// A batch of which nobody knows whether it arrived goes again only if a person says so,
// and knows that it may arrive twice.
func TestReleaseOfWhatMayHaveArrived(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		_, err := r.Unknown(ctx, actor, p.Attempt.Fence(), "no answer")
		r.ok(err)
		if _, err := r.Release(ctx, actor, p.Batch.ID, false); thole.CodeOf(err) != thole.CodeHeld || !strings.Contains(thole.HintOf(err), "--anyway") {
			t.Fatalf("released without a word: %v", err)
		}
		if _, err := r.Release(ctx, thole.Actor{User: "somebody", Via: "socket"}, p.Batch.ID, true); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("released by another user: %v", err)
		}
		for range 2 { // an answer that was lost is asked for again
			b, err := r.Release(ctx, actor, p.Batch.ID, true)
			r.ok(err)
			if b.Replay != thole.ReplayAutomatic || b.ReleasedBy != actor.User || b.ReleasedGeneration != 1 {
				t.Fatalf("after the release: %+v", b)
			}
		}
		r.check()
		var rows []delivery.Audit
		for _, a := range r.batch(p.Batch.ID).Ledger {
			if a.Event == "batch.release" {
				rows = append(rows, a)
			}
		}
		if len(rows) != 1 || rows[0].Actor.User != actor.User || rows[0].Proof["held_for"] != "acceptance_unknown" || rows[0].Proof["in_doubt"] != string(p.Attempt.ID) {
			t.Fatalf("ledger %+v", rows)
		}
		again := r.begin("a")
		if again.Attempt.Generation != 2 {
			t.Fatalf("it is sent as generation %d", again.Attempt.Generation)
		}
		if stale, err := r.Accept(ctx, actor, p.Attempt.Fence(), delivery.Acceptance{Turn: "late"}); err != nil || !stale {
			t.Fatalf("the late answer of the first call counts: %v %v", stale, err)
		}
		r.accept(again, "turn")
		if _, err := r.Lost(ctx, actor, again.Attempt.Fence(), "cut"); err != nil {
			t.Fatal(err)
		}
		if b := r.batch(p.Batch.ID).Batch; b.Replay != thole.ReplayManual {
			t.Fatalf("what was lost after a release is not held: %+v", b)
		}
	})
}

// What was held before it was ever sent needs no such word, and one that is not held no release.
func TestReleaseOfWhatWasNeverSent(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		b := r.head("a").Batch
		if _, err := r.Release(ctx, actor, b.ID, true); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("released what goes by itself: %v", err)
		}
		r.ok(r.Hold(ctx, actor, b.LaneID, b.ID, "policy", nil))
		_, err := r.Release(ctx, actor, b.ID, false)
		r.ok(err)
		p := r.begin("a")
		r.accept(p, "turn")
		r.see(p, "turn", thole.TurnEventCompleted)
		if got := r.batch(b.ID).Batch.CloseReason; got != thole.CloseDelivered {
			t.Fatalf("closed as %q", got)
		}
		if _, err := r.Release(ctx, actor, b.ID, true); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("released what is closed: %v", err)
		}
	})
}

// The command of a job is given to one executor, and a thread runs so many at a time.
func TestCommandsArePlacedOnce(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		command := func(s *delivery.Submit) { s.Command = &delivery.Command{Argv: []string{"make", "test"}, Turn: "t"} }
		id := r.submit("a", thole.TargetThole, command)
		r.ok(r.Place(ctx, actor, id, "x"))
		r.ok(r.Place(ctx, actor, id, "x"))
		if err := r.Place(ctx, actor, id, "y"); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("given to a second executor: %v", err)
		}
		all, err := r.Commands(ctx)
		r.ok(err)
		if len(all) != 1 || all[0].Executor != "x" || len(all[0].Command.Argv) != 2 || all[0].Command.Turn != "t" {
			t.Fatalf("commands %+v", all)
		}
		for range 15 {
			r.submit("a", thole.TargetThole, command)
		}
		if _, _, err := r.Submit(ctx, actor, r.submission("a", thole.TargetThole, command)); thole.CodeOf(err) != thole.CodeOverloaded {
			t.Fatalf("a seventeenth: %v", err)
		}
		r.submit("b", thole.TargetThole, command)
		r.finish(id, thole.JobReady, "ok")
		r.submit("a", thole.TargetThole, command)
		if err := r.Place(ctx, actor, id, "x"); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("a job that is over was placed: %v", err)
		}
		for _, bad := range []func(*delivery.Submit){
			func(s *delivery.Submit) { s.Command = &delivery.Command{} },
			func(s *delivery.Submit) { s.Command = &delivery.Command{Argv: []string{"a\x00b"}} },
			func(s *delivery.Submit) { s.Command = &delivery.Command{Argv: []string{strings.Repeat("x", 70<<10)}} },
			func(s *delivery.Submit) { command(s); s.Supervised = true },
			func(s *delivery.Submit) { command(s); s.Target = thole.TargetCLI },
		} {
			if _, _, err := r.Submit(ctx, actor, r.submission("c", thole.TargetThole, bad)); thole.CodeOf(err) != thole.CodeInvalid {
				t.Errorf("taken: %v", err)
			}
		}
	})
}

// What no channel reaches stands before nothing, is sent after the others once a person says
// so, with nothing that the person did not see, and ends by its window or a person's word.
func TestReleaseFromAside(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		aside := func() thole.BatchID {
			r.ready("a", thole.TargetDesktop)
			head := r.head("a")
			r.ok(r.Hold(ctx, actor, head.Lane.ID, head.Batch.ID, thole.HoldNoChannel, nil))
			return head.Batch.ID
		}
		first, second := aside(), aside()
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		if p.Batch.ID == first || p.Batch.ID == second {
			t.Fatal("what no channel reaches is first")
		}
		_, err := r.Release(ctx, actor, first, false)
		r.ok(err)
		r.finish(r.submit("a", thole.TargetDesktop), thole.JobReady, "later")
		if b := r.batch(first).Batch; b.Jobs != 1 || b.State != thole.BatchQueued || b.Seq <= p.Batch.Seq {
			t.Fatalf("after the release: %+v", b)
		}
		r.check()
		_, err = r.CloseHead(ctx, actor, p.Lane.ID, second, thole.CloseOperatorUnconfirmed)
		r.ok(err)
		if b := r.batch(second).Batch; b.CloseReason != thole.CloseOperatorUnconfirmed {
			t.Fatalf("after a person ended it: %+v", b)
		}
		if b := r.head("a"); b.Batch.ID != p.Batch.ID {
			t.Fatalf("first is now %+v", b.Batch)
		}
		r.check()
	})
}
