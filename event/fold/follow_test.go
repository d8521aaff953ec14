package fold_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// story is a log with one of everything.
func story() []event.Event {
	at := time.UnixMilli(1e12).UTC()
	name := "n"
	item := func(id thole.ItemID, k event.ItemKind) *event.Item { return &event.Item{ID: id, Kind: k} }
	log := []event.Event{
		{Kind: event.ThreadCreated, Data: event.Data{Created: &event.Created{Owner: thole.DefaultOwner}}},
		{Kind: event.ThreadUpdated, Data: event.Data{Name: &name, NativeID: "native"}},
		{Kind: event.QueueAdded, Data: event.Data{Message: &event.Message{ID: "m1"}}},
		{Kind: event.QueueAdded, Data: event.Data{Message: &event.Message{ID: "m2"}, Front: true}},
		{Kind: event.QueueReordered, Data: event.Data{Order: []thole.MessageID{"m1", "m2"}}},
		{Kind: event.QueueEdited, Data: event.Data{Message: &event.Message{ID: "m1", Input: thole.Text("x")}}},
		{Kind: event.QueueRemoved, Data: event.Data{MessageID: "m2"}},
		{Kind: event.TurnStarted, Turn: "t1", Data: event.Data{Input: thole.Text("hello")}},
		{Kind: event.TurnPhase, Turn: "t1", Executor: "ex", Data: event.Data{Phase: thole.PhaseRunning}},
		{Kind: event.TurnSteered, Turn: "t1", Data: event.Data{Message: &event.Message{ID: "s"}}},
		{Kind: event.SteerRefused, Turn: "t1", Data: event.Data{MessageID: "s"}},
		{Kind: event.StepStarted, Turn: "t1"},
		{Kind: event.ItemStarted, Turn: "t1", Data: event.Data{Item: item("i1", event.ItemMessage)}},
		{Kind: event.StepReset, Turn: "t1"},
		{Kind: event.ItemStarted, Turn: "t1", Data: event.Data{Item: item("i2", event.ItemCommand)}},
		{Kind: event.ItemUpdated, Turn: "t1", Data: event.Data{Item: item("i2", event.ItemCommand)}},
		{Kind: event.AskRequested, Turn: "t1", Data: event.Data{Ask: &event.Ask{ID: "a", Kind: event.AskCommand}}},
		{Kind: event.AskResolved, Turn: "t1", Data: event.Data{AskID: "a", AskState: event.AskAnswered, Answer: &event.Answer{Decision: event.DecisionAllow}}},
		{Kind: event.ItemCompleted, Turn: "t1", Data: event.Data{Item: item("i2", event.ItemCommand)}},
		{Kind: event.StepEnded, Turn: "t1"},
		{Kind: event.TodoSnapshot, Turn: "t1", Data: event.Data{Todos: []event.Todo{{ID: "1"}, {ID: "2", Order: 1}}}},
		{Kind: event.TodoUpdate, Turn: "t1", Data: event.Data{Todos: []event.Todo{{ID: "2", State: event.TodoDone, Order: 1}}}},
		{Kind: event.UsageUpdated, Turn: "t1", Data: event.Data{Usage: &thole.Usage{Input: 5}}},
		{Kind: event.ErrorReported, Turn: "t1", Data: event.Data{Error: &thole.TurnError{Code: "x", Retrying: true}}},
		{Kind: event.NoteReported, Turn: "t1", Data: event.Data{Text: "hm"}},
		{Kind: event.TurnInterrupt, Turn: "t1"},
		{Kind: event.TurnEnded, Turn: "t1", Data: event.Data{Outcome: thole.OutcomeInterrupted}},
		{Kind: event.TurnPhase, Turn: "t1", Data: event.Data{Phase: thole.PhaseExported}},
		{Kind: event.GoalUpdated, Data: event.Data{Goal: &event.Goal{Objective: "all of it", Status: event.GoalActive, Alone: 3}}},
		{Kind: event.TurnStarted, Turn: "t2", Actor: thole.SystemActor, Data: event.Data{Input: thole.Goal("all of it")}},
	}
	for i := range log {
		log[i].Thread, log[i].Seq, log[i].Time = "th", uint64(i+1), at.Add(time.Duration(i)*time.Second)
	}
	return log
}

// On a whole log both ways to fold agree at every event, in state and in changes.
func TestFollowAgreesWithApply(t *testing.T) {
	strict, lenient := &fold.State{}, &fold.State{}
	for _, e := range story() {
		var want fold.Changes
		if err := strict.Apply(e, &want); err != nil {
			t.Fatal(err)
		}
		got := lenient.Follow(e)
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("changes of %s (-apply +follow):\n%s", e.Kind, diff)
		}
		if diff := cmp.Diff(strict, lenient, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("state after %s (-apply +follow):\n%s", e.Kind, diff)
		}
	}
}

// From any place in a log Follow goes on without what came before, and knows all
// of a turn whose start it saw.
func TestFollowFromTheMiddle(t *testing.T) {
	log := story()
	for from := range log {
		s := &fold.State{}
		for _, e := range log[from:] {
			s.Follow(e)
			s.Follow(e) // a repeat changes nothing
		}
		if s.OpenID() != "t2" || len(s.Items) > 0 || len(s.Asks) > 0 {
			t.Fatalf("from %d: open %s, %d items, %d asks", from, s.OpenID(), len(s.Items), len(s.Asks))
		}
		if from <= 20 && len(s.Todos) != 2 {
			t.Fatalf("from %d: todos %+v", from, s.Todos)
		}
	}
}

// Ephemeral and report-only kinds are refused by a log and leave a reader as it is.
func TestWhatIsNotStored(t *testing.T) {
	for _, k := range []event.Kind{event.ThreadStatus, event.ItemDelta, event.SteerTaken} {
		s := &fold.State{}
		for _, e := range story()[:10] {
			s.Follow(e)
		}
		before := s.Clone()
		e := event.Event{Kind: k, Thread: "th", Turn: "t1", Seq: s.Seq() + 1}
		if err := s.Clone().Apply(e, &fold.Changes{}); err == nil {
			t.Errorf("%s was folded into a log", k)
		}
		e.Seq = 0
		s.Follow(e)
		if diff := cmp.Diff(before, s); diff != "" {
			t.Errorf("%s changed the state:\n%s", k, diff)
		}
	}
}

// Copies are folded on independently of one another and the original.
func TestCopiesDoNotShareWhatTheyAppend(t *testing.T) {
	s := &fold.State{}
	for _, e := range story()[:9] { // a turn runs
		s.Follow(e)
	}
	s.Items = append(make([]fold.ItemRecord, 0, 8), s.Items...) // with room to append in place
	add := func(s *fold.State, id thole.ItemID) {
		s.Follow(event.Event{Kind: event.ItemStarted, Turn: "t1", Data: event.Data{Item: &event.Item{ID: id, Kind: event.ItemMessage}}})
	}
	one, two := s.Copy(), s.Copy()
	add(one, "one")
	add(two, "two")
	add(s, "original")
	for want, s := range map[thole.ItemID]*fold.State{"one": one, "two": two, "original": s} {
		if len(s.Items) != 1 || s.Items[0].Item.ID != want {
			t.Errorf("%s has %+v", want, s.Items)
		}
	}
}
