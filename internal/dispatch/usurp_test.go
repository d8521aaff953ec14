package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// intruder is what an agent may become inside its executor, where executord is the
// same user: it has the socket and the token and speaks as a dispatcher does.
func (r *rig) intruder(id thole.ThreadID) *executorclient.Client { return r.client(id) }

// allow answers what waits, as the agent.
func allow(t *testing.T, c *executorclient.Client) {
	t.Helper()
	pending, err := c.Pending(context.Background())
	if err != nil || len(pending) != 1 {
		t.Fatalf("pending %+v, %v", pending, err)
	}
	if _, err := c.Reply(context.Background(), wire.ReplyRequest{Run: pending[0].Run, Ask: pending[0].Ask.ID, Answer: event.Answer{Decision: event.DecisionAllow}}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) asking() thole.ThreadID {
	r.t.Helper()
	th, err := r.Create(context.Background(), me, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test", Profile: thole.ProfileAsk}})
	if err != nil {
		r.t.Fatal(err)
	}
	return th.ID
}

// convicted checks that the record blames the agent and nobody else, and that the
// turn was stopped.
func (r *rig) convicted(id thole.ThreadID, turn thole.TurnID, ask thole.AskID) {
	r.t.Helper()
	got := r.settled(id, turn)
	if got.Outcome != thole.OutcomeInterrupted {
		r.t.Errorf("the turn ended %q", got.Outcome)
	}
	asks, err := r.Asks(context.Background(), me, id, false)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range asks {
		if a.Ask.ID == ask && (a.State != event.AskSelfAnswered || a.Actor != thole.AgentActor) {
			r.t.Errorf("the ask is %s by %+v", a.State, a.Actor)
		}
	}
}

// An agent that answers its own question at executord is not taken for the user.
func TestAnAgentThatAnswersItselfIsStopped(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newWorld(t).rig(t, open(t))
		id := r.asking()
		turn := r.start(id, "sim: run echo x > granted ;; slow 20ms 400 ;; say on and on and on and on")
		ask := r.until(id, kind(turn, event.AskRequested)).Data.Ask
		allow(t, r.intruder(id))
		r.convicted(id, turn, ask.ID)
		r.until(id, func(e event.Event) bool {
			return e.Kind == event.NoteReported && strings.Contains(e.Data.Text, "answered its own question")
		})
		if th, _ := r.Get(context.Background(), me, id); th.Status.Active {
			t.Error("the thread went on by itself")
		}
	})
}

// The agent answers first, then the human, before anybody here has heard of the
// agent's answer: what the human said is not what was done, even if it is the same.
func TestAnAnswerBehindTheAgentsOwnIsNotWhatWasDone(t *testing.T) {
	t.Parallel()
	for _, said := range []event.Decision{event.DecisionDeny, event.DecisionAllow} {
		t.Run(string(said), func(t *testing.T) {
			storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
				db := open(t)
				w := newWorld(t)
				first := w.rig(t, db)
				id := first.asking()
				turn := first.start(id, "sim: run echo x > granted ;; slow 20ms 400 ;; say on and on and on and on")
				ask := first.until(id, kind(turn, event.AskRequested)).Data.Ask
				agent := first.intruder(id)
				first.halt() // nobody reads what the agent does
				allow(t, agent)
				alone := machine(t, db)
				if _, err := alone.Answer(context.Background(), me, id, ask.ID, event.Answer{Decision: said}); err != nil {
					t.Fatal(err)
				}
				next := w.rig(t, db, func(c *dispatch.Config) { c.Owner = "next" })
				next.convicted(id, turn, ask.ID)
			})
		})
	}
}

// The server goes between an answer and its resolution, and another dispatcher
// takes over: the answer is known again, and nobody is blamed.
func TestAnAnswerIsKnownAgainAfterARestart(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		w := newWorld(t)
		first := w.rig(t, db)
		id := first.asking()
		turn := first.start(id, "sim: run echo x > granted ;; say done")
		ask := first.until(id, kind(turn, event.AskRequested)).Data.Ask
		first.halt()
		alone := machine(t, db)
		if _, err := alone.Answer(context.Background(), me, id, ask.ID, event.Answer{Decision: event.DecisionAllow, Message: "go \xff<on>"}); err != nil {
			t.Fatal(err)
		}
		next := w.rig(t, db, func(c *dispatch.Config) { c.Owner = "next" })
		if got := next.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
			t.Errorf("turn %+v", got)
		}
		if asks, err := next.Asks(context.Background(), me, id, false); err != nil || len(asks) != 1 || asks[0].State != event.AskAnswered || asks[0].Actor != me {
			t.Errorf("asks %+v, %v", asks, err)
		}
	})
}

// A question that was parked is answered by any client, in the next run;
// and a default of thole's is an answer of thole's.
func TestParkedAndDefaultAnswersAreOurs(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newWorld(t).rig(t, open(t), func(c *dispatch.Config) { c.ParkAfter = time.Millisecond })
		id := r.thread()
		turn := r.start(id, "sim: ask Which? | red | blue ;; say ok")
		ask := r.until(id, kind(turn, event.AskRequested)).Data.Ask
		r.until(id, func(e event.Event) bool {
			return e.Turn == turn && e.Kind == event.TurnPhase && e.Data.Phase == thole.PhaseWaitingHuman
		})
		if _, err := r.Answer(context.Background(), me, id, ask.ID, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"blue"}}}); err != nil {
			t.Fatal(err)
		}
		if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
			t.Errorf("turn %+v", got)
		}
		if asks, err := r.Asks(context.Background(), me, id, false); err != nil || len(asks) != 1 || asks[0].State != event.AskAnswered {
			t.Errorf("asks %+v, %v", asks, err)
		}
	})
}

// An approval that nobody answers in time is parked, and its command runs only after
// the answer: what was not done is not taken for the agent's own yes.
func TestAParkedApprovalIsNotTheAgentsOwnAnswer(t *testing.T) {
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.ParkAfter = time.Millisecond })
	id := r.asking()
	turn := r.start(id, "sim: run echo ran ;; say ok")
	ask := r.until(id, kind(turn, event.AskRequested)).Data.Ask
	r.until(id, func(e event.Event) bool {
		return e.Turn == turn && (e.Kind == event.TurnEnded || e.Kind == event.TurnPhase && e.Data.Phase == thole.PhaseWaitingHuman)
	})
	if _, err := r.Answer(context.Background(), me, id, ask.ID, event.Answer{Decision: event.DecisionAllow}); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.HasSuffix(r.said(id, turn), "ran\n\nok\n") {
		t.Errorf("turn %+v said %q", got, r.said(id, turn))
	}
	if asks, err := r.Asks(context.Background(), me, id, false); err != nil || len(asks) != 1 || asks[0].State != event.AskAnswered || asks[0].Actor != me {
		t.Errorf("asks %+v, %v", asks, err)
	}
}

// machine is a thread machine whose turns nobody runs here.
func machine(t *testing.T, db *store.DB) *thread.Machine {
	t.Helper()
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}
