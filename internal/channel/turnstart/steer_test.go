package turnstart_test

import (
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/deliverytest"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// steering runs deliveries with an open gate, over a channel that sees the thread's turns
// from their start.
func (r *rig) steering() *turnstart.Channel {
	r.t.Helper()
	ch := turnstart.New(r.s, nil)
	r.t.Cleanup(ch.Close)
	ch.Gate = turnsteer.OpenFor(turnsteer.LowRisk)
	ch.TrySteeringWith("sim: wait 2s ;; say counting")
	if err := ch.Follow(bg, r.s.a); err != nil {
		r.t.Fatal(err)
	}
	return ch
}

// A result goes into the turn that runs, is one message of it, and is delivered when that
// very turn completes.
func TestSteeredIntoARunningTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ch := r.steering()
	turn := r.say("sim: say mine ;; hang")
	r.asked("hang")
	r.run = deliverytest.Start(t, r.db.Delivery(), deliverytest.Limits(), map[thole.Target]channel.Channel{thole.TargetCLI: ch})
	id := thole.NewID[thole.JobID](time.Now())
	_, _, err := r.run.Submit(bg, me, delivery.Submit{
		ID: id, Owner: thole.DefaultOwner, Target: thole.TargetCLI, Summary: "work", Policy: thole.DeliveryPolicy{ReadOnly: true},
		Address: delivery.Address{User: thole.LocalUser, Endpoint: r.home, Thread: thole.ThreadID(r.thread)},
	})
	if err == nil {
		_, err = r.run.Finish(bg, me, delivery.Finish{Job: id, State: thole.JobReady, Inline: "sim: say got it", Request: "r"})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.delivered(t)
	v := r.run.Until(settled)
	full, err := r.run.Inspect(bg, me, v.Batch.ID)
	if err != nil {
		t.Fatal(err)
	}
	if a := full.Attempts[0]; a.RPC.Kind != thole.ModeTurnSteer || string(a.Observation.Turn) != turn {
		t.Errorf("the attempt is %+v, the user's turn %s\n%s", a, turn, r.story())
	}
	r.await(turn, "completed")
}

// The view of a running turn is kept, and what it lacks keeps a result out of it.
func TestOnlyQuietTurnsAreSteered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ch := r.steering()
	ask := func(why string, q channel.Query) {
		t.Helper()
		got, err := ch.Probe(bg, q)
		if err != nil || got.Verdict != channel.NotNow || got.Why != channel.ReasonBusy || !strings.Contains(got.Reason, why) {
			t.Errorf("want %q: %+v, %v", why, got, err)
		}
	}
	safe := channel.Query{User: thole.LocalUser, Endpoint: r.home, Thread: thole.ThreadID(r.thread), Batch: "b", Policy: thole.DeliveryPolicy{ReadOnly: true}}
	worst, large := safe, safe
	worst.Policy, large.ArtifactRead = thole.UnknownDeliveryPolicy, true
	turn := r.say("sim: say mine ;; hang")
	r.asked("hang")
	ask("not read-only and low-risk", worst)
	ask("needs an artifact", large)
	r.s.mu.Lock()
	view := r.s.a.Active
	r.s.mu.Unlock()
	if view == nil || view.Turn != turn || view.Kind != "regular" || view.Risk != "read_only_low_risk" || !view.Steerable || view.Write != "false" {
		t.Errorf("the running turn is seen as %+v", view)
	}
	late := turnstart.New(r.s, nil) // it did not see the turn start
	defer late.Close()
	late.Gate = turnsteer.OpenFor(turnsteer.LowRisk)
	if got, err := late.Probe(bg, safe); err != nil || got.Verdict != channel.NotNow || !strings.Contains(got.Reason, "risk is unknown") {
		t.Errorf("a turn whose start was not seen: %+v, %v", got, err)
	}
	r.must("turn/interrupt", map[string]any{"turnId": turn}, nil)
	r.await(turn, "interrupted")
	poll.Until(t, "no running turn", func() bool {
		_, _ = ch.Probe(bg, safe)
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		return r.s.a.Active == nil
	})
	r.must("thread/shellCommand", map[string]any{"command": "sleep 30"}, nil)
	poll.Until(t, "a command", func() bool {
		_, _ = ch.Probe(bg, safe)
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		if r.s.a.Active != nil {
			turn = r.s.a.Active.Turn
		}
		return r.s.a.Active != nil && r.s.a.Active.Risk == "not_low_risk"
	})
	ask("risk is not_low_risk", safe)
	r.must("turn/interrupt", map[string]any{"turnId": turn}, nil)
	r.await(turn, "interrupted")
	if n := r.carrying(); n != 0 {
		t.Errorf("%d deliveries arrived", n)
	}
}
