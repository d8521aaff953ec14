package thread_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
)

// twins are two machines, each with a connection of its own to one PostgreSQL
// database, as two server processes have.
func twins(t *testing.T) (a, b *thread.Machine) {
	dsn := lab.Postgres(t)
	open := func() *thread.Machine {
		db, err := store.Open(bg, sqldb.Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: db.Threads()}, Checkpoint: 20 * time.Millisecond, Sweep: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		m.Attach(nobody{})
		if err := m.Start(bg); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = m.Close(bg)
			_ = db.Close()
		})
		return m
	}
	return open(), open()
}

func subscribe(t *testing.T, m *thread.Machine, id thole.ThreadID) *thread.Subscription {
	t.Helper()
	sub, err := m.Subscribe(bg, me, id, thread.SubscribeOptions{Buffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	return sub
}

// await reads until stop accepts an event.
func await(t *testing.T, sub *thread.Subscription, stop func(event.Event) bool) (all []event.Event) {
	t.Helper()
	limit := time.After(poll.Limit)
	for {
		select {
		case batch, ok := <-sub.Events:
			if !ok {
				t.Fatalf("subscription ended: %v", sub.Err())
			}
			done := false
			for _, e := range batch.Events {
				all = append(all, e)
				done = done || stop(e)
			}
			if done {
				return all
			}
		case <-limit:
			t.Fatalf("waited too long; saw %d events", len(all))
		}
	}
}

func TestTwoProcessesShareAThread(t *testing.T) {
	a, b := twins(t)
	th, err := a.Create(bg, me, thread.Create{})
	if err != nil {
		t.Fatal(err)
	}
	here, there := subscribe(t, a, th.ID), subscribe(t, b, th.ID)

	// Both machines start, steer and queue at the same time; each turn has one
	// starter, and busy is only said when it is true.
	const rounds = 25
	var mu sync.Mutex
	started := map[thole.TurnID]int{}
	var wg sync.WaitGroup
	for i, m := range []*thread.Machine{a, b, a, b} {
		wg.Go(func() {
			for n := range rounds {
				turn, err := m.StartTurn(bg, me, thread.StartTurn{Thread: th.ID, Input: thole.Text(fmt.Sprint(i, n))})
				if thole.CodeOf(err) == thole.CodeBusy {
					if _, err := m.Enqueue(bg, me, thread.Enqueue{Thread: th.ID, Input: thole.Text("q"), Start: true}); err != nil && thole.CodeOf(err) != thole.CodeOverloaded {
						t.Errorf("enqueue: %v", err)
					}
					continue
				}
				if err != nil {
					t.Errorf("start: %v", err)
					return
				}
				mu.Lock()
				started[turn.ID]++
				mu.Unlock()
				ref := thread.TurnRef{Thread: th.ID, Turn: turn.ID}
				if err := m.Apply(bg, ref, []event.Event{{ID: thole.EventID("end-" + string(turn.ID)), Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}}); err != nil {
					t.Errorf("end: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	name := "finished"
	last, err := b.Update(bg, me, th.ID, thread.Update{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	for who, sub := range map[string]*thread.Subscription{"a": here, "b": there} {
		events := await(t, sub, func(e event.Event) bool { return e.Seq >= last.Seq })
		next, open := uint64(2), thole.TurnID("")
		for _, e := range events {
			if e.Seq == 0 {
				continue
			}
			if e.Seq != next {
				t.Fatalf("%s: got %d, want %d", who, e.Seq, next)
			}
			next++
			switch e.Kind {
			case event.TurnStarted:
				if open != "" {
					t.Fatalf("%s: two turns are open", who)
				}
				open = e.Turn
			case event.TurnEnded:
				open = ""
			}
		}
	}
	for id, n := range started {
		if n != 1 {
			t.Errorf("turn %s has %d starters", id, n)
		}
	}
}

func TestTextOfAnotherProcess(t *testing.T) {
	a, b := twins(t)
	th, err := a.Create(bg, me, thread.Create{})
	if err != nil {
		t.Fatal(err)
	}
	there := subscribe(t, b, th.ID)
	turn, err := a.StartTurn(bg, me, thread.StartTurn{Thread: th.ID, Input: thole.Text("go")})
	if err != nil {
		t.Fatal(err)
	}
	ref := thread.TurnRef{Thread: th.ID, Turn: turn.ID}
	report := func(events ...event.Event) {
		t.Helper()
		if err := a.Apply(bg, ref, events); err != nil {
			t.Fatal(err)
		}
	}
	report(event.Event{ID: "1", Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: "i", Kind: event.ItemMessage}}})
	said := ""
	for _, word := range []string{"one ", "two ", "drei \x00 ", "vier ä"} {
		report(event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: "i", Stream: event.StreamText, Delta: word, Offset: int64(len(said))}})
		said += word
	}
	heard := ""
	await(t, there, func(e event.Event) bool {
		if e.Kind == event.ItemDelta {
			if e.Data.Offset != int64(len(heard)) {
				t.Fatalf("delta at %d behind %d bytes", e.Data.Offset, len(heard))
			}
			heard += e.Data.Delta
		}
		return heard == said
	})
	// A client that joins at the other process sees the text so far.
	joiner := subscribe(t, b, th.ID)
	if text := joiner.Snapshot.Open.Items[1].Text; text != said {
		t.Fatalf("joiner sees %q", text)
	}
	// An ask raised here is answered there, once.
	report(event.Event{ID: "2", Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: "ask", Kind: event.AskCommand}}})
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		m := []*thread.Machine{a, b}[i%2]
		wg.Go(func() {
			d := []event.Decision{event.DecisionAllow, event.DecisionDeny}[i/2%2]
			_, results[i] = m.Answer(bg, me, th.ID, "ask", event.Answer{Decision: d, Message: fmt.Sprint(i)})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if thole.CodeOf(err) != thole.CodeConflict {
			t.Errorf("answer: %v", err)
		}
	}
	if won != 1 {
		t.Fatalf("%d answers won", won)
	}
	if err := b.Delete(bg, me, th.ID); err != nil {
		t.Fatal(err)
	}
	for range joiner.Events {
	}
	if thole.CodeOf(joiner.Err()) != thole.CodeGone {
		t.Fatalf("ended with %v", joiner.Err())
	}
}
