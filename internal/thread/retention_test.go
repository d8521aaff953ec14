package thread_test

import (
	"fmt"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

func todos(contents ...string) event.Event {
	e := event.Event{Kind: event.TodoSnapshot}
	for i, c := range contents {
		e.Todos = append(e.Todos, event.Todo{ID: thole.TodoID(fmt.Sprint(i)), Content: c, State: event.TodoPending, Order: i})
	}
	return e
}

// The log of a thread that nothing happens to goes after a while; what was folded
// from it stays, and so does the log of a thread in use.
func TestTheLogOfARestingThreadGoes(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		resting, used, running := b.create(thread.Create{}).ID, b.create(thread.Create{}).ID, b.create(thread.Create{}).ID
		for _, id := range []thole.ThreadID{resting, used} {
			_, report := b.turn(id, "question")
			report(said("m", "answer"), todos("one"), ends(thole.OutcomeCompleted))
		}
		b.turn(running, "still at it")
		sweep := func(after time.Duration) {
			t.Helper()
			b.now = b.now.Add(after)
			if err := b.Sweep(bg); err != nil {
				t.Fatal(err)
			}
		}
		gone := func(id thole.ThreadID) bool {
			t.Helper()
			_, err := b.Events(bg, me, id, 0, 10)
			if err != nil && thole.CodeOf(err) != thole.CodeGone {
				t.Fatal(err)
			}
			return err != nil
		}
		sweep(89 * 24 * time.Hour)
		name := "in use"
		if _, err := b.Update(bg, me, used, thread.Update{Name: &name}); err != nil {
			t.Fatal(err)
		}
		if gone(resting) {
			t.Fatal("the log went too early")
		}
		sweep(2 * 24 * time.Hour)
		if !gone(resting) || gone(used) || gone(running) {
			t.Fatalf("gone: resting %v, used %v, running %v", gone(resting), gone(used), gone(running))
		}
		items, err := b.Items(bg, me, resting, "", all)
		list, terr := b.Todos(bg, me, resting)
		if err != nil || terr != nil || len(items.Items) != 2 || len(list) != 1 {
			t.Fatalf("left over: %+v %+v (%v, %v)", items.Items, list, err, terr)
		}
		_, report := b.turn(resting, "again")
		report(said("m2", "awake"), ends(thole.OutcomeCompleted))
		if th, err := b.Get(bg, me, resting); err != nil || th.Turns != 2 || th.Floor == 0 || th.Floor >= th.Seq {
			t.Fatalf("%+v, %v", th, err)
		}
		sweep(2 * time.Hour)
		if th, err := b.Get(bg, me, resting); err != nil || th.Floor == th.Seq {
			t.Fatalf("the log of a thread in use went: %+v, %v", th, err)
		}
	})
}

// A fork takes the list that its turns left behind; asks, usage and the queue stay
// with the parent.
func TestWhatAForkTakesAlong(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		b := newBench(t, db, nil)
		id := b.create(thread.Create{}).ID
		first, report := b.turn(id, "one")
		report(todos("read", "write"), asks("a", event.AskCommand),
			event.Event{Kind: event.UsageUpdated, Data: event.Data{Usage: &thole.Usage{Input: 5, Output: 7}}}, ends(thole.OutcomeCompleted))
		_, report = b.turn(id, "two")
		report(todos("rest"), ends(thole.OutcomeCompleted))
		last, report := b.turn(id, "three") // runs on
		report(asks("b", event.AskCommand))
		if _, err := b.Enqueue(bg, me, thread.Enqueue{Thread: id, Input: thole.Text("later")}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			upTo  thole.TurnID
			turns int
			todos int
		}{{"", 2, 1}, {first.ID, 1, 0}} {
			fork, err := b.Fork(bg, me, id, thread.Fork{UpTo: c.upTo})
			if err != nil {
				t.Fatal(err)
			}
			again := newBench(t, db, nil) // as another process reads it
			th, err := again.Get(bg, me, fork.ID)
			list, terr := again.Todos(bg, me, fork.ID)
			open, aerr := again.Asks(bg, me, fork.ID, false)
			queue, qerr := again.Queue(bg, me, fork.ID)
			if err != nil || terr != nil || aerr != nil || qerr != nil {
				t.Fatal(err, terr, aerr, qerr)
			}
			if th.Turns != c.turns || len(list) != c.todos || len(open) != 0 || len(queue) != 0 || th.Usage != (thole.Usage{}) {
				t.Errorf("a fork up to %q has %d turns, todos %v, asks %v, queue %v, usage %+v", c.upTo, th.Turns, list, open, queue, th.Usage)
			}
			sub, err := b.Subscribe(bg, me, fork.ID, thread.SubscribeOptions{})
			if err != nil || len(sub.Snapshot.Todos) != c.todos {
				t.Fatalf("a joiner sees %v (%v)", sub, err)
			}
			sub.Close()
		}
		if list, err := b.Todos(bg, me, id); err != nil || len(list) != 1 || b.lastTurn(id).ID != last.ID {
			t.Errorf("the parent has %v (%v)", list, err)
		}
	})
}
