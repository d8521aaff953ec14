package fold

import (
	"slices"

	"github.com/tholehq/thole/event"
)

// Follow folds an event into a state whose beginning may be unknown: a replay that
// starts in the middle of a log, or the reports of a provider before they are
// committed. It is Apply without the transition table: what an event refers to may
// be missing and is then made up from the event. Ephemeral events and repeats change
// nothing. It returns what changed.
func (s *State) Follow(e event.Event) *Changes {
	c := &Changes{}
	if e.Kind == event.ThreadCreated {
		s.create(e)
		s.Todos, c.Todos = e.Created.Todos, e.Created.Todos
		return c
	}
	if e.Turn != "" && e.Turn != s.OpenID() && e.Kind != event.TurnPhase || e.Kind == event.TurnStarted {
		s.Open, s.Items, s.Asks, s.Settled = nil, nil, nil, nil
		if e.Kind != event.TurnStarted {
			s.Open = &Turn{ID: e.Turn, Thread: e.Thread, Created: e.Time, Trace: e.Trace}
		}
	}
	switch e.Kind {
	case event.ItemUpdated:
		if s.Item(e.Item.ID) < 0 {
			e.Kind = event.ItemStarted
		}
	case event.AskResolved:
		if e.AskState == "" {
			e.AskState = event.AskAnswered
			if e.Answer == nil {
				e.AskState = event.AskCanceled
			}
		}
	case event.TurnEnded:
		s.Items, s.Asks = closed(s.Items), nil
	}
	// An error says that the event fits nothing that is known here; the state stays.
	if s.foldKind(e, c) == nil && e.Seq > 0 {
		s.Row.Thread.Seq, s.Row.Thread.Updated = e.Seq, e.Time
	}
	return c
}

func closed(items []ItemRecord) []ItemRecord {
	items = slices.Clone(items)
	for i := range items {
		items[i].Open = false
	}
	return items
}
