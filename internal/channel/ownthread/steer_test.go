package ownthread_test

import (
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/ownthread"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
)

// busy is a thread whose turn waits for a second.
func (w *world) busy(profile thole.Profile) (thole.ThreadID, thole.TurnID) {
	w.t.Helper()
	th, err := w.Threads.Create(bg, me, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test", Profile: profile}})
	if err != nil {
		w.t.Fatal(err)
	}
	turn, err := w.Threads.StartTurn(bg, me, thread.StartTurn{Thread: th.ID, Input: thole.Text("sim: wait 2s ;; say mine")})
	if err != nil {
		w.t.Fatal(err)
	}
	poll.Until(w.t, "a running turn", func() bool {
		now, err := w.Threads.Turn(bg, me, th.ID, turn.ID)
		return err == nil && now.Phase == thole.PhaseRunning
	})
	return th.ID, turn.ID
}

// With the gate open a result goes into the running turn, and its acceptance is what the
// agent took in. What may act, or may reach the network, gets nothing.
func TestSteering(t *testing.T) {
	w := newWorld(t)
	ch := &ownthread.Channel{Threads: w.Threads, Home: w.Home, Gate: turnsteer.OpenFor(turnsteer.LowRisk), Egress: "gateway"}
	query := func(id thole.ThreadID) channel.Query {
		return channel.Query{User: thole.LocalUser, Thread: id, Batch: "b", Policy: thole.DeliveryPolicy{ReadOnly: true}}
	}
	refused := func(ch *ownthread.Channel, q channel.Query, why string) {
		t.Helper()
		if r, err := ch.Probe(bg, q); err != nil || r.Verdict != channel.NotNow || !strings.Contains(r.Reason, why) {
			t.Errorf("want %q: %+v, %v", why, r, err)
		}
	}
	acting, _ := w.busy(thole.ProfileEdit)
	refused(ch, query(acting), "risk is not_low_risk")
	id, turn := w.busy(thole.ProfilePlan)
	refused(&ownthread.Channel{Threads: w.Threads, Home: w.Home, Egress: "gateway"}, query(id), "steering is closed")
	refused(&ownthread.Channel{Threads: w.Threads, Home: w.Home, Gate: ch.Gate, Egress: "open"}, query(id), "risk is not_low_risk")
	worst := query(id)
	worst.Policy = thole.UnknownDeliveryPolicy
	refused(ch, worst, "not read-only and low-risk")

	r, err := ch.Probe(bg, query(id))
	if err != nil || r.Verdict != channel.Now || r.Mode != thole.ModeTurnSteer {
		t.Fatalf("%+v, %v", r, err)
	}
	p := channel.Proposal{
		User: thole.LocalUser, Thread: id, Mode: r.Mode, Request: string(thole.NewID[thole.MessageID](time.Now())), Marker: "thole-steered", Text: "sim: say got it",
		Attachment: r.Attachment, Epoch: r.Epoch, Batch: "b",
	}
	if a, err := ch.Propose(bg, p); err == nil {
		t.Fatalf("accepted before the agent took it in: %+v", a)
	}
	var seen []string
	err = ch.Observe(bg, channel.Watch{Proposal: p}, func(s channel.Sighting) error {
		if s.Turn != turn {
			t.Errorf("seen in turn %s, not %s", s.Turn, turn)
		}
		seen = append(seen, string(s.Acceptance)+string(s.Event))
		return nil
	})
	if got := strings.Join(seen, " "); err != nil || got != "accepted turn_started turn_completed" {
		t.Errorf("saw %q, %v", got, err)
	}
	if a, err := ch.Propose(bg, p); err != nil || a.Acceptance != thole.Rejected {
		t.Errorf("into a thread without a turn: %+v, %v", a, err)
	}
}
