package delivery_test

import (
	"encoding/hex"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// owned is what a plugin's result brings with it.
func owned(program string) *thole.PluginTarget {
	return &thole.PluginTarget{Ownership: thole.OwnershipDelivery, Plugin: "p", Session: "s", Epoch: 1, Program: program, Trust: "strict-safe"}
}

// enqueue hands in a result as a plugin does.
func (r *rig) enqueue(thread, key string, t *thole.PluginTarget) (delivery.Job, bool) {
	r.t.Helper()
	id := thole.JobID("00000000-0000-8000-8000-" + (hex.EncodeToString([]byte(key+thread)) + "000000000000")[:12])
	j, fresh, err := r.Enqueue(ctx, actor, delivery.Submit{
		ID: id, Owner: thole.DefaultOwner, Address: address(thread), Target: thole.TargetCLI, Plugin: t,
	}, delivery.Finish{Job: id, State: thole.JobReady, Request: key, Inline: "done"})
	r.ok(err)
	return j, fresh
}

// A plugin's result is there with its target and its place in the queue, or not at all, and
// the same key is the same result.
func TestEnqueueIsOneStep(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		j, fresh := r.enqueue("a", "k", owned("codex"))
		if !fresh || j.State != thole.JobReady || j.Batch == "" || j.Plugin == nil || j.Plugin.Program != "codex" {
			t.Fatalf("%v %+v", fresh, j)
		}
		again, fresh := r.enqueue("a", "k", owned("other"))
		if fresh || again.Plugin.Program != "codex" || again.Version != j.Version {
			t.Errorf("again: %v %+v", fresh, again)
		}
		b := r.batch(j.Batch)
		if len(b.Jobs) != 1 || b.Batch.Plugin == nil || *b.Batch.Plugin != *j.Plugin {
			t.Errorf("%+v", b)
		}
		_, _, err := r.Enqueue(ctx, actor, delivery.Submit{
			ID: j.ID, Owner: thole.DefaultOwner, Address: address("b"), Target: thole.TargetCLI, Plugin: owned("codex"),
		}, delivery.Finish{Job: j.ID, State: thole.JobReady})
		if thole.CodeOf(err) != thole.CodeConflict {
			t.Errorf("the same job for another thread: %v", err)
		}
	})
}

// Results that bring a server travel with those that would start the same one, and with no
// others: nobody's result is let go by what another plugin said.
func TestResultsThatBringAServer(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI) // stands before them
		one, _ := r.enqueue("a", "1", owned("codex"))
		two, _ := r.enqueue("a", "2", owned("codex"))
		three, _ := r.enqueue("a", "3", owned("other"))
		four := r.finish(r.submit("a", thole.TargetCLI), thole.JobReady, "plain")
		lease := owned("codex")
		lease.Ownership = thole.OwnershipExplicit
		five, _ := r.enqueue("a", "5", lease)
		if one.Batch != two.Batch || one.Batch == three.Batch || four.Batch == one.Batch || four.Batch == three.Batch || five.Batch != four.Batch {
			t.Errorf("batches %s %s %s %s %s", one.Batch, two.Batch, three.Batch, four.Batch, five.Batch)
		}
		if b := r.batch(four.Batch); b.Batch.Plugin != nil {
			t.Errorf("a batch of plain results brings %+v", b.Batch.Plugin)
		}
	})
}

// What cannot be sent for a lasting reason is held in the step that says so, counts nothing,
// and goes again when a person lets it.
func TestRefuse(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		stale, err := r.Refuse(ctx, actor, p.Attempt.Fence(), "no such program", thole.HoldNoServer)
		if stale || err != nil {
			t.Fatal(stale, err)
		}
		v := r.head("a")
		if v.Batch.HeldFor != thole.HoldNoServer || v.Batch.AttemptCount != 0 || v.Attempts[0].State != thole.AttemptAbandoned || v.Attempts[0].RPC.State != thole.RPCRejected {
			t.Fatalf("%+v %+v", v.Batch, v.Attempts[0])
		}
		if stale, _ := r.Accept(ctx, actor, p.Attempt.Fence(), delivery.Acceptance{Turn: "late"}); !stale {
			t.Error("a late answer settled a refused call")
		}
		if stale, _ := r.Refuse(ctx, actor, p.Attempt.Fence(), "again", thole.HoldNoServer); !stale {
			t.Error("refused twice")
		}
		if _, err := r.Release(ctx, actor, v.Batch.ID, false); err != nil {
			t.Errorf("nothing of it was sent: %v", err)
		}
		r.accept(r.begin("a"), "turn")
	})
}
