package thread_test

import (
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// What a turn's time was spent on is known with its outcome, complete when its files are
// saved, reported once, and outlives the events it was counted from; a fork takes it along.
func TestWhereATurnsTimeWent(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		id := b.create(thread.Create{}).ID
		pass := func(s int) { b.now = b.now.Add(time.Duration(s) * time.Second) }
		turn, report := b.turn(id, "work")
		phase := func(p thole.Phase) {
			t.Helper()
			if err := b.SetPhase(bg, thread.TurnRef{Thread: id, Turn: turn.ID}, p, ""); err != nil {
				t.Fatal(err)
			}
		}
		check := func(of thole.ThreadID, want thole.TurnTime) {
			t.Helper()
			if got := b.lastTurn(of).Spent; got == nil || *got != want {
				t.Fatalf("spent %+v, want %+v", got, want)
			}
		}
		phase(thole.PhaseClaimed)
		pass(2)
		phase(thole.PhaseRunning)
		pass(5)
		command := event.Item{ID: "c", Kind: event.ItemCommand, Command: &event.Command{Line: "make"}}
		report(event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &command}})
		pass(1)
		report(asks("a", event.AskCommand))
		pass(60)
		if _, err := b.Answer(bg, me, id, "a", event.Answer{Decision: event.DecisionAllow}); err != nil {
			t.Fatal(err)
		}
		pass(3)
		report(event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &command}})
		if got := b.lastTurn(id).Spent; got != nil {
			t.Fatalf("a turn that runs has spent %+v", got)
		}
		pass(4)
		report(ends(thole.OutcomeCompleted))
		s := time.Second
		check(id, thole.TurnTime{Model: 9 * s, Tools: 4 * s, Human: 60 * s, Overhead: 2 * s})
		if len(b.spent) > 0 {
			t.Fatalf("reported before the files are saved: %+v", b.spent)
		}
		pass(6)
		phase(thole.PhaseExported)
		pass(1)
		phase(thole.PhaseSucceeded)
		want := thole.TurnTime{Model: 9 * s, Tools: 4 * s, Human: 60 * s, Overhead: 9 * s}
		check(id, want)
		if !slices.Equal(b.spent, []thole.TurnTime{want}) {
			t.Fatalf("reported %+v", b.spent)
		}
		fork, err := b.Fork(bg, me, id, thread.Fork{})
		if err != nil {
			t.Fatal(err)
		}
		check(fork.ID, want)
		pass(100 * 24 * 3600)
		if err := b.Sweep(bg); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Events(bg, me, id, 0, 10); thole.CodeOf(err) != thole.CodeGone {
			t.Fatalf("the log is still there: %v", err)
		}
		check(id, want)
	})
}

// A turn that nobody claimed spent its time in the queue.
func TestTheTimeOfATurnThatNeverRan(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		id := b.create(thread.Create{}).ID
		turn, _ := b.turn(id, "work")
		b.now = b.now.Add(3 * time.Second)
		if err := b.Interrupt(bg, me, id, turn.ID); err != nil {
			t.Fatal(err)
		}
		want := thole.TurnTime{Overhead: 3 * time.Second}
		if got := b.lastTurn(id).Spent; got == nil || *got != want || !slices.Equal(b.spent, []thole.TurnTime{want}) {
			t.Fatalf("spent %+v, reported %+v", got, b.spent)
		}
	})
}

// Calls through the gateway say when the model was asked; one that is settled after the turn's
// outcome counts when its files are saved.
func TestTheTimeOfModelCalls(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		b := newBench(t, db, nil)
		id := b.create(thread.Create{}).ID
		turn, report := b.turn(id, "work")
		ref := thread.TurnRef{Thread: id, Turn: turn.ID}
		report(said("m", "thinking"))
		started := b.now
		s := time.Second
		call := func(name string, from time.Duration) {
			t.Helper()
			c := budget.Call{
				Place: budget.Place{Owner: thole.DefaultOwner, Thread: id, Turn: turn.ID}, Provider: "p", Route: "r", Upstream: "u", Model: "m", Path: "/x",
				At: started.Add(from),
			}
			if _, err := db.Budgets().Reserve(bg, name, c, budget.Amount{Micros: -1}); err != nil {
				t.Fatal(err)
			}
		}
		settle := func(name string, to, waited time.Duration) {
			t.Helper()
			if _, err := db.Budgets().Settle(bg, name, budget.Settlement{
				Result: budget.Result{Known: true, Status: 200, EndedAt: started.Add(to), Waited: waited},
				Cost:   func(budget.Call, thole.Usage) (int64, bool) { return 0, false },
			}); err != nil {
				t.Fatal(err)
			}
		}
		call("one", 1*s)
		settle("one", 4*s, 1*s)
		call("two", 6*s)
		b.now = started.Add(10 * s)
		report(ends(thole.OutcomeCompleted))
		if got, want := b.lastTurn(id).Spent, (thole.TurnTime{Model: 6 * s, Overhead: 4 * s}); got == nil || *got != want {
			t.Fatalf("with a call that is not settled it spent %+v, want %+v", got, want)
		}
		settle("two", 9*s, 0)
		b.now = started.Add(12 * s)
		if err := b.SetPhase(bg, ref, thole.PhaseSucceeded, ""); err != nil {
			t.Fatal(err)
		}
		if got, want := b.lastTurn(id).Spent, (thole.TurnTime{Model: 5 * s, Overhead: 7 * s}); got == nil || *got != want {
			t.Fatalf("spent %+v, want %+v", got, want)
		}
	})
}
