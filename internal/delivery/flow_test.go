package delivery_test

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store/storetest"
)

func exercise(t *testing.T, fn func(t *testing.T, r *rig)) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newRig(t, open(t), testLimits())
		fn(t, r)
		r.check()
	})
}

func TestDelivered(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		if p.Attempt.State != thole.AttemptAcceptPending || p.Attempt.Generation != 1 || len(p.Jobs) != 1 {
			t.Fatalf("parcel %+v", p.Attempt)
		}
		r.accept(p, "turn")
		v := r.batch(p.Batch.ID)
		if v.Batch.State != thole.BatchCooldown || v.Batch.AttemptCount != 1 {
			t.Fatalf("batch after acceptance: %+v", v.Batch)
		}
		if !r.see(p, "turn", thole.TurnEventStarted) || !r.see(p, "turn", thole.TurnEventCompleted) {
			t.Fatal("sightings were stale")
		}
		v = r.batch(p.Batch.ID)
		if v.Batch.CloseReason != thole.CloseDelivered || v.Attempts[0].State != thole.AttemptClosed {
			t.Fatalf("batch %s/%s, attempt %s", v.Batch.State, v.Batch.CloseReason, v.Attempts[0].State)
		}
		events := []string{}
		for _, a := range v.Ledger {
			events = append(events, a.Event)
		}
		want := []string{"job.submit", "job.finish", "job.enqueue", "batch.materialize", "attempt.prepare", "attempt.begin_accept",
			"attempt.accept", "attempt.observe", "attempt.close", "batch.close"}
		if len(events) != len(want) {
			t.Fatalf("ledger %v, want %v", events, want)
		}
		for i := range want {
			if events[i] != want[i] {
				t.Fatalf("ledger %v, want %v", events, want)
			}
		}
	})
}

// A benign rejection counts nothing, makes the thread wait its turn, and its late
// answer cannot settle the next call.
func TestRejectThenRetry(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.ready("a", thole.TargetCLI)
		first := r.begin("a")
		if stale, err := r.Reject(ctx, actor, first.Attempt.Fence(), "thread is busy", 0); stale || err != nil {
			t.Fatal(stale, err)
		}
		v := r.head("a")
		if v.Batch.AttemptCount != 0 || v.Attempts[0].State != thole.AttemptPrepared || v.Lane.Ticket != 0 {
			t.Fatalf("after rejection: %+v %+v", v.Batch, v.Attempts[0])
		}
		r.c.add(testLimits().RetryMin)
		r.sweep()
		second := r.begin("a")
		if second.Attempt.ID != first.Attempt.ID || second.Attempt.Generation != first.Attempt.Generation {
			t.Fatal("a rejected attempt is tried again under its own generation")
		}
		if stale, _ := r.Accept(ctx, actor, first.Attempt.Fence(), delivery.Acceptance{Turn: "late"}); !stale {
			t.Fatal("the answer to a rejected call settled the next one")
		}
		if stale, _ := r.Unknown(ctx, actor, first.Attempt.Fence(), "late"); !stale {
			t.Fatal("a late unknown settled the next call")
		}
		r.accept(second, "turn")
		if n := r.head("a").Batch.AttemptCount; n != 1 {
			t.Fatalf("delivery_attempt_count = %d", n)
		}
	})
}

// Time proves nothing about a call without an answer: as long as its receiver may
// still take it, nothing holds, closes or repeats it, however late it is.
func TestOverdueCallStaysBehindItsBarrier(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		if stale, err := r.Unsettled(ctx, actor, p.Attempt.Fence(), "queued as 7"); stale || err != nil {
			t.Fatal(stale, err)
		}
		told := 0
		for range 40 { // more than every window
			r.c.add(testLimits().AcceptTimeout)
			r.sweep()
			v := r.head("a")
			if v.Batch.Replay != thole.ReplayAutomatic || v.Batch.ID != p.Batch.ID || v.Attempts[0].State != thole.AttemptAcceptPending {
				t.Fatalf("after %s: %+v %+v", r.c.Now().Sub(p.Attempt.RPC.StartedAt), v.Batch, v.Attempts[0])
			}
			if _, err := r.CloseHead(ctx, actor, v.Lane.ID, "", thole.CloseOperatorUnconfirmed); thole.CodeOf(err) != thole.CodeBusy {
				t.Fatalf("a batch that may still start a turn was closed: %v", err)
			}
			if err := r.Hold(ctx, actor, v.Lane.ID, v.Batch.ID, "policy", nil); thole.CodeOf(err) != thole.CodeConflict {
				t.Fatalf("a batch that may still start a turn was held: %v", err)
			}
			if c, _ := r.Candidates(ctx, thole.TargetCLI, 10); len(c) != 0 {
				t.Fatal("it is offered again")
			}
			if len(v.Next()) == 0 {
				t.Fatal("nothing says what to do")
			}
			told = 0
			for _, a := range v.Ledger {
				if a.Event == "attempt.overdue" {
					told++
				}
			}
		}
		if told < 2 || told > 8 {
			t.Errorf("it was told %d times that the call is overdue", told)
		}
		r.accept(p, "turn") // proven in, at last
		if !r.see(p, "turn", thole.TurnEventCompleted) {
			t.Fatal("the completion is stale")
		}
		if got := r.batch(p.Batch.ID).Batch.CloseReason; got != thole.CloseDelivered {
			t.Fatalf("close reason %q", got)
		}
	})
}

func TestUnknownIsHeld(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for thread, settle := range map[string]func(f delivery.Fence) (bool, error){
			"acceptance_unknown": func(f delivery.Fence) (bool, error) { return r.Unknown(ctx, actor, f, "the server is gone") },
		} {
			r.ready(thread, thole.TargetCLI)
			p := r.begin(thread)
			if stale, err := settle(p.Attempt.Fence()); stale || err != nil {
				t.Fatal(stale, err)
			}
			v := r.head(thread)
			if string(v.Batch.HeldFor) != thread || v.Attempts[0].State != thole.AttemptAbandoned || v.Attempts[0].RPC.State != thole.RPCUnknown || len(v.Next()) == 0 {
				t.Fatalf("%+v %+v", v.Batch, v.Attempts[0])
			}
			if stale, _ := r.Accept(ctx, actor, p.Attempt.Fence(), delivery.Acceptance{Turn: "turn"}); !stale {
				t.Fatal("a late acceptance was believed")
			}
			if c, _ := r.Candidates(ctx, thole.TargetCLI, 10); len(c) != 0 {
				t.Fatal("a held batch is offered again")
			}
			r.c.add(v.Batch.WindowEndsAt.Sub(r.c.Now()))
			r.sweep()
			if got := r.batch(p.Batch.ID).Batch.CloseReason; got != thole.CloseManualExpired {
				t.Fatalf("close reason %q", got)
			}
		}
	})
}
