package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
)

// question is an ask that an agent puts through thole's tools.
func question() event.Ask {
	return event.Ask{ID: "00000000-0000-8000-8000-000000000001", Kind: event.AskInput, Questions: []event.Question{{ID: "q1", Text: "Which?", Free: true}}}
}

type told struct {
	event.Answer
	err error
}

// ask puts the question in the middle of a turn that goes on.
func (r *rig) ask(turn thole.TurnID) <-chan told {
	out := make(chan told, 1)
	go func() {
		a, err := r.disp.Ask(context.Background(), turn, question())
		out <- told{a, err}
	}()
	return out
}

// A question through thole's tools is an ask of the thread: it is answered as others are, while
// the turn takes no slot, and the same question again has the same answer.
func TestAskOfATool(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	if _, err := r.disp.Ask(t.Context(), "none", question()); thole.CodeOf(err) != thole.CodeGone {
		t.Errorf("without a turn: %v", err)
	}
	turn := r.start(id, "sim: wait 60s")
	r.until(id, kind(turn, event.TurnPhase))
	first, second := r.ask(turn), r.ask(turn)
	r.until(id, kind(turn, event.AskRequested))
	waits := func() bool {
		row, err := r.db.Queue().Get(context.Background(), turn)
		return err == nil && row.Waiting
	}
	waitFor(t, waits)
	if _, err := r.Answer(t.Context(), me, id, question().ID, event.Answer{Answers: map[string][]string{"q1": {"blue"}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []<-chan told{first, second, r.ask(turn)} {
		if got := <-c; got.err != nil || strings.Join(got.Answers["q1"], "") != "blue" {
			t.Errorf("%+v", got)
		}
	}
	waitFor(t, func() bool { return !waits() })
	if err := r.Interrupt(t.Context(), me, id, turn); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeInterrupted {
		t.Errorf("%+v", got)
	}
	asks, err := r.Asks(t.Context(), me, id, false)
	if err != nil || len(asks) != 1 {
		t.Errorf("%+v, %v", asks, err)
	}
}

// One whose turn is interrupted is not answered.
func TestAskOfAToolIsCanceledWithItsTurn(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	turn := r.start(id, "sim: wait 60s")
	r.until(id, kind(turn, event.TurnPhase))
	c := r.ask(turn)
	r.until(id, kind(turn, event.AskRequested))
	if err := r.Interrupt(t.Context(), me, id, turn); err != nil {
		t.Fatal(err)
	}
	if got := <-c; thole.CodeOf(got.err) != thole.CodeConflict {
		t.Errorf("%+v", got)
	}
	r.settled(id, turn)
}

// One that nobody answers for long parks the turn, although its CLI knows nothing of it;
// the answer takes the turn up again and reaches the agent.
func TestAskOfAToolParks(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.ParkAfter = 10 * time.Millisecond })
	id := r.thread()
	turn := r.start(id, "sim: wait 60s")
	r.until(id, kind(turn, event.TurnPhase))
	c := r.ask(turn)
	waitFor(t, func() bool {
		row, err := r.db.Queue().Get(context.Background(), turn)
		return err == nil && row.State == queue.Parked
	})
	if got := r.turn(id, turn); got.Deferred != question().ID || got.Phase != thole.PhaseWaitingHuman {
		t.Fatalf("%+v", got)
	}
	if _, err := r.Answer(t.Context(), me, id, question().ID, event.Answer{Answers: map[string][]string{"q1": {"blue"}}}); err != nil {
		t.Fatal(err)
	}
	if got := <-c; got.err != nil { // a call that still waits gets it too
		t.Errorf("%+v", got)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "Answer: blue") {
		t.Errorf("%+v said %q", got, r.said(id, turn))
	}
}
