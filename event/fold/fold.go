package fold

import (
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Apply folds one event into the state and notes in c which rows it changed. It
// refuses an event that the transition table does not allow; decisions are made
// so that this never happens, and a log that holds one is damaged.
func (s *State) Apply(e event.Event, c *Changes) error {
	if e.Kind == event.ThreadCreated {
		if s.Seq() != 0 && e.Data.Created.ForkedFrom == "" {
			return illegal(e, "thread exists")
		}
		s.create(e)
		s.Todos, c.Todos = e.Data.Created.Todos, e.Data.Created.Todos
		return nil
	}
	if e.Seq != s.Seq()+1 {
		return illegal(e, fmt.Sprintf("log is at %d", s.Seq()))
	}
	turn, from := s.Open, SlotOf(s.Open)
	behind := e.Kind == event.TurnPhase && e.Turn != s.OpenID()
	if behind {
		from = Over
	} else if e.Turn != "" && e.Turn != s.OpenID() && e.Kind != event.TurnStarted {
		return illegal(e, fmt.Sprintf("turn %s is not open", e.Turn))
	}
	if err := s.foldKind(e, c); err != nil {
		return err
	}
	to := from
	if !behind {
		to = SlotOf(s.Open)
		if turn != nil && s.Open == nil {
			to = Over
		}
	}
	if !Legal(e.Kind, from, to) {
		return illegal(e, fmt.Sprintf("%s → %s", from, to))
	}
	s.Row.Thread.Seq = e.Seq
	if e.Data.Pinned == nil && e.Data.Git == nil { // they are about lists: the conversation is as old as it was
		s.Row.Thread.Updated = e.Time
	}
	return nil
}

func illegal(e event.Event, why string) error {
	return thole.Errorf(thole.CodeInternal, "fold %s at %d: %s", e.Kind, e.Seq, why)
}

func (s *State) foldKind(e event.Event, c *Changes) error {
	switch e.Kind {
	case event.ThreadUpdated:
		s.update(e)
	case event.ThreadReverted:
		s.revert(e, c)
	case event.GoalUpdated:
		s.Row.Thread.Goal = e.Data.Goal
	case event.ThreadDeleted, event.NoteReported, event.LimitsUpdated, event.NetworkUpdated, event.StepEnded:
	case event.TurnStarted, event.TurnPhase, event.TurnSteered, event.SteerRefused, event.TurnInterrupt, event.TurnEnded, event.UsageUpdated, event.ErrorReported:
		return s.foldTurn(e, c)
	case event.StepStarted:
		s.Row.Step = e.Seq
	case event.StepReset, event.ItemStarted, event.ItemUpdated, event.ItemCompleted:
		return s.foldItem(e, c)
	case event.TodoSnapshot, event.TodoUpdate:
		s.foldTodos(e, c)
	case event.AskRequested, event.AskResolved:
		return s.foldAsk(e, c)
	case event.QueueAdded, event.QueueEdited, event.QueueRemoved, event.QueueReordered:
		return s.foldQueue(e, c)
	default:
		return illegal(e, "not a durable kind")
	}
	return nil
}

func (s *State) create(e event.Event) {
	b, t := e.Data.Created, &s.Row.Thread
	*t = Thread{
		ID: e.Thread, Owner: b.Owner, Source: b.Source, Client: b.Client, Ephemeral: b.Ephemeral,
		ForkedFrom: b.ForkedFrom, Parent: b.Parent, Origin: b.Origin, Retell: b.Retell, Preview: b.Preview, Turns: b.Turns, Tools: b.Tools,
		Created: e.Time, Updated: e.Time, Seq: e.Seq, Floor: e.Seq - 1,
	}
	if b.Files != nil {
		t.Files = *b.Files
	}
	s.update(e)
}

func (s *State) update(e event.Event) {
	t, d := &s.Row.Thread, e.Data
	if d.Name != nil {
		t.Name = *d.Name
	}
	if d.Archived != nil {
		t.Archived = *d.Archived
	}
	if d.Pinned != nil {
		t.Pinned = *d.Pinned
	}
	if d.Git != nil {
		t.Git = *d.Git
	}
	if d.Settings != nil {
		t.Settings = *d.Settings
	}
	if d.NativeID != "" {
		t.NativeID, t.Origin = d.NativeID, ""
	}
}

// touchTurn changes a copy of the open turn and notes it.
func (s *State) touchTurn(c *Changes, change func(*Turn)) error {
	if s.Open == nil {
		return thole.Errorf(thole.CodeInternal, "fold: no open turn")
	}
	t := *s.Open
	change(&t)
	s.Open = &t
	c.putTurn(t)
	return nil
}

func (s *State) foldTodos(e event.Event, c *Changes) {
	if e.Kind == event.TodoSnapshot {
		s.Todos = slices.Clone(e.Data.Todos)
		c.Retodo, c.Todos = true, s.Todos
		return
	}
	s.Todos = event.MergeTodos(s.Todos, e.Data.Todos)
	slices.SortStableFunc(s.Todos, func(a, b event.Todo) int { return a.Order - b.Order })
	if c.Retodo {
		c.Todos = s.Todos
		return
	}
	c.Todos = append(c.Todos, e.Data.Todos...)
}

func (s *State) foldQueue(e event.Event, c *Changes) error {
	switch e.Kind {
	case event.QueueAdded:
		m := *e.Data.Message
		if e.Data.Front {
			s.Queue = append([]event.Message{m}, s.Queue...)
			c.Order = s.Order()
		} else {
			s.Queue = append(slices.Clone(s.Queue), m)
		}
		c.Queued = append(c.Queued, m)
	case event.QueueEdited:
		i := s.QueuedAt(e.Data.Message.ID)
		if i < 0 {
			return illegal(e, "no such message")
		}
		s.Queue = slices.Clone(s.Queue)
		s.Queue[i] = *e.Data.Message
		c.Queued = append(c.Queued, s.Queue[i])
	case event.QueueRemoved:
		i := s.QueuedAt(e.Data.MessageID)
		if i < 0 {
			return illegal(e, "no such message")
		}
		s.Queue = slices.Delete(slices.Clone(s.Queue), i, i+1)
		c.Queued = slices.DeleteFunc(c.Queued, func(m event.Message) bool { return m.ID == e.Data.MessageID })
		c.Unqueued = append(c.Unqueued, e.Data.MessageID)
	case event.QueueReordered:
		queue := make([]event.Message, 0, len(s.Queue))
		for _, id := range e.Data.Order {
			i := s.QueuedAt(id)
			if i < 0 {
				return illegal(e, "no such message")
			}
			queue = append(queue, s.Queue[i])
		}
		if len(queue) != len(s.Queue) {
			return illegal(e, "order is not a permutation")
		}
		s.Queue = queue
		c.Order = s.Order()
	}
	return nil
}

// Order is the ids of the queued messages, first to last.
func (s *State) Order() []thole.MessageID {
	ids := make([]thole.MessageID, len(s.Queue))
	for i, m := range s.Queue {
		ids[i] = m.ID
	}
	return ids
}
