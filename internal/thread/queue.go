package thread

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Enqueue implements Service.
func (m *Machine) Enqueue(ctx context.Context, actor thole.Actor, p Enqueue) (event.Message, error) {
	valid := checkSome
	if p.Command {
		valid = checkTurnCommand
	}
	if err := valid(p.Input, p.ClientID); err != nil {
		return event.Message{}, err
	}
	var msg event.Message
	err := m.change(ctx, actor, p.Thread, "thread.enqueue", func(_ *live, w *writer) (err error) {
		if done, err := m.named(ctx, p.Thread, p.ID); done || err != nil {
			msg = w.message(p.ID, p.Thread, p.Input, p.ClientID)
			return err
		}
		msg, err = w.enqueue(p)
		return err
	})
	return msg, err
}

// named reports whether the log has a message with a name that its sender chose.
func (m *Machine) named(ctx context.Context, id thole.ThreadID, msg thole.MessageID) (bool, error) {
	if msg == "" {
		return false, nil
	}
	if err := checkID("message id", string(msg)); err != nil {
		return false, err
	}
	known, err := m.store.Known(ctx, id, []thole.EventID{thole.EventID(msg)})
	if err != nil {
		return false, failed("find message", err)
	}
	return known[thole.EventID(msg)], nil
}

// steered finds the turn that took a steer of the same name before.
func (m *Machine) steered(ctx context.Context, actor thole.Actor, p Steer) (fold.Turn, bool, error) {
	if _, err := m.visible(ctx, actor, p.Thread); err != nil {
		return fold.Turn{}, false, err
	}
	done, err := m.named(ctx, p.Thread, p.ID)
	if err != nil || !done {
		return fold.Turn{}, false, err
	}
	t, err := m.Turn(ctx, actor, p.Thread, p.Expected)
	return t, true, err
}

// Queue implements Service.
func (m *Machine) Queue(ctx context.Context, actor thole.Actor, id thole.ThreadID) ([]event.Message, error) {
	if _, err := m.visible(ctx, actor, id); err != nil {
		return nil, err
	}
	queue, err := m.store.Queue(ctx, id)
	if err != nil {
		return nil, failed("read queue", err)
	}
	return queue, nil
}

// EditQueued implements Service.
func (m *Machine) EditQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, msg thole.MessageID, input []thole.Input, when ...Precondition[event.Message]) (event.Message, error) {
	if err := checkSome(input, ""); err != nil {
		return event.Message{}, err
	}
	var edited event.Message
	err := m.change(ctx, actor, id, "thread.edit_queued", func(_ *live, w *writer) (err error) {
		edited, err = w.editQueued(msg, input, when)
		return err
	})
	return edited, err
}

// RemoveQueued implements Service.
func (m *Machine) RemoveQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, msg thole.MessageID, when ...Precondition[event.Message]) (bool, error) {
	removed := false
	err := m.change(ctx, actor, id, "thread.remove_queued", func(_ *live, w *writer) (err error) {
		removed, err = w.unqueue(msg, when)
		return err
	})
	return removed && err == nil, err
}

// ReorderQueued implements Service. order names every queued message once.
func (m *Machine) ReorderQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, order []thole.MessageID, when ...Precondition[[]event.Message]) error {
	return m.change(ctx, actor, id, "thread.reorder_queued", func(_ *live, w *writer) error {
		if err := check(w.s.Queue, when); err != nil {
			return err
		}
		return w.reorderQueued(order)
	})
}

// StartQueued implements Service. It also ends the pause after an interrupt.
func (m *Machine) StartQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, msg thole.MessageID) (fold.Turn, error) {
	var turn fold.Turn
	err := m.change(ctx, actor, id, "thread.start_queued", func(l *live, w *writer) error {
		l.attached.Store(true)
		if _, err := w.startQueued(msg); err != nil {
			return err
		}
		turn = *w.s.Open
		return nil
	})
	return turn, err
}

// PromoteQueued implements Service. A message the agent cannot take returns to
// the head of the queue and the call fails.
func (m *Machine) PromoteQueued(ctx context.Context, actor thole.Actor, id thole.ThreadID, msg thole.MessageID) (fold.Turn, error) {
	return m.steerWith(ctx, actor, id, true, "thread.promote_queued", func(w *writer) error {
		_, err := w.promote(msg)
		return err
	})
}
