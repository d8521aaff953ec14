package delivery_test

import (
	"context"
	"strings"
	"testing"
	"time"

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
			"steered":            func(f delivery.Fence) (bool, error) { return r.Steered(ctx, actor, f, "another") },
		} {
			r.ready(thread, thole.TargetCLI)
			p := r.begin(thread)
			if stale, err := settle(p.Attempt.Fence()); stale || err != nil {
				t.Fatal(stale, err)
			}
			v := r.head(thread)
			if v.Batch.HeldFor != thread || v.Attempts[0].State != thole.AttemptAbandoned || v.Attempts[0].RPC.State != thole.RPCUnknown || len(v.Next()) == 0 {
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

func TestNegativeEndings(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for i, e := range []thole.TurnEvent{thole.TurnEventFailed, thole.TurnEventInterrupted, thole.TurnEventReplaced} {
			thread := string(rune('a' + i))
			r.ready(thread, thole.TargetCLI)
			p := r.begin(thread)
			r.accept(p, "turn")
			r.see(p, "turn", e)
			v := r.head(thread)
			if v.Batch.Replay != thole.ReplayManual || v.Attempts[0].State != thole.AttemptAbandoned {
				t.Fatalf("%s: %+v", e, v.Batch)
			}
			if r.see(p, "turn", thole.TurnEventCompleted) {
				t.Fatalf("%s: a late completion moved the batch", e)
			}
			if got := r.batch(p.Batch.ID).Batch.State; got == thole.BatchClosed {
				t.Fatal("held batch was closed by a late completion")
			}
		}
	})
}

func TestObservationDeadline(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for i, late := range []time.Duration{0, time.Millisecond} {
			thread := string(rune('a' + i))
			r.ready(thread, thole.TargetCLI)
			p := r.begin(thread)
			r.accept(p, "turn")
			r.c.add(testLimits().Observation + late)
			moved := r.see(p, "turn", thole.TurnEventCompleted)
			if moved != (late == 0) {
				t.Fatalf("completion %v after the deadline: moved=%v", late, moved)
			}
			r.sweep()
		}
		if v := r.head("b"); v.Attempts[0].Observation.State != thole.ObservationExpired || v.Batch.Replay != thole.ReplayManual {
			t.Fatalf("after the deadline: %+v", v.Attempts[0].Observation)
		}
	})
}

// The window never closes a batch whose accepted turn is still being followed.
func TestWindowWaitsForObservation(t *testing.T) {
	l := testLimits()
	l.Window, l.Observation = time.Minute, time.Hour
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newRig(t, open(t), l)
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		r.accept(p, "turn")
		r.c.add(30 * time.Minute)
		r.sweep()
		if !r.see(p, "turn", thole.TurnEventCompleted) {
			t.Fatal("the window overtook the observation")
		}
		if got := r.batch(p.Batch.ID).Batch.CloseReason; got != thole.CloseDelivered {
			t.Fatalf("close reason %q", got)
		}
	})
}

func TestWindowExhausted(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		id := r.head("a").Batch.ID
		r.c.add(testLimits().Window)
		r.sweep()
		if got := r.batch(id).Batch.CloseReason; got != thole.CloseWindowExhausted {
			t.Fatalf("close reason %q", got)
		}
	})
}

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

func TestBatchLimits(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		var ids []thole.JobID
		for range 4 {
			id := r.submit("a", thole.TargetCLI)
			r.finish(id, thole.JobReady, "x")
			ids = append(ids, id)
		}
		v := r.head("a")
		if len(v.Jobs) != 3 || v.Jobs[0].ID != ids[0] || v.Jobs[2].ID != ids[2] {
			t.Fatalf("first batch has %d jobs", len(v.Jobs))
		}
		big := r.submit("b", thole.TargetCLI)
		r.finish(big, thole.JobReady, strings.Repeat("x", 500))
		small := r.submit("b", thole.TargetCLI)
		r.finish(small, thole.JobFailed, "x")
		if v := r.head("b"); len(v.Jobs) != 1 {
			t.Fatal("a job over the byte limit travels alone")
		}
		other := r.submit("c", thole.TargetCLI)
		r.finish(other, thole.JobReady, "x")
		r.c.add(testLimits().WaitWindow)
		late := r.submit("c", thole.TargetCLI)
		r.finish(late, thole.JobReady, "x")
		if v := r.head("c"); len(v.Jobs) != 1 {
			t.Fatal("the window was over")
		}
	})
}

// A candidate that fails goes behind every other one.
func TestFairOrder(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for _, thread := range []string{"a", "b", "c"} {
			r.ready(thread, thole.TargetCLI)
		}
		served := ""
		for range 9 {
			c, err := r.Candidates(ctx, thole.TargetCLI, 1)
			r.ok(err)
			if len(c) == 0 {
				r.c.add(testLimits().RetryMax)
				r.sweep()
				continue
			}
			served += string(c[0].Lane.Thread)
			r.ok(r.Defer(ctx, actor, c[0].Lane.ID, c[0].Batch.ID, "busy", 0))
			r.c.add(time.Millisecond)
		}
		if served[:6] != "abcabc" {
			t.Fatalf("served %s", served)
		}
	})
}

func TestMinimumInterval(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		r.accept(p, "t1")
		r.ready("a", thole.TargetCLI) // 2 s later
		r.see(p, "t1", thole.TurnEventCompleted)
		if v := r.head("a"); v.Lane.Ticket != 0 || v.Batch.State != thole.BatchMaterialized {
			t.Fatal("the interval was not kept")
		}
		r.c.add(3 * time.Second)
		r.sweep()
		if v := r.head("a"); v.Lane.Ticket == 0 {
			t.Fatal("the interval is over and the thread is not ready")
		}
	})
}

func TestParents(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		child := func(parent thole.JobID) thole.JobID {
			return r.submit("a", thole.TargetCLI, func(p *delivery.Submit) { p.Parent = parent })
		}
		parent := r.submit("a", thole.TargetCLI)
		c1 := child(parent)
		grand := child(c1)
		if j := r.finish(parent, thole.JobReady, "p"); j.State != thole.JobRunning || j.Settled != thole.JobReady {
			t.Fatalf("parent with open children: %+v", j)
		}
		r.finish(c1, thole.JobFailed, "c")
		r.finish(grand, thole.JobReady, "g")
		v := r.head("a")
		if len(v.Jobs) != 1 || v.Jobs[0].ID != parent || len(v.Jobs[0].Children) != 1 || len(v.Jobs[0].Children[0].Children) != 1 {
			t.Fatalf("children must travel inside their parent: %+v", v.Jobs)
		}
		if _, _, err := r.Submit(ctx, actor, delivery.Submit{ID: thole.JobID(r.id()), Owner: thole.DefaultOwner, Address: address("a"), Target: thole.TargetCLI, Parent: parent}); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("child of a finished parent: %v", err)
		}
		p2 := r.submit("b", thole.TargetCLI)
		c2 := r.submit("b", thole.TargetCLI, func(p *delivery.Submit) { p.Parent = p2 })
		if _, err := r.Cancel(ctx, actor, p2, r.id(), "no"); err != nil {
			t.Fatal(err)
		}
		if j, _, _ := r.Job(ctx, actor, c2); j.State != thole.JobCancelled {
			t.Fatal("cancel does not reach the child")
		}
	})
}

func TestIdempotentRequests(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		p := delivery.Submit{ID: thole.JobID(r.id()), Owner: thole.DefaultOwner, Address: address("a"), Target: thole.TargetCLI, DedupeKey: "k"}
		first, fresh, err := r.Submit(ctx, actor, p)
		if err != nil || !fresh {
			t.Fatal(err, fresh)
		}
		if again, fresh, err := r.Submit(ctx, actor, p); err != nil || fresh || again.ID != first.ID {
			t.Fatal("the same request made a second job", err)
		}
		p.ID = thole.JobID(r.id())
		if again, fresh, err := r.Submit(ctx, actor, p); err != nil || fresh || again.ID != first.ID {
			t.Fatal("the dedupe key made a second job", err)
		}
		p.Address.Endpoint = "elsewhere"
		if _, fresh, err := r.Submit(ctx, actor, p); err != nil || !fresh {
			t.Fatal("another endpoint is another thread", err)
		}
		f := delivery.Finish{Job: first.ID, State: thole.JobReady, Request: "r1"}
		for range 2 {
			if _, err := r.Finish(ctx, actor, f); err != nil {
				t.Fatal(err)
			}
		}
		f.Request = "r2"
		if _, err := r.Finish(ctx, actor, f); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("second completion: %v", err)
		}
		if _, err := r.Finish(ctx, thole.Actor{User: "someone", Via: "socket"}, f); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("someone else's job: %v", err)
		}
		if _, _, err := r.Submit(ctx, actor, delivery.Submit{ID: thole.JobID(r.id()), Owner: thole.DefaultOwner, Address: address("a"), Target: thole.TargetCLI, Summary: "a\x00b"}); thole.CodeOf(err) != thole.CodeInvalid {
			t.Fatalf("a zero byte in a text: %v", err)
		}
		if _, err := r.Finish(ctx, thole.Actor{}, f); thole.CodeOf(err) != thole.CodeUnauthorized {
			t.Fatalf("nobody: %v", err)
		}
	})
}

func TestStaleFencesChangeNothing(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		good := p.Attempt.Fence()
		before := r.head("a")
		for name, edit := range map[string]func(*delivery.Fence){
			"lane":       func(f *delivery.Fence) { f.LaneID = address("b").LaneID() },
			"batch":      func(f *delivery.Fence) { f.Batch = "x" },
			"attempt":    func(f *delivery.Fence) { f.Attempt = "x" },
			"generation": func(f *delivery.Fence) { f.Generation++ },
			"revision":   func(f *delivery.Fence) { f.Revision++ },
			"request":    func(f *delivery.Fence) { f.Request = "x" },
		} {
			f := good
			edit(&f)
			if stale, err := r.Accept(ctx, actor, f, delivery.Acceptance{Turn: "t"}); !stale || err != nil {
				t.Errorf("%s: stale=%v err=%v", name, stale, err)
			}
		}
		after := r.head("a")
		if after.Batch != before.Batch || after.Attempts[0] != before.Attempts[0] || len(after.Ledger) != len(before.Ledger) {
			t.Error("a stale fence changed a row")
		}
	})
}

// A clock that went back must not stretch deadlines beyond their own length.
func TestClockGoesBack(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		r.accept(p, "turn")
		id := r.submit("b", thole.TargetCLI)
		r.finish(id, thole.JobReady, "x")
		r.c.add(-24 * time.Hour)
		r.sweep()
		r.c.add(testLimits().Observation + time.Millisecond)
		r.sweep()
		if v := r.head("a"); v.Batch.Replay != thole.ReplayManual {
			t.Fatal("the observation deadline stayed a day away")
		}
		if v := r.head("b"); v.Lane.Ticket == 0 {
			t.Fatal("the wait window stayed a day away")
		}
		r.c.add(testLimits().Window)
		r.sweep()
		if v, err := r.InspectHead(context.Background(), actor, address("a").LaneID()); err == nil {
			t.Fatalf("the window stayed a day away: %+v", v.Batch)
		}
	})
}

func TestSweepTwiceIsOnce(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for _, thread := range []string{"a", "b", "c"} {
			r.ready(thread, thole.TargetCLI)
			r.accept(r.begin(thread), "t")
		}
		r.c.add(time.Hour)
		r.sweep()
		if n, err := r.Sweep(context.Background()); n != 0 || err != nil {
			t.Fatalf("the second sweep moved %d rows (%v)", n, err)
		}
	})
}

// between runs something in the gap between a sweep's list and its change.
type between struct {
	delivery.Store
	step string
	do   func()
}

func (s *between) Update(ctx context.Context, step string, fn func(delivery.Tx) error) error {
	if step == s.step && s.do != nil {
		do := s.do
		s.do = nil
		do()
	}
	return s.Store.Update(ctx, step, fn)
}

// A sweep changes only what is still as it saw it: an acceptance that arrives
// after the list was made wins.
func TestSweepLooksAgain(t *testing.T) {
	r := newRig(t, storetest.SQLite(t), testLimits())
	r.ready("a", thole.TargetCLI)
	p := r.begin("a")
	r.c.add(testLimits().AcceptTimeout)
	racing := &between{Store: clocked{r.db.Delivery(), r.c}, step: "delivery.sweep_attempt", do: func() { r.accept(p, "turn") }}
	sweeper := delivery.New(delivery.Config{Store: racing, Limits: testLimits()})
	if _, err := sweeper.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if v := r.head("a"); v.Attempts[0].State != thole.AttemptCooldown || v.Batch.Replay != thole.ReplayAutomatic {
		t.Fatalf("the sweep overtook an acceptance: %s, %s", v.Attempts[0].State, v.Batch.Replay)
	}
	// The same for a clock that went back: far deadlines are shortened, not expired.
	r.c.add(-24 * time.Hour)
	r.sweep()
	if !r.see(p, "turn", thole.TurnEventCompleted) {
		t.Fatal("a deadline that moved away expired at once")
	}
}
