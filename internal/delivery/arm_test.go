package delivery_test

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
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
			lease, stale, err := r.NoteArmPending(ctx, actor, f, "req", "bind")
			if stale || err != nil {
				t.Fatal(stale, err)
			}
			if _, _, err := r.NoteArmPending(ctx, actor, f, "other", "bind"); thole.CodeOf(err) != thole.CodeBusy {
				t.Fatalf("another bridge request got %v", err)
			}
			if again, _, _ := r.NoteArmPending(ctx, actor, f, "req", "bind"); again.ID != lease.ID || again.Fresh {
				t.Fatal("the same request did not get its lease back")
			}
			if stale, _ := r.NoteArm(ctx, actor, f, "req", "wrong lease", ""); !stale {
				t.Fatal("a wrong lease armed")
			}
			for range 2 {
				if stale, err := r.NoteArm(ctx, actor, f, "req", lease.ID, "auto"); stale || err != nil {
					t.Fatal(stale, err)
				}
			}
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
		_, _, err = r.NoteArmPending(ctx, actor, p.Attempt.Fence(), "req", "")
		r.ok(err)
		if stale, err := r.ArmRefused(ctx, actor, p.Attempt.Fence(), "heartbeat is paused"); stale || err != nil {
			t.Fatal(stale, err)
		}
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
		_, _, err = r.NoteArmPending(ctx, actor, p2.Attempt.Fence(), "req", "")
		r.ok(err)
		r.c.add(testLimits().ArmTimeout)
		r.sweep()
		if v := r.head("a"); v.Batch.Replay != thole.ReplayManual {
			t.Fatal("an arming nobody can prove is not held")
		}
	})
}
