package thread

import (
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
)

// apply folds one event into the state and notes in c which rows it changed. It
// refuses an event that the transition table does not allow; decisions are made
// so that this never happens, and a log that holds one is damaged.
func (s *state) apply(e Event, c *Commit) error {
	if e.Kind == ThreadCreated {
		if s.seq() != 0 && e.Data.Created.ForkedFrom == "" {
			return illegal(e, "thread exists")
		}
		s.create(e)
		s.todos, c.Todos = e.Data.Created.Todos, e.Data.Created.Todos
		return nil
	}
	if e.Seq != s.seq()+1 {
		return illegal(e, fmt.Sprintf("log is at %d", s.seq()))
	}
	turn, from := s.open, slotOf(s.open)
	behind := e.Kind == TurnPhase && e.Turn != s.openID()
	if behind {
		from = slotOver
	} else if e.Turn != "" && e.Turn != s.openID() && e.Kind != TurnStarted {
		return illegal(e, fmt.Sprintf("turn %s is not open", e.Turn))
	}
	if err := s.foldKind(e, c); err != nil {
		return err
	}
	to := from
	if !behind {
		to = slotOf(s.open)
		if turn != nil && s.open == nil {
			to = slotOver
		}
	}
	if !legal(e.Kind, from, to) {
		return illegal(e, fmt.Sprintf("%s → %s", from, to))
	}
	s.row.Thread.Seq = e.Seq
	s.row.Thread.Updated = e.Time
	return nil
}

func illegal(e Event, why string) error {
	return thole.Errorf(thole.CodeInternal, "fold %s at %d: %s", e.Kind, e.Seq, why)
}

func (s *state) foldKind(e Event, c *Commit) error {
	switch e.Kind {
	case ThreadUpdated:
		s.update(e)
	case ThreadDeleted, NoteReported, StepEnded:
	case TurnStarted, TurnPhase, TurnSteered, SteerRefused, TurnInterrupt, TurnEnded, UsageUpdated, ErrorReported:
		return s.foldTurn(e, c)
	case StepStarted:
		s.row.Step = e.Seq
	case StepReset, ItemStarted, ItemUpdated, ItemCompleted:
		return s.foldItem(e, c)
	case TodoSnapshot, TodoUpdate:
		s.foldTodos(e, c)
	case AskRequested, AskResolved:
		return s.foldAsk(e, c)
	case QueueAdded, QueueEdited, QueueRemoved, QueueReordered:
		return s.foldQueue(e, c)
	default:
		return illegal(e, "not a durable kind")
	}
	return nil
}

func (s *state) create(e Event) {
	b, t := e.Data.Created, &s.row.Thread
	*t = Thread{
		ID: e.Thread, Owner: b.Owner, Source: b.Source, Client: b.Client, Ephemeral: b.Ephemeral,
		ForkedFrom: b.ForkedFrom, Parent: b.Parent, Origin: b.Origin, Preview: b.Preview, Turns: b.Turns,
		Created: e.Time, Updated: e.Time, Seq: e.Seq, Floor: e.Seq - 1,
	}
	s.update(e)
}

func (s *state) update(e Event) {
	t, d := &s.row.Thread, e.Data
	if d.Name != nil {
		t.Name = *d.Name
	}
	if d.Archived != nil {
		t.Archived = *d.Archived
	}
	if d.Settings != nil {
		t.Settings = *d.Settings
	}
	if d.NativeID != "" {
		t.NativeID, t.Origin = d.NativeID, ""
	}
}

// touchTurn changes a copy of the open turn and notes it.
func (s *state) touchTurn(c *Commit, change func(*Turn)) error {
	if s.open == nil {
		return thole.Errorf(thole.CodeInternal, "fold: no open turn")
	}
	t := *s.open
	change(&t)
	s.open = &t
	c.putTurn(t)
	return nil
}

func (c *Commit) putTurn(t Turn) {
	for i := range c.Turns {
		if c.Turns[i].ID == t.ID {
			c.Turns[i] = t
			return
		}
	}
	c.Turns = append(c.Turns, t)
}

func (s *state) foldTodos(e Event, c *Commit) {
	if e.Kind == TodoSnapshot {
		s.todos = slices.Clone(e.Data.Todos)
		c.Retodo, c.Todos = true, s.todos
		return
	}
	s.todos = thole.MergeTodos(s.todos, e.Data.Todos)
	slices.SortStableFunc(s.todos, func(a, b thole.Todo) int { return a.Order - b.Order })
	if c.Retodo {
		c.Todos = s.todos
		return
	}
	c.Todos = append(c.Todos, e.Data.Todos...)
}

func (s *state) foldQueue(e Event, c *Commit) error {
	switch e.Kind {
	case QueueAdded:
		m := *e.Data.Message
		if e.Data.Front {
			s.queue = append([]Message{m}, s.queue...)
			c.Order = order(s.queue)
		} else {
			s.queue = append(slices.Clone(s.queue), m)
		}
		c.Queued = append(c.Queued, m)
	case QueueEdited:
		i := s.queued(e.Data.Message.ID)
		if i < 0 {
			return illegal(e, "no such message")
		}
		s.queue = slices.Clone(s.queue)
		s.queue[i] = *e.Data.Message
		c.Queued = append(c.Queued, s.queue[i])
	case QueueRemoved:
		i := s.queued(e.Data.MessageID)
		if i < 0 {
			return illegal(e, "no such message")
		}
		s.queue = slices.Delete(slices.Clone(s.queue), i, i+1)
		c.Queued = slices.DeleteFunc(c.Queued, func(m Message) bool { return m.ID == e.Data.MessageID })
		c.Unqueued = append(c.Unqueued, e.Data.MessageID)
	case QueueReordered:
		queue := make([]Message, 0, len(s.queue))
		for _, id := range e.Data.Order {
			i := s.queued(id)
			if i < 0 {
				return illegal(e, "no such message")
			}
			queue = append(queue, s.queue[i])
		}
		if len(queue) != len(s.queue) {
			return illegal(e, "order is not a permutation")
		}
		s.queue = queue
		c.Order = order(queue)
	}
	return nil
}

func order(queue []Message) []thole.MessageID {
	ids := make([]thole.MessageID, len(queue))
	for i, m := range queue {
		ids[i] = m.ID
	}
	return ids
}
