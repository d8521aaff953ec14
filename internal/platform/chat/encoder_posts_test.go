package chat_test

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/chat"
)

// complete is the official client's rule for posting a message back by itself: an
// approval of the last step is answered, and every tool of that step has ended or
// is answered.
func complete(m *chat.Message, answered map[string]bool) bool {
	var tools []chat.Part
	for _, p := range m.Parts {
		if p["type"] == "step-start" {
			tools = nil
		} else if p["toolCallId"] != nil {
			tools = append(tools, p)
		}
	}
	one := false
	for _, p := range tools {
		switch p["state"] {
		case "output-available", "output-error", "output-denied":
			if p["preliminary"] == true {
				return false
			}
		case "approval-requested":
			if !answered[p["approval"].(chat.Part)["id"].(string)] {
				return false
			}
			one = true
		default:
			return false
		}
	}
	return one
}

// TestTheOfficialClientPostsApprovals walks the orders in which agents ask.
func TestTheOfficialClientPostsApprovals(t *testing.T) {
	tool := func(id string) event.Event {
		return event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: thole.ItemID(id), Kind: event.ItemCommand, Command: &event.Command{Line: "touch " + id}}}}
	}
	ask := func(id, item string) event.Event {
		return event.Event{Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: thole.AskID(id), Kind: event.AskCommand, Item: thole.ItemID(item), Command: "touch " + item}}}
	}
	begin, end := event.Event{Kind: event.StepStarted}, event.Event{Kind: event.StepEnded}
	for name, events := range map[string][]event.Event{
		"in the tool's step":                 {begin, tool("a"), ask("q", "a")},
		"after the tool's step":              {begin, tool("a"), end, ask("q", "a")},
		"one of two tools":                   {begin, tool("a"), tool("b"), end, ask("q", "a")},
		"while another tool runs":            {begin, tool("a"), end, begin, tool("b"), ask("q", "b")},
		"about a tool of an earlier step":    {begin, tool("a"), end, begin, ask("q", "a")},
		"about a tool, and another one runs": {begin, tool("a"), end, begin, tool("b"), ask("q", "a")},
		"two at once":                        {begin, tool("a"), tool("b"), end, ask("q", "a"), ask("r", "b")},
		"two at once, one without a tool":    {begin, tool("a"), end, ask("q", "a"), ask("r", "")},
		"without a tool":                     {begin, end, ask("q", "")},
	} {
		t.Run(name, func(t *testing.T) {
			e, m, rules := chat.NewEncoder(turn), chat.NewMessage(), newClient()
			e.Posts()
			asked := map[string]bool{}
			for i, ev := range append([]event.Event{{Kind: event.TurnStarted, Data: event.Data{Input: thole.Text("x"), Settings: &event.Settings{}}}}, events...) {
				ev.Turn, ev.Seq = turn.ID, uint64(i+1)
				if ev.Data.Ask != nil {
					asked[string(ev.Data.Ask.ID)] = true
				}
				e.Event(ev)
				chunks := e.Take()
				for _, c := range chunks {
					rules.take(c)
				}
				m.Fold(chunks)
			}
			if !e.Blocked() {
				t.Fatal("it does not wait")
			}
			if rules.err != nil {
				t.Fatal(rules.err)
			}
			if !complete(m, asked) {
				t.Errorf("the client would never post it: %v", m.Parts)
			}
		})
	}
}
