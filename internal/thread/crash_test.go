package thread_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
)

const (
	crashed = thole.ThreadID("01890000-0000-7000-8000-000000000001")
	forked  = thole.ThreadID("01890000-0000-7000-8000-000000000002")
	doomed  = thole.ThreadID("01890000-0000-7000-8000-000000000003")
)

func openCrash(dir string, hook sqldb.Hook) (*store.DB, *thread.Machine, error) {
	db, err := storetest.OpenAt(bg, sqldb.Config{Path: filepath.Join(dir, "home", "thole.db"), Hook: hook})
	if err != nil {
		return nil, nil, err
	}
	m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: db.Threads()}, Checkpoint: time.Hour})
	if err != nil {
		return nil, nil, err
	}
	m.Attach(nobody{})
	return db, m, nil
}

// crashWork passes every durable step of the machine and acknowledges each call
// that returned.
func crashWork(w *crash.Work) error {
	_, m, err := openCrash(w.Dir, w.Hook)
	if err != nil {
		return err
	}
	var steps []error
	do := func(ack string, err error) {
		steps = append(steps, err)
		if err == nil {
			w.Ack(ack)
		}
	}
	_, err = m.Create(bg, me, thread.Create{ID: crashed})
	do("created", err)
	_, err = m.Create(bg, me, thread.Create{ID: doomed})
	do("created doomed", err)
	first, err := m.StartTurn(bg, me, thread.StartTurn{Thread: crashed, Input: thole.Text("one"), Idempotency: "key"})
	do("turn "+string(first.ID), err)
	ref := thread.TurnRef{Thread: crashed, Turn: first.ID, Executor: "x"}
	do("claimed", m.SetPhase(bg, ref, thole.PhaseClaimed, ""))
	do("item", m.Apply(bg, ref, []event.Event{
		{ID: "e1", Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: "i1", Kind: event.ItemMessage}}},
		{Kind: event.ItemDelta, Data: event.Data{ItemID: "i1", Stream: event.StreamText, Delta: "half an ans"}},
	}))
	m.Checkpoint(bg)
	w.Ack("draft")
	do("ask", m.Apply(bg, ref, []event.Event{
		{ID: "e2", Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: "a1", Kind: event.AskInput, Questions: []event.Question{{ID: "q"}}, Deadline: time.Now().Add(-time.Second)}}},
		{ID: "e3", Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: "a2", Kind: event.AskCommand}}},
	}))
	_, err = m.Answer(bg, me, crashed, "a2", event.Answer{Decision: event.DecisionAllow})
	do("answered a2", err)
	_, err = m.Steer(bg, me, thread.Steer{Thread: crashed, Expected: first.ID, Input: thole.Text("and this")})
	do("steered", err)
	queued, err := m.Enqueue(bg, me, thread.Enqueue{Thread: crashed, Input: thole.Text("next")})
	do("queued "+string(queued.ID), err)
	other, err := m.Enqueue(bg, me, thread.Enqueue{Thread: crashed, Input: thole.Text("later")})
	do("queued "+string(other.ID), err)
	do("reordered", m.ReorderQueued(bg, me, crashed, []thole.MessageID{other.ID, queued.ID}))
	_, err = m.EditQueued(bg, me, crashed, other.ID, thole.Text("edited"))
	do("edited", err)
	_, err = m.PromoteQueued(bg, me, crashed, other.ID)
	do("promoted "+string(other.ID), err)
	do("swept", m.Sweep(bg))
	do("ended", m.Apply(bg, ref, []event.Event{
		{ID: "e4", Kind: event.UsageUpdated, Data: event.Data{Usage: &thole.Usage{Input: 7}}},
		{ID: "e5", Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeInterrupted}},
	}))
	over, err := m.Turn(bg, me, crashed, first.ID)
	steps = append(steps, err, m.SetPhase(bg, ref, over.Outcome.Phase(), "")) // its files are saved: a fork waits for that
	th, err := m.Get(bg, me, crashed)
	steps = append(steps, err)
	if th.Open != "" {
		do("interrupted", m.Interrupt(bg, me, crashed, th.Open))
	}
	_, err = m.StartQueued(bg, me, crashed, "")
	if thole.CodeOf(err) != thole.CodeBusy {
		do("started queued", err)
	}
	_, err = m.RemoveQueued(bg, me, crashed, queued.ID)
	do("removed "+string(queued.ID), err)
	name := "named"
	_, err = m.Update(bg, me, crashed, thread.Update{Name: &name})
	do("named", err)
	_, err = m.Fork(bg, me, crashed, thread.Fork{ID: forked})
	do("forked", err)
	_, err = m.Revert(bg, me, forked, first.ID)
	do("reverted", err)
	_, err = m.SetGoal(bg, me, doomed, thread.SetGoal{Objective: new("reach it")})
	do("goal doomed", err)
	if th, err = m.Get(bg, me, doomed); err == nil {
		_, err = m.ReportGoal(bg, me, doomed, th.Open, event.GoalBlocked, "a key")
	}
	do("reported doomed", err)
	_, err = m.ClearGoal(bg, me, doomed)
	do("cleared doomed", err)
	_, err = m.Compact(bg, me, doomed, 1)
	do("compacted", err)
	do("deleted doomed", m.Delete(bg, me, doomed))
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestKilledAtEveryStep(t *testing.T) {
	crash.Enumerate(t, crashWork, func(t *testing.T, dir string, acked []string, killed string) {
		db, m, err := openCrash(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		has := func(ack string) bool { return slices.Contains(acked, ack) }
		if !has("created") {
			return
		}
		w := &world{t: t, db: db, m: m, id: crashed, answers: map[thole.AskID]event.Answer{}}
		if has("answered a2") {
			w.answers["a2"] = event.Answer{Decision: event.DecisionAllow}
		}
		before := w.reference()
		w.check()
		if has("draft") && before.items["i1"].open {
			sub, err := m.Subscribe(bg, me, crashed, thread.SubscribeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if text := sub.Snapshot.Open.Items[1].Text; text != "half an ans" {
				t.Fatalf("a joiner after the crash sees %q", text)
			}
			sub.Close()
		}
		for range 2 { // recovery may be cut short and repeated
			if err := m.Recover(bg); err != nil {
				t.Fatal(err)
			}
		}
		r := w.reference()
		w.check()
		if before.open != "" && before.began && r.outcomes[before.open] == "" {
			t.Fatalf("turn %s is neither resumed nor over", before.open)
		}
		if it := r.items["i1"]; has("draft") && it.text != "half an ans" {
			t.Fatalf("the partial answer is %q", it.text)
		}
		for _, a := range acked {
			verb, id, _ := strings.Cut(a, " ")
			switch verb {
			case "turn":
				if _, err := m.Turn(bg, me, crashed, thole.TurnID(id)); err != nil {
					t.Fatalf("acknowledged turn: %v", err)
				}
				again, err := m.StartTurn(bg, me, thread.StartTurn{Thread: crashed, Input: thole.Text("one"), Idempotency: "key"})
				if err != nil || string(again.ID) != id {
					t.Fatalf("the key gives turn %s, %v", again.ID, err)
				}
			case "queued", "promoted", "steered", "edited", "reordered", "interrupted", "named":
				if !r.has(map[string]event.Kind{
					"queued": event.QueueAdded, "promoted": event.TurnSteered, "steered": event.TurnSteered, "edited": event.QueueEdited,
					"reordered": event.QueueReordered, "interrupted": event.TurnInterrupt, "named": event.ThreadUpdated,
				}[verb], id) {
					t.Fatalf("%q was acknowledged and is lost", a)
				}
			case "removed":
				if slices.Contains(r.queue, thole.MessageID(id)) {
					t.Fatalf("message %s is back", id)
				}
			case "ended":
				if r.outcomes[r.firstTurn()] == "" {
					t.Fatal("the turn's end is lost")
				}
			case "swept":
				if r.settled["a1"] != 1 {
					t.Fatal("the overdue ask is not settled")
				}
			case "goal": // with its one turn, in the same transaction
				if th, err := m.Get(bg, me, doomed); err == nil && !has("cleared doomed") && !strings.Contains(killed, "thread.clear_goal") && (th.Goal == nil || th.Turns != 1) {
					t.Fatalf("the goal is %+v with %d turns", th.Goal, th.Turns)
				}
			case "deleted":
				if _, err := m.Get(bg, me, doomed); thole.CodeOf(err) != thole.CodeNotFound {
					t.Fatalf("deleted thread: %v", err)
				}
			case "forked":
				items, err := m.Items(bg, me, forked, "", all)
				log, lerr := m.Events(bg, me, forked, before.seq, 10)
				th, terr := m.Get(bg, me, forked)
				gone := slices.ContainsFunc(log, func(e event.Event) bool { return e.Kind == event.ThreadReverted })
				if err := errors.Join(err, lerr, terr); err != nil || (len(items.Items) == 0) != gone || th.Retell != gone || has("reverted") && !gone {
					t.Fatalf("fork has %d items, reverted %v, retold %v, %v", len(items.Items), gone, th.Retell, err)
				}
			}
		}
		if has("ask") && len(r.asked) != 2 {
			t.Fatalf("asks are lost: %v", r.asked)
		}
		// What the agent said before the crash may be reported again.
		if has("item") {
			before := w.reference().seq
			err := m.Apply(bg, thread.TurnRef{Thread: crashed, Turn: r.firstTurn()}, []event.Event{
				{ID: "e1", Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: "i1", Kind: event.ItemMessage}}}})
			if err != nil || w.reference().seq != before {
				t.Fatalf("repeat after the crash: %v", err)
			}
		}
	})
}

// has reports whether the log has an event of that kind, about that message if one
// is named.
func (r *reference) has(k event.Kind, message string) bool {
	return slices.ContainsFunc(r.events, func(e event.Event) bool {
		return e.Kind == k && (message == "" || e.Data.Message != nil && string(e.Data.Message.ID) == message)
	})
}

func (r *reference) firstTurn() thole.TurnID {
	for _, e := range r.events {
		if e.Kind == event.TurnStarted {
			return e.Turn
		}
	}
	return ""
}
