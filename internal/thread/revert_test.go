package thread_test

import (
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// What is reverted is in no list, search, fork or export of the thread any more, nor in what
// its agent goes on from. The log, the usage and the numbers of turns stay.
func TestRevert(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		id := b.create(thread.Create{}).ID
		texts := []string{"apples", "bananas", "cherries"}
		var turns []thole.TurnID
		for _, text := range texts {
			turn, report := b.turn(id, text)
			report(event.Event{Kind: event.ThreadUpdated, Data: event.Data{NativeID: "session"}},
				said("m", "about "+text), event.Event{Kind: event.UsageUpdated, Data: event.Data{Usage: &thole.Usage{Input: 5}}},
				event.Event{Kind: event.TodoSnapshot, Data: event.Data{Todos: []event.Todo{{ID: "1", Content: text, State: event.TodoPending}}}},
				ends(thole.OutcomeCompleted))
			b.saved(id, turn.ID)
			turns = append(turns, turn.ID)
		}
		sub, err := b.Subscribe(bg, me, id, thread.SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		th, err := b.Revert(bg, me, id, turns[1])
		if err != nil || th.NativeID != "" || th.Origin != "" || !th.Retell || th.Turns != 3 || th.Usage.Input != 15 || th.Preview != "apples" {
			t.Fatalf("%+v, %v", th, err)
		}
		batch := <-sub.Events
		if batch == nil || len(batch.Events) != 1 || batch.Events[0].Kind != event.ThreadReverted || batch.Events[0].Cut.Turn != turns[1] {
			t.Fatalf("subscribers hear %+v", batch)
		}
		left := func(id thole.ThreadID) (all []thole.TurnID) {
			t.Helper()
			page, err := b.Turns(bg, me, id, thread.PageParams{})
			if err != nil {
				t.Fatal(err)
			}
			for _, t := range page.Items {
				all = append(all, t.ID)
			}
			return all
		}
		if got := left(id); !slices.Equal(got, turns[:1]) {
			t.Errorf("turns %v", got)
		}
		items, err := b.Items(bg, me, id, "", all)
		if err != nil || len(items.Items) != 2 {
			t.Errorf("items %+v, %v", items.Items, err)
		}
		byTurn, err := b.TurnItems(bg, me, id, turns, false)
		if err != nil || len(byTurn[turns[0]]) != 2 || len(byTurn[turns[1]]) != 0 || len(byTurn[turns[2]]) != 0 {
			t.Errorf("items of turns %+v, %v", byTurn, err)
		}
		for _, gone := range turns[1:] {
			if _, err := b.Turn(bg, me, id, gone); thole.CodeOf(err) != thole.CodeNotFound {
				t.Errorf("turn: %v", err)
			}
		}
		for text, want := range map[string]int{"apples": 2, "bananas": 0, "cherries": 0} {
			hits, err := b.Search(bg, me, thread.Search{Text: text})
			if err != nil || len(hits.Items) != want {
				t.Errorf("search for %s finds %+v, %v", text, hits.Items, err)
			}
			if page, err := b.List(bg, me, thread.Filter{Search: text}); err != nil || len(page.Items) != min(want, 1) {
				t.Errorf("list by %s: %+v, %v", text, page.Items, err)
			}
		}
		if todos, err := b.Todos(bg, me, id); err != nil || len(todos) != 0 {
			t.Errorf("todos %+v, %v", todos, err)
		}
		events, err := b.Events(bg, me, id, 0, 1000)
		if err != nil || !slices.ContainsFunc(events, func(e event.Event) bool { return e.Turn == turns[2] }) || events[len(events)-1].Kind != event.ThreadReverted {
			t.Errorf("the log has %d events, %v", len(events), err)
		}

		// A fork has what is left, and its agent reads it.
		fork, err := b.Fork(bg, me, id, thread.Fork{})
		if err != nil || !fork.Retell || fork.NativeID != "" || fork.Origin != "" || !slices.Equal(left(fork.ID), turns[:1]) {
			t.Errorf("fork %+v, %v, %v", fork, left(fork.ID), err)
		}

		// The next turn has the next number; the agent that read it has a session of its own.
		for i, o := range []thole.Outcome{thole.OutcomeFailed, thole.OutcomeCompleted} {
			turn, report := b.turn(id, "on")
			report(event.Event{Kind: event.ThreadUpdated, Data: event.Data{NativeID: "other"}}, ends(o))
			b.saved(id, turn.ID)
			turns = append(turns, turn.ID)
			got, err := b.Get(bg, me, id)
			if err != nil || got.Turns != 4+i || got.Retell != (o == thole.OutcomeFailed) || got.NativeID != "other" {
				t.Errorf("after a %s turn: %+v, %v", o, got, err)
			}
		}
		early, err := b.Fork(bg, me, id, thread.Fork{Before: turns[3]})
		if err != nil || !early.Retell || early.Origin != "" || !slices.Equal(left(early.ID), turns[:1]) {
			t.Errorf("a fork before the next turn: %+v, %v", early, err)
		}
		if kept, err := b.Fork(bg, me, id, thread.Fork{UpTo: turns[0]}); err != nil || kept.Retell || kept.Origin != "session" {
			t.Errorf("a fork at a turn that was kept: %+v, %v", kept, err)
		}

		for name, before := range map[string]thole.TurnID{"reverted": turns[1], "unknown": "no", "none": ""} {
			if _, err := b.Revert(bg, me, id, before); thole.CodeOf(err) != thole.CodeNotFound {
				t.Errorf("%s turn: %v", name, err)
			}
		}
		stranger := thole.Actor{User: "00000000-0000-7000-8000-00000000aaaa", Via: "token"}
		if _, err := b.Revert(bg, stranger, id, turns[0]); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("a stranger: %v", err)
		}
		last, report := b.turn(id, "running")
		if _, err := b.Revert(bg, me, id, turns[0]); thole.CodeOf(err) != thole.CodeBusy {
			t.Errorf("a busy thread: %v", err)
		}
		report(ends(thole.OutcomeCompleted))
		b.saved(id, last.ID)
		if _, err := b.Revert(bg, me, id, turns[0]); err != nil || len(left(id)) != 0 {
			t.Errorf("all of it: %v, %v", left(id), err)
		}
	})
}

// Two that revert at once: the turn of one is gone when it is its turn.
func TestRevertsAtOnce(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		id := b.create(thread.Create{}).ID
		var turns []thole.TurnID
		for range 2 {
			turn, report := b.turn(id, "x")
			report(ends(thole.OutcomeCompleted))
			b.saved(id, turn.ID)
			turns = append(turns, turn.ID)
		}
		errs := make(chan error, 8)
		for i := range cap(errs) {
			go func() { _, err := b.Revert(bg, me, id, turns[i%2]); errs <- err }()
		}
		done := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				done++
			} else if thole.CodeOf(err) != thole.CodeNotFound {
				t.Error(err)
			}
		}
		if page, err := b.Turns(bg, me, id, thread.PageParams{}); err != nil || len(page.Items) != 0 || done < 1 || done > 2 {
			t.Errorf("%d took place, %+v are left, %v", done, page.Items, err)
		}
	})
}

// saved ends the pipeline of a turn that is over.
func (b *bench) saved(id thole.ThreadID, turn thole.TurnID) {
	b.t.Helper()
	over, err := b.Turn(bg, me, id, turn)
	if err == nil {
		err = b.SetPhase(bg, thread.TurnRef{Thread: id, Turn: turn}, over.Outcome.Phase(), "")
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
