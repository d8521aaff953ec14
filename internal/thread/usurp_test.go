package thread_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// What an executor claims of an ask, and what becomes of it.
func TestOnlyWhatIsRecordedHereIsAnAnswer(t *testing.T) {
	yes, no := &thole.Answer{Decision: thole.DecisionAllow}, &thole.Answer{Decision: thole.DecisionDeny}
	always := &thole.Answer{Decision: thole.DecisionAlways}
	done := func(id thole.ItemID, st thole.ItemState) provider.Event {
		return provider.Event{Kind: provider.EventItemCompleted, Item: &thole.Item{ID: id, Kind: thole.ItemCommand, State: st, Command: &thole.Command{}}}
	}
	resolved := func(a *thole.Answer) provider.Event {
		return provider.Event{Kind: provider.EventAskResolved, AskID: "a", Answer: a}
	}
	for name, tc := range map[string]struct {
		human   *thole.Answer // recorded before the claim
		receipt bool          // the claim comes with the record's receipt
		claims  []provider.Event
		state   thole.AskState
		actor   thole.Actor
	}{
		"answered by nobody here":         {nil, false, []provider.Event{resolved(yes)}, thole.AskSelfAnswered, thole.AgentActor},
		"denied by nobody here":           {nil, false, []provider.Event{resolved(no)}, thole.AskSelfAnswered, thole.AgentActor},
		"another answer":                  {no, true, []provider.Event{resolved(yes)}, thole.AskSelfAnswered, thole.AgentActor},
		"the same, not ours":              {yes, false, []provider.Event{resolved(yes)}, thole.AskSelfAnswered, thole.AgentActor},
		"ours":                            {yes, true, []provider.Event{resolved(yes), done("i", thole.ItemCompleted)}, thole.AskAnswered, me},
		"withdrawn":                       {nil, false, []provider.Event{resolved(nil), done("i", thole.ItemDeclined)}, thole.AskCanceled, thole.SystemActor},
		"withdrawn behind an answer":      {yes, false, []provider.Event{resolved(nil)}, thole.AskAnswered, me},
		"withdrawn and done all the same": {nil, false, []provider.Event{resolved(nil), done("i", thole.ItemCompleted)}, thole.AskSelfAnswered, thole.AgentActor},
		"done without a word":             {nil, false, []provider.Event{done("i", thole.ItemCompleted)}, thole.AskSelfAnswered, thole.AgentActor},
		"another item is done":            {nil, false, []provider.Event{resolved(nil), done("j", thole.ItemCompleted)}, thole.AskCanceled, thole.SystemActor},
		"allowed with its neighbour":      {always, true, []provider.Event{resolved(always), asksFor("b", "j"), {Kind: provider.EventAskResolved, AskID: "b"}, done("j", thole.ItemCompleted)}, thole.AskAnswered, me},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
				db := open(t)
				var log bytes.Buffer
				m, err := thread.New(thread.Config{Store: db.Threads(), Log: slog.New(slog.NewTextHandler(&log, nil))})
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
				blamed := tc.state == thole.AskSelfAnswered
				if got := b.lastTurn(id).Interrupted; got != blamed {
					t.Errorf("interrupted: %v", got)
				}
				report(provider.Event{Kind: provider.EventEnded, Ended: &provider.Ended{Outcome: thole.OutcomeCompleted}})
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

func asksFor(ask thole.AskID, item thole.ItemID) provider.Event {
	return provider.Event{Kind: provider.EventAskRequested, Ask: &thole.Ask{ID: ask, Kind: thole.AskCommand, Item: item}}
}
