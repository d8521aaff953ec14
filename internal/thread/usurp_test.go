package thread_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
)

// What an executor claims of an ask, and what becomes of it.
func TestOnlyWhatIsRecordedHereIsAnAnswer(t *testing.T) {
	yes, no := &event.Answer{Decision: event.DecisionAllow}, &event.Answer{Decision: event.DecisionDeny}
	always := &event.Answer{Decision: event.DecisionAlways}
	done := func(id thole.ItemID, st event.ItemState) event.Event {
		return event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: id, Kind: event.ItemCommand, State: st, Command: &event.Command{}}}}
	}
	resolved := func(a *event.Answer) event.Event {
		return event.Event{Kind: event.AskResolved, Data: event.Data{AskID: "a", Answer: a}}
	}
	for name, tc := range map[string]struct {
		human   *event.Answer // recorded before the claim
		receipt bool          // the claim comes with the record's receipt
		claims  []event.Event
		state   event.AskState
		actor   thole.Actor
	}{
		"answered by nobody here":         {nil, false, []event.Event{resolved(yes)}, event.AskSelfAnswered, thole.AgentActor},
		"denied by nobody here":           {nil, false, []event.Event{resolved(no)}, event.AskSelfAnswered, thole.AgentActor},
		"another answer":                  {no, true, []event.Event{resolved(yes)}, event.AskSelfAnswered, thole.AgentActor},
		"the same, not ours":              {yes, false, []event.Event{resolved(yes)}, event.AskSelfAnswered, thole.AgentActor},
		"ours":                            {yes, true, []event.Event{resolved(yes), done("i", event.StateCompleted)}, event.AskAnswered, me},
		"withdrawn":                       {nil, false, []event.Event{resolved(nil), done("i", event.StateDeclined)}, event.AskCanceled, thole.SystemActor},
		"withdrawn behind an answer":      {yes, false, []event.Event{resolved(nil)}, event.AskAnswered, me},
		"withdrawn and done all the same": {nil, false, []event.Event{resolved(nil), done("i", event.StateCompleted)}, event.AskSelfAnswered, thole.AgentActor},
		"done without a word":             {nil, false, []event.Event{done("i", event.StateCompleted)}, event.AskSelfAnswered, thole.AgentActor},
		"another item is done":            {nil, false, []event.Event{resolved(nil), done("j", event.StateCompleted)}, event.AskCanceled, thole.SystemActor},
		"allowed with its neighbour":      {always, true, []event.Event{resolved(always), asksFor("b", "j"), {Kind: event.AskResolved, Data: event.Data{AskID: "b"}}, done("j", event.StateCompleted)}, event.AskAnswered, me},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
				db := open(t)
				var log bytes.Buffer
				m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: db.Threads()}, Log: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				m.Attach(nobody{})
				t.Cleanup(func() { _ = m.Close(bg) })
				b := &bench{t: t, now: time.Now(), Machine: m}
				id := b.create(thread.Create{}).ID
				turn, report := b.turn(id, "x")
				report(asksFor("a", "i"))
				var receipt thole.EventID
				if tc.human != nil {
					if _, err := m.Answer(bg, me, id, "a", *tc.human); err != nil {
						t.Fatal(err)
					}
				}
				if tc.receipt {
					asks, err := m.Asks(bg, me, id, false)
					if err != nil {
						t.Fatal(err)
					}
					receipt = asks[0].Receipt
				}
				for i := range tc.claims {
					tc.claims[i].Receipt = receipt
				}
				report(tc.claims...)
				blamed := tc.state == event.AskSelfAnswered
				if got := b.lastTurn(id).Interrupted; got != blamed {
					t.Errorf("interrupted: %v", got)
				}
				report(event.Event{Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}})
				outcome := thole.OutcomeCompleted
				if blamed {
					outcome = thole.OutcomeInterrupted // also when it was done before it heard
				}
				if got := b.lastTurn(id); got.ID != turn.ID || got.Outcome != outcome {
					t.Errorf("the turn ended %s, want %s", got.Outcome, outcome)
				}
				asks, err := m.Asks(bg, me, id, false)
				if err != nil || asks[0].State != tc.state || asks[0].Actor != tc.actor {
					t.Errorf("ask %+v, %v", asks[0], err)
				}
				// The audit chain says the same: what the agent did is nobody's else.
				links, err := db.Audit().Latest(bg, audit.Filter{Action: "ask.answer", Resource: "a", Limit: 1})
				if answered := tc.state == event.AskAnswered || blamed; err != nil || answered != (len(links) == 1) || answered && links[0].Actor != tc.actor.Who() {
					t.Errorf("links %+v, %v", links, err)
				}
				if got := strings.Contains(log.String(), "answered its own question"); got != blamed {
					t.Errorf("the log says %q", log.String())
				}
				if _, err := m.Answer(bg, me, id, "a", *no); blamed && thole.CodeOf(err) != thole.CodeConflict {
					t.Errorf("answered behind the agent: %v", err)
				}
			})
		})
	}
}

func asksFor(ask thole.AskID, item thole.ItemID) event.Event {
	return event.Event{Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: ask, Kind: event.AskCommand, Item: item}}}
}
