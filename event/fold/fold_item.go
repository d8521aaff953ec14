package fold

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

func (s *State) foldItem(e event.Event, c *Changes) error {
	if e.Kind == event.StepReset {
		return s.resetStep(c)
	}
	item := *e.Data.Item
	i := s.Item(item.ID)
	r := ItemRecord{Turn: e.Turn, Seq: e.Seq, Open: e.Kind != event.ItemCompleted, Item: item}
	if i >= 0 {
		if !s.Items[i].Open {
			return illegal(e, "the item is complete")
		}
		r.Seq = s.Items[i].Seq
	} else if e.Kind == event.ItemUpdated {
		return illegal(e, "no such item")
	}
	s.withItem(r)
	c.putItem(r)
	if e.Kind == event.ItemCompleted {
		c.Closed = append(c.Closed, item.ID)
		// The user's message that the agent took in is no longer waiting.
		if item.Kind == event.ItemUserMessage && e.Data.MessageID != "" {
			return s.touchTurn(c, func(t *Turn) { t.Steers = Without(t.Steers, e.Data.MessageID) })
		}
	}
	return nil
}

// resetStep forgets the items of the current model call: the agent repeats it.
// What the user said stays.
func (s *State) resetStep(c *Changes) error {
	var kept []ItemRecord
	for _, r := range s.Items {
		if r.Seq > s.Row.Step && r.Item.Kind != event.ItemUserMessage {
			c.dropItem(r)
			continue
		}
		kept = append(kept, r)
	}
	s.Items = kept
	return nil
}

func (s *State) foldAsk(e event.Event, c *Changes) error {
	if e.Kind == event.AskRequested {
		ask := *e.Data.Ask
		if s.Asked(ask.ID) {
			return illegal(e, "the ask exists")
		}
		r := AskRecord{Ask: ask, Thread: e.Thread, Turn: e.Turn, State: event.AskPending, Asked: e.Time}
		s.Asks = append(slices.Clone(s.Asks), r)
		c.putAsk(r)
	} else {
		r, ok := s.AnyAsk(e.Data.AskID)
		if !ok || !r.State.MayBecome(e.Data.AskState) {
			return illegal(e, "the ask is not pending")
		}
		r.State, r.Answer, r.Actor, r.Resolved, r.Receipt = e.Data.AskState, e.Data.Answer, e.Actor, e.Time, e.ID
		same := func(a AskRecord) bool { return a.Ask.ID == r.Ask.ID }
		s.Asks = slices.DeleteFunc(slices.Clone(s.Asks), same)
		s.Settled = append(slices.DeleteFunc(slices.Clone(s.Settled), same), r)
		c.putAsk(r)
	}
	s.Row.Approvals, s.Row.Inputs = 0, 0
	for _, a := range s.Asks {
		switch {
		case a.Ask.Kind.Approval():
			s.Row.Approvals++
		case a.Ask.Kind != event.AskTool: // which a program answers, no person
			s.Row.Inputs++
		}
	}
	return s.touchTurn(c, func(t *Turn) {
		switch {
		case t.Deferred != "":
			if e.Kind == event.AskResolved && t.Deferred == e.Data.AskID && e.Data.AskState == event.AskAnswered {
				t.Phase = thole.PhaseQueued
				t.Deferred = ""
				t.Reply = e.Data.AskID
				t.Run++
			}
		case len(s.Asks) > 0:
			t.Phase = thole.PhaseWaitingHuman
		default:
			t.Phase = thole.PhaseRunning
		}
	})
}
