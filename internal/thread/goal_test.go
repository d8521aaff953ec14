package thread_test

import (
	"errors"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// goalOf reads a thread's goal.
func (b *bench) goalOf(id thole.ThreadID) event.Goal {
	b.t.Helper()
	th, err := b.Get(bg, me, id)
	if err != nil || th.Goal == nil {
		b.t.Fatalf("goal %+v, %v", th.Goal, err)
	}
	return *th.Goal
}

func (b *bench) setGoal(id thole.ThreadID, p thread.SetGoal) event.Goal {
	b.t.Helper()
	g, err := b.SetGoal(bg, me, id, p)
	if err != nil {
		b.t.Fatal(err)
	}
	return g
}

// endOpen ends the open turn after it used tokens.
func (b *bench) endOpen(id thole.ThreadID, o thole.Outcome, tokens int64) {
	b.t.Helper()
	th, err := b.Get(bg, me, id)
	if err != nil || th.Open == "" {
		b.t.Fatalf("no turn is open: %v", err)
	}
	b.report(id, th.Open)(event.Event{Kind: event.UsageUpdated, Data: event.Data{Usage: &thole.Usage{Input: tokens}}}, ends(o))
}

func text(s event.GoalStatus) *event.GoalStatus { return &s }

// An active goal has exactly one turn at a time, begun by the end of the one before and
// without a message, until a person, the agent or a limit ends that.
func TestGoalIsPursued(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		b := newBench(t, db, nil)
		id := b.create(thread.Create{}).ID
		if g := b.setGoal(id, thread.SetGoal{Objective: new(" reach it ")}); g.Objective != "reach it" || g.Status != event.GoalActive {
			t.Fatalf("%+v", g)
		}
		for n := 1; n <= 3; n++ {
			turn := b.lastTurn(id)
			if command, what := thole.TurnCommandOf(turn.Input); turn.Number != n || turn.Outcome != "" || command != thole.TurnCommandGoal || what != "reach it" || turn.Actor != thole.SystemActor {
				t.Fatalf("turn %d: %+v", n, turn)
			}
			if items, err := b.Items(bg, me, id, turn.ID, all); err != nil || len(items.Items) != 0 {
				t.Fatalf("it begins with %+v, %v", items.Items, err)
			}
			b.endOpen(id, thole.OutcomeCompleted, 10)
		}
		// A message goes first, also into a turn that works at the goal; then the goal goes on.
		if _, err := b.Enqueue(bg, me, thread.Enqueue{Thread: id, Input: thole.Text("first this"), Start: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Steer(bg, me, thread.Steer{Thread: id, Expected: b.lastTurn(id).ID, Input: thole.Text("and this")}); err != nil {
			t.Fatal(err)
		}
		if g := b.goalOf(id); g.Tokens != 30 || g.Alone != 0 {
			t.Fatalf("%+v", g)
		}
		now := b.now
		b = newBench(t, db, nil) // what is stored is all there is
		b.now, b.n = now, 1000
		b.endOpen(id, thole.OutcomeCompleted, 1)
		for _, want := range []string{"and this", "first this", "/goal reach it"} {
			if turn := b.lastTurn(id); turn.Input[0].Text != want || turn.Outcome != "" {
				t.Fatalf("%+v, not %q", turn, want)
			}
			if want != "/goal reach it" {
				b.endOpen(id, thole.OutcomeCompleted, 1)
			}
		}
		// The agent ends it with the turn.
		turn := b.lastTurn(id)
		if _, err := b.ReportGoal(bg, me, id, "another", event.GoalComplete, ""); thole.CodeOf(err) != thole.CodeGone {
			t.Fatalf("reported in another turn: %v", err)
		}
		if _, err := b.ReportGoal(bg, me, id, turn.ID, event.GoalActive, ""); thole.CodeOf(err) != thole.CodeInvalid {
			t.Fatalf("reported active: %v", err)
		}
		if g, err := b.ReportGoal(bg, me, id, turn.ID, event.GoalComplete, ""); err != nil || g.Status != event.GoalComplete {
			t.Fatalf("%+v, %v", g, err)
		}
		b.endOpen(id, thole.OutcomeCompleted, 5)
		if th, _ := b.Get(bg, me, id); th.Open != "" || th.Goal.Tokens != 38 || th.Goal.Status != event.GoalComplete {
			t.Fatalf("%+v %+v", th, th.Goal)
		}
		if cleared, err := b.ClearGoal(bg, me, id); err != nil || !cleared {
			t.Fatalf("%v, %v", cleared, err)
		}
		if cleared, err := b.ClearGoal(bg, me, id); err != nil || cleared {
			t.Fatalf("cleared twice: %v, %v", cleared, err)
		}
	})
}

// What a goal must not survive by itself.
func TestGoalStops(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	for _, c := range []struct {
		name   string
		end    func(id thole.ThreadID)
		status event.GoalStatus
	}{
		{"interrupt", func(id thole.ThreadID) {
			if err := b.Interrupt(bg, me, id, b.lastTurn(id).ID); err != nil {
				t.Fatal(err)
			}
		}, event.GoalPaused},
		{"failure", func(id thole.ThreadID) { b.endOpen(id, thole.OutcomeFailed, 1) }, event.GoalPaused},
		{"budget", func(id thole.ThreadID) { b.endOpen(id, thole.OutcomeCompleted, 100) }, event.GoalBudgetLimited},
		{"alone", func(id thole.ThreadID) {
			for range 20 {
				b.endOpen(id, thole.OutcomeCompleted, 0)
			}
		}, event.GoalPaused},
		{"archived", func(id thole.ThreadID) {
			if _, err := b.Update(bg, me, id, thread.Update{Archived: new(true)}); err != nil {
				t.Fatal(err)
			}
		}, event.GoalPaused},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := b.create(thread.Create{}).ID
			b.setGoal(id, thread.SetGoal{Objective: new("x"), Budget: new(int64(100))})
			c.end(id)
			th, err := b.Get(bg, me, id)
			if err != nil || th.Open != "" || th.Goal.Status != c.status {
				t.Fatalf("%+v, goal %+v, %v", th, th.Goal, err)
			}
			if c.name == "archived" {
				return
			}
			if g := b.setGoal(id, thread.SetGoal{Status: text(event.GoalActive)}); (g.Status == event.GoalActive) != (c.name != "budget") {
				t.Fatalf("resumed: %+v", g)
			}
			if c.name == "budget" { // more of it, and it goes on
				b.setGoal(id, thread.SetGoal{Status: text(event.GoalActive), Budget: new(int64(0))})
			}
			if turn := b.lastTurn(id); turn.Outcome != "" {
				t.Fatalf("it does not go on: %+v", turn)
			}
		})
	}
}

// A goal whose turn is not admitted waits and says why; the end of a turn is never lost
// over it.
func TestGoalWithoutAdmission(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	b.setGoal(id, thread.SetGoal{Objective: new("x")})
	b.admit = func() error { return errors.New("nothing is left to spend") }
	b.endOpen(id, thole.OutcomeCompleted, 1)
	if th, _ := b.Get(bg, me, id); th.Open != "" || th.Goal.Status != event.GoalUsageLimited {
		t.Fatalf("%+v, goal %+v", th, th.Goal)
	}
	events, err := b.Events(bg, me, id, 0, 100)
	if last := events[len(events)-1]; err != nil || last.Kind != event.NoteReported || !strings.Contains(last.Text, "nothing is left to spend") {
		t.Fatalf("%+v, %v", last, err)
	}
}

func TestGoalsThatAreRefused(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id, gone := b.create(thread.Create{}).ID, b.create(thread.Create{Ephemeral: true}).ID
	for words, p := range map[string]thread.SetGoal{
		"no goal exists":          {Status: text(event.GoalPaused)},
		"must not be empty":       {Objective: new(" ")},
		"at most 4000 characters": {Objective: new(strings.Repeat("ä", 4001))},
		"must be positive":        {Objective: new("x"), Budget: new(int64(-1))},
		"unknown goal status":     {Objective: new("x"), Status: text("lost")},
		"does not support goals":  {Objective: new("ephemeral")},
		"is not plain UTF-8 text": {Objective: new("a\x00b")},
	} {
		at := id
		if words == "does not support goals" {
			at = gone
		}
		if _, err := b.SetGoal(bg, me, at, p); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
	if th, _ := b.Get(bg, me, id); th.Goal != nil || th.Turns != 0 {
		t.Errorf("something was kept: %+v", th)
	}
}
