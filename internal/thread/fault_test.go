package thread_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/fault"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
)

// With the store failing at any call, before its effect or after it, a client that asks
// again gets what it asked for once, and the machine believes what a machine
// that reads the store again believes.
func TestStoreFailsAtEveryCall(t *testing.T) {
	fault.Enumerate(t, func(t *testing.T, p *fault.Plan) {
		db, err := storetest.OpenAt(bg, sqldb.Config{Path: filepath.Join(t.TempDir(), "thole.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		m, err := thread.New(thread.Config{Store: &threadtest.Store{Next: threadtest.Unfenced{Store: db.Threads()}, Plan: p}})
		if err != nil {
			t.Fatal(err)
		}
		m.Attach(nobody{})
		defer shut(m)
		// again asks a second time if the fault is what failed the first.
		again := func(what string, ask func() error, done ...thole.Code) {
			t.Helper()
			err := ask()
			if !errors.Is(err, fault.Err) {
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				return
			}
			if err = ask(); err == nil {
				return
			}
			for _, code := range done {
				if thole.CodeOf(err) == code { // the first time had its effect
					return
				}
			}
			t.Fatalf("%s, again: %v", what, err)
		}
		again("create", func() error {
			_, err := m.Create(bg, me, thread.Create{ID: crashed})
			return err
		}, thole.CodeConflict)
		var turn fold.Turn
		again("start", func() (err error) {
			turn, err = m.StartTurn(bg, me, thread.StartTurn{Thread: crashed, Input: thole.Text("one"), Idempotency: "key"})
			return err
		})
		ref := thread.TurnRef{Thread: crashed, Turn: turn.ID, Executor: "x"}
		again("phase", func() error { return m.SetPhase(bg, ref, thole.PhaseClaimed, "") })
		again("report", func() error {
			return m.Apply(bg, ref, []event.Event{
				{ID: "e1", Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: "i1", Kind: event.ItemMessage}}},
				{ID: "e2", Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: "i1", Kind: event.ItemMessage, Text: "said"}}},
				{ID: "e3", Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: "a1", Kind: event.AskCommand}}},
				{ID: "e4", Kind: event.TodoSnapshot, Data: event.Data{Todos: []event.Todo{{ID: "1", Content: "c", State: event.TodoDoing}}}},
			})
		})
		again("answer", func() error {
			_, err := m.Answer(bg, me, crashed, "a1", event.Answer{Decision: event.DecisionAllow})
			return err
		}, thole.CodeConflict)
		again("end", func() error {
			return m.Apply(bg, ref, []event.Event{{ID: "e5", Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}})
		}, thole.CodeConflict)
		name := "named"
		again("name", func() error {
			_, err := m.Update(bg, me, crashed, thread.Update{Name: &name})
			return err
		})

		fresh, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: db.Threads()}})
		if err != nil {
			t.Fatal(err)
		}
		fresh.Attach(nobody{})
		defer shut(fresh)
		if diff := cmp.Diff(seen(t, fresh), seen(t, m), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the machine believes otherwise than the store (-store +machine):\n%s", diff)
		}
		story(t, fresh, turn.ID)
	})
}

func shut(m *thread.Machine) {
	ended, cancel := context.WithCancel(bg)
	cancel()
	_ = m.Close(ended)
}

// seen is what a client that attaches now receives.
func seen(t *testing.T, m *thread.Machine) thread.Snapshot {
	t.Helper()
	sub, err := m.Subscribe(bg, me, crashed, thread.SubscribeOptions{})
	if errors.Is(err, fault.Err) { // the fault was waiting for this very call
		sub, err = m.Subscribe(bg, me, crashed, thread.SubscribeOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	s := sub.Snapshot
	s.Revision = 0 // of this process alone
	s.Taken = s.Thread.Updated
	return s
}

// story checks that the log has each thing once.
func story(t *testing.T, m *thread.Machine, turn thole.TurnID) {
	t.Helper()
	events, err := m.Events(bg, me, crashed, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	count := map[event.Kind]int{}
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has sequence number %d", i, e.Seq)
		}
		if e.Turn != "" && e.Turn != turn {
			t.Errorf("event %d is of turn %s", e.Seq, e.Turn)
		}
		count[e.Kind]++
	}
	want := map[event.Kind]int{
		event.TurnStarted: 1, event.ItemCompleted: 2 /* the user's and the agent's */, event.AskRequested: 1, event.AskResolved: 1, event.TurnEnded: 1,
	}
	for kind, n := range want {
		if count[kind] != n {
			t.Errorf("%d %s in the log", count[kind], kind)
		}
	}
}
