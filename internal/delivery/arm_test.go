package delivery_test

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// Only a heartbeat tries again after its cooldown, with a new generation, until
// the budget is used up.
func TestHeartbeatBudget(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.ready("a", thole.TargetDesktop)
		id := r.head("a").Batch.ID
		for gen := int64(1); gen <= testLimits().MaxAttempts; gen++ {
			v := r.head("a")
			p, err := r.Prepare(ctx, actor, v.Lane.ID, id)
			r.ok(err)
			if p.Attempt.Generation != gen {
				t.Fatalf("generation %d, want %d", p.Attempt.Generation, gen)
			}
			f := p.Attempt.Fence()
			lease, stale, err := r.NoteArmPending(ctx, actor, f, "req", print)
			if stale || err != nil {
				t.Fatal(stale, err)
			}
			if _, _, err := r.NoteArmPending(ctx, actor, f, "other", print); thole.CodeOf(err) != thole.CodeBusy {
				t.Fatalf("another bridge request got %v", err)
			}
			if again, _, _ := r.NoteArmPending(ctx, actor, f, "req", print); again.ID != lease.ID || again.Fresh {
				t.Fatal("the same request did not get its lease back")
			}
			if _, stale, _ := r.NoteArm(ctx, actor, f, "req", "wrong lease"); !stale {
				t.Fatal("a wrong lease armed")
			}
			for i := range 2 {
				if again, stale, err := r.NoteArm(ctx, actor, f, "req", lease.ID); stale || err != nil || again != (i > 0) {
					t.Fatal(again, stale, err)
				}
			}
			r.seen = thole.AutomationPaused
			if n := r.head("a").Batch.AttemptCount; n != gen {
				t.Fatalf("delivery_attempt_count = %d after %d arms", n, gen)
			}
			r.c.add(testLimits().Cooldown)
			r.sweep()
		}
		if got := r.batch(id).Batch.CloseReason; got != thole.CloseMaxAttempts {
			t.Fatalf("close reason %q", got)
		}
	})
}

func TestArmRefusedStaysAutomatic(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.ready("a", thole.TargetDesktop)
		v := r.head("a")
		p, err := r.Prepare(ctx, actor, v.Lane.ID, v.Batch.ID)
		r.ok(err)
		_, _, err = r.NoteArmPending(ctx, actor, p.Attempt.Fence(), "req", print)
		r.ok(err)
		reconcile := func(p delivery.Parcel, request string, seen thole.AutomationStatus, want thole.DesktopOutcome) {
			t.Helper()
			if out, err := r.Reconcile(ctx, actor, p.Attempt.Fence(), request, seen); out != want || err != nil {
				t.Fatalf("%s, %v, want %s", out, err, want)
			}
		}
		reconcile(p, "other", thole.AutomationPaused, thole.OutcomeLeaseHeld)
		reconcile(p, "req", thole.AutomationActive, thole.OutcomeArmPending)
		reconcile(p, "req", thole.AutomationPaused, thole.OutcomeAbandoned)
		reconcile(p, "req", thole.AutomationPaused, thole.OutcomeStale)
		v = r.head("a")
		if v.Batch.Replay != thole.ReplayAutomatic || v.Batch.AttemptCount != 0 {
			t.Fatalf("%+v", v.Batch)
		}
		r.c.add(testLimits().RetryMin)
		r.sweep()
		p2, err := r.Prepare(ctx, actor, v.Lane.ID, v.Batch.ID)
		r.ok(err)
		if p2.Attempt.Generation != p.Attempt.Generation+1 {
			t.Fatal("a fresh attempt needs a new generation")
		}
		_, _, err = r.NoteArmPending(ctx, actor, p2.Attempt.Fence(), "req", print)
		r.ok(err)
		if _, err := r.CloseHead(ctx, actor, v.Lane.ID, "", thole.CloseCancelled); thole.CodeOf(err) != thole.CodeBusy {
			t.Errorf("closed while its heartbeat is being armed: %v", err)
		}
		r.c.add(testLimits().ArmTimeout)
		r.sweep()
		if v := r.head("a"); v.Batch.HeldFor != thole.HoldArmUnknown {
			t.Fatal("an arming nobody can prove is not held")
		}
		if b := r.binding("a"); b.State != thole.BindingDegraded || b.DegradedFor != "arm_unknown" {
			t.Errorf("%+v", b)
		}
		if b, err := r.CloseHead(ctx, actor, v.Lane.ID, "", thole.CloseOperatorConfirmed); err != nil || b.CloseReason != thole.CloseOperatorConfirmed {
			t.Errorf("%+v, %v", b, err)
		}
	})
}
