package thread

import (
	"context"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// maxQueue bounds the messages that wait in one thread.
const maxQueue = 100

// drain starts the queue's head on an idle thread. A user's interrupt holds the
// queue until a turn completes or fails, or a user starts a message by hand:
// who pressed stop does not want the next thing to begin by itself. A message that
// is not admitted stays where it is.
func (w *writer) drain() {
	th := w.s.Row.Thread
	if w.err == nil && w.s.Open == nil && len(w.s.Queue) > 0 && !w.s.Row.Paused && !th.Archived && w.admitted(w.s.Queue[0].Input) == nil {
		_, _ = w.startQueued(w.s.Queue[0].ID) // keeps its error in w
	}
	w.pursue()
}

func (w *writer) enqueue(p Enqueue) (event.Message, error) {
	if len(w.s.Queue) >= maxQueue {
		return event.Message{}, thole.Errorf(thole.CodeOverloaded, "the queue is full: %d messages wait", maxQueue)
	}
	if p.Start && w.s.Open == nil {
		if err := w.admitted(p.Input); err != nil {
			return event.Message{}, err
		}
	}
	m := w.message(p.ID, p.Thread, p.Input, p.ClientID)
	w.append(event.Event{ID: thole.EventID(p.ID), Kind: event.QueueAdded, Actor: w.actor, Data: event.Data{Message: &m}})
	switch {
	case !p.Start:
	case p.Command && w.s.Open == nil:
		if _, err := w.startQueued(m.ID); err != nil {
			return m, err
		}
	default:
		w.drain()
	}
	return m, w.err
}

// startQueued takes a message out of the queue and begins a turn with it, in
// the name of its author. The turn has the message's id: who asks again to start it
// finds it.
func (w *writer) startQueued(id thole.MessageID) (thole.TurnID, error) {
	if w.s.Open != nil {
		return "", errBusy(w.s)
	}
	m, err := w.queuedMessage(id)
	if err != nil {
		return "", err
	}
	if w.s.Row.Thread.Archived {
		return "", thole.Errorf(thole.CodeConflict, "thread %s is archived", w.s.Row.Thread.ID).WithHint("unarchive the thread first")
	}
	if err := w.admitted(m.Input); err != nil {
		return "", err
	}
	w.add(event.QueueRemoved, "", event.Data{MessageID: m.ID})
	starter := w.actor
	w.actor = m.Actor
	turn, err := w.startTurn(StartTurn{ID: thole.TurnID(m.ID), Thread: m.Thread, Input: m.Input, ClientID: m.ClientID})
	w.actor = starter
	return turn, err
}

func (w *writer) queuedMessage(id thole.MessageID) (event.Message, error) {
	if id == "" {
		if len(w.s.Queue) == 0 {
			return event.Message{}, thole.Errorf(thole.CodeNotFound, "queue is empty")
		}
		return w.s.Queue[0], nil
	}
	if i := w.s.QueuedAt(id); i >= 0 {
		return w.s.Queue[i], nil
	}
	return event.Message{}, errNotQueued(id)
}

func errNotQueued(id thole.MessageID) error {
	return thole.Errorf(thole.CodeNotFound, "queued submission not found: %s", id).WithHint("it may have started to run")
}

func (w *writer) editQueued(id thole.MessageID, input []thole.Input, when []Precondition[event.Message]) (event.Message, error) {
	i := w.s.QueuedAt(id)
	if i < 0 {
		return event.Message{}, errNotQueued(id)
	}
	m := w.s.Queue[i]
	if err := check(m, when); err != nil {
		return event.Message{}, err
	}
	if command, _ := thole.TurnCommandOf(m.Input); command != "" {
		return event.Message{}, thole.Errorf(thole.CodeConflict, "%s cannot be edited", m.Input[0].Text).WithHint("remove it and ask for another")
	}
	m.Input = input
	w.add(event.QueueEdited, "", event.Data{Message: &m})
	return m, w.err
}

func (w *writer) reorderQueued(ids []thole.MessageID) error {
	seen := map[thole.MessageID]bool{}
	for _, id := range ids {
		if w.s.QueuedAt(id) < 0 || seen[id] {
			return thole.Errorf(thole.CodeConflict, "the queue has changed: %s is not in it once", id).WithHint("list the queue and order it again")
		}
		seen[id] = true
	}
	if len(ids) != len(w.s.Queue) {
		return thole.Errorf(thole.CodeConflict, "the queue has changed: %d messages, not %d", len(w.s.Queue), len(ids)).
			WithHint("list the queue and order it again")
	}
	if !slices.Equal(ids, w.s.Order()) {
		w.add(event.QueueReordered, "", event.Data{Order: ids})
	}
	return w.err
}

// promote turns a queued message into a steer of the running turn.
func (w *writer) promote(id thole.MessageID) (event.Message, error) {
	if w.s.Open == nil {
		return event.Message{}, thole.Errorf(thole.CodeConflict, "no active turn to steer").WithHint("start the queued message instead")
	}
	m, err := w.queuedMessage(id)
	if err == nil {
		err = steerable(w.s.Open.Input, m.Input)
	}
	if err != nil {
		return event.Message{}, err
	}
	w.add(event.QueueRemoved, "", event.Data{MessageID: m.ID})
	w.steerMessage(m)
	return m, w.err
}

// refuseSteer takes back a steer that the agent cannot take; a promoted message
// returns to the head of the queue. False: there is nothing to take back, because
// the agent has it after all or the turn ended and the queue has it.
func (w *writer) refuseSteer(turn thole.TurnID, m event.Message, requeue bool) bool {
	if w.s.OpenID() != turn || !slices.ContainsFunc(w.s.Open.Steers, func(s event.Message) bool { return s.ID == m.ID }) {
		return false
	}
	w.add(event.SteerRefused, turn, event.Data{MessageID: m.ID})
	if requeue {
		w.add(event.QueueAdded, "", event.Data{Message: &m, Front: true})
	}
	return true
}

// unqueue removes a message and reports whether it was there.
func (w *writer) unqueue(id thole.MessageID, when []Precondition[event.Message]) (bool, error) {
	i := w.s.QueuedAt(id)
	if i < 0 {
		return false, nil
	}
	if err := check(w.s.Queue[i], when); err != nil {
		return false, err
	}
	w.add(event.QueueRemoved, "", event.Data{MessageID: id})
	return w.err == nil, w.err
}

// steerNow hands a recorded steer to the runner; its error says that the agent
// cannot take it.
func steerNow(ctx context.Context, r Runner, ref TurnRef, m event.Message) error {
	if r == nil {
		return nil // the process that takes the turn finds it in Turn.Steers
	}
	return r.Steer(ctx, ref, m.Input, m.ClientID)
}
