package thread_test

import (
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
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
