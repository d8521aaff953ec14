package thread

import (
	"slices"

	thole "github.com/tholehq/thole"
)

func (s *state) foldItem(e Event, c *Commit) error {
	if e.Kind == StepReset {
		return s.resetStep(c)
	}
	item := *e.Data.Item
	i := s.item(item.ID)
	r := ItemRecord{Turn: e.Turn, Seq: e.Seq, Open: e.Kind != ItemCompleted, Item: item}
	if i >= 0 {
		if !s.items[i].Open {
			return illegal(e, "the item is complete")
		}
		r.Seq = s.items[i].Seq
	} else if e.Kind == ItemUpdated {
		return illegal(e, "no such item")
	}
	s.withItem(r)
	c.putItem(r)
	if e.Kind == ItemCompleted {
		c.Closed = append(c.Closed, item.ID)
		// The user's message that the agent took in is no longer waiting.
		if item.Kind == thole.ItemUserMessage && e.Data.MessageID != "" {
			return s.touchTurn(c, func(t *Turn) { t.Steers = without(t.Steers, e.Data.MessageID) })
		}
	}
	return nil
}

// resetStep forgets the items of the current model call: the agent repeats it.
// What the user said stays.
func (s *state) resetStep(c *Commit) error {
	var kept []ItemRecord
	for _, r := range s.items {
		if r.Seq > s.row.Step && r.Item.Kind != thole.ItemUserMessage {
			c.dropItem(r)
			continue
		}
		kept = append(kept, r)
	}
	s.items = kept
	return nil
}

func (c *Commit) putItem(r ItemRecord) {
	for i := range c.Items {
		if c.Items[i].Item.ID == r.Item.ID {
			c.Items[i] = r
			return
		}
	}
	c.Items = append(c.Items, r)
}

func (c *Commit) dropItem(r ItemRecord) {
	c.Items = slices.DeleteFunc(c.Items, func(have ItemRecord) bool { return have.Item.ID == r.Item.ID })
	c.DropItems = append(c.DropItems, r)
	c.Closed = append(c.Closed, r.Item.ID)
}

func (s *state) foldAsk(e Event, c *Commit) error {
	if e.Kind == AskRequested {
		ask := *e.Data.Ask
		if s.asked(ask.ID) {
			return illegal(e, "the ask exists")
		}
		r := AskRecord{Ask: ask, Thread: e.Thread, Turn: e.Turn, State: thole.AskPending, Asked: e.Time}
		s.asks = append(slices.Clone(s.asks), r)
		c.putAsk(r)
	} else {
		r, ok := s.anyAsk(e.Data.AskID)
		if !ok || !askMove(r.State, e.Data.AskState) {
			return illegal(e, "the ask is not pending")
		}
		r.State, r.Answer, r.Actor, r.Resolved, r.Receipt = e.Data.AskState, e.Data.Answer, e.Actor, e.Time, e.ID
		same := func(a AskRecord) bool { return a.Ask.ID == r.Ask.ID }
		s.asks = slices.DeleteFunc(slices.Clone(s.asks), same)
		s.settled = append(slices.DeleteFunc(slices.Clone(s.settled), same), r)
		c.putAsk(r)
	}
	s.row.Approvals, s.row.Inputs = 0, 0
	for _, a := range s.asks {
		if approval(a.Ask.Kind) {
			s.row.Approvals++
		} else {
			s.row.Inputs++
		}
	}
	return s.touchTurn(c, func(t *Turn) {
		switch {
		case t.Deferred != "":
			if e.Kind == AskResolved && t.Deferred == e.Data.AskID && e.Data.AskState == thole.AskAnswered {
				t.Phase = thole.PhaseQueued
				t.Deferred = ""
				t.Reply = e.Data.AskID
				t.Run++
			}
		case len(s.asks) > 0:
			t.Phase = thole.PhaseWaitingHuman
		default:
			t.Phase = thole.PhaseRunning
		}
	})
}

func (c *Commit) putAsk(r AskRecord) {
	for i := range c.Asks {
		if c.Asks[i].Ask.ID == r.Ask.ID {
			c.Asks[i] = r
			return
		}
	}
	c.Asks = append(c.Asks, r)
}
