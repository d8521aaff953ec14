package thread

import (
	"context"
	"maps"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// startTurn begins a turn with the user's message, if it has one, as its first
// item.
func (w *writer) startTurn(p StartTurn) (thole.TurnID, error) {
	if w.s.Open != nil {
		return "", errBusy(w.s)
	}
	if w.s.Row.Thread.Archived {
		return "", thole.Errorf(thole.CodeConflict, "thread %s is archived", w.s.Row.Thread.ID).WithHint("unarchive the thread first")
	}
	if err := w.admitted(p.Input); err != nil {
		return "", err
	}
	sticky, err := Settled(w.s.Row.Thread, p.Settings)
	if err != nil {
		return "", err
	}
	effective, err := settle(w.s.Row.Thread, merge(sticky, p.Once))
	if err != nil {
		return "", err
	}
	w.settings(sticky)
	id := p.ID
	if id == "" {
		id = thole.TurnID(w.newID(w.now))
	}
	w.trace = p.Trace
	w.add(event.TurnStarted, id, event.Data{Input: p.Input, ClientID: p.ClientID, Settings: &effective, Idempotency: p.Idempotency, Schema: p.Schema})
	switch command, what := thole.TurnCommandOf(p.Input); command {
	case "":
		w.userMessage(id, p.Input, p.ClientID, "")
	case thole.TurnCommandReview:
		w.review(event.ReviewEntered, what)
	}
	w.call(func(r Runner) { r.Wake(w.s.Row.Thread.ID, id) })
	return id, w.err
}

// admitted is why a turn with this input may not start. What runs no agent calls no model.
func (w *writer) admitted(input []thole.Input) error {
	if command, _ := thole.TurnCommandOf(input); w.admit == nil || !command.AgentRuns() {
		return nil
	}
	return w.admit()
}

// userMessage adds what the user said as an item. Only the machine makes these.
func (w *writer) userMessage(turn thole.TurnID, input []thole.Input, clientID string, steer thole.MessageID) {
	item := event.Item{
		ID: thole.ItemID(w.newID(w.now)), Kind: event.ItemUserMessage, State: event.StateCompleted,
		Content: input, ClientID: clientID, Stamp: thole.Stamp{Started: w.now, Ended: w.now},
	}
	w.add(event.ItemCompleted, turn, event.Data{Item: &item, MessageID: steer})
}

// review adds the beginning or the end of a review.
func (w *writer) review(mark, text string) {
	item := event.Item{
		ID: thole.ItemID(w.newID(w.now)), Kind: event.ItemSystem, State: event.StateCompleted, Review: mark, Text: text,
		Stamp: thole.Stamp{Started: w.now, Ended: w.now},
	}
	w.add(event.ItemCompleted, w.s.OpenID(), event.Data{Item: &item})
}

// found is what the open turn's agent said last.
func (w *writer) found() string {
	for i := len(w.s.Items) - 1; i >= 0; i-- {
		if it := w.s.Items[i].Item; it.Kind == event.ItemMessage && it.Parent == "" {
			return it.Text
		}
	}
	return ""
}

func (w *writer) settings(s event.Settings) {
	if !equal(s, w.s.Row.Thread.Settings) {
		w.add(event.ThreadUpdated, "", event.Data{Settings: &s})
	}
}

// steer gives input to the running turn. The agent takes it in later
// (userMessage) or cannot (refuseSteer); what is left at the end of the turn
// goes back to the queue.
func (w *writer) steer(p Steer) error {
	if err := w.expect(p.Expected, "steer"); err != nil {
		return err
	}
	if !p.Waits {
		if err := steerable(w.s.Open.Input, p.Input); err != nil {
			return err
		}
	}
	if len(w.s.Open.Steers) >= maxQueue {
		return thole.Errorf(thole.CodeOverloaded, "%d messages wait for the running turn already", maxQueue)
	}
	m := w.message(p.ID, p.Thread, p.Input, p.ClientID)
	m.Waits, m.Back = p.Waits, p.Back
	w.append(event.Event{ID: thole.EventID(p.ID), Kind: event.TurnSteered, Turn: w.s.OpenID(), Actor: w.actor, Data: event.Data{Message: &m}})
	return w.err
}

// message makes a message of this writer's actor; one that a caller named keeps the name,
// which is also its event's.
func (w *writer) message(id thole.MessageID, thread thole.ThreadID, input []thole.Input, client string) event.Message {
	if id == "" {
		id = thole.MessageID(w.newID(w.now))
	}
	return event.Message{ID: id, Thread: thread, Input: input, ClientID: client, Actor: w.actor, Created: w.now}
}

// steerable refuses to mix command turns with messages.
func steerable(inputs ...[]thole.Input) error {
	for _, in := range inputs {
		if command, _ := thole.TurnCommandOf(in); command != "" && command != thole.TurnCommandGoal {
			return thole.Errorf(thole.CodeUnsupported, "cannot steer a %s turn", command).WithHint("queue the message instead")
		}
	}
	return nil
}

func (w *writer) steerMessage(m event.Message) {
	w.add(event.TurnSteered, w.s.OpenID(), event.Data{Message: &m})
}

// expect checks that the open turn is the one the caller means.
func (w *writer) expect(turn thole.TurnID, verb string) error {
	switch {
	case w.s.Open == nil:
		return thole.Errorf(thole.CodeConflict, "no active turn to %s", verb)
	case turn == "":
		return thole.Errorf(thole.CodeInvalid, "%s: the expected turn id must not be empty", verb)
	case turn != w.s.Open.ID:
		return thole.Errorf(thole.CodeConflict, "expected active turn id `%s` but found `%s`", turn, w.s.Open.ID)
	}
	return nil
}

// interrupt asks for the end of the open turn. Asks are canceled at once: nobody
// needs to decide any more. A turn that no process holds ends right here.
func (w *writer) interrupt(why *thole.TurnError) {
	t := w.s.Open
	if !t.Interrupted {
		w.add(event.TurnInterrupt, t.ID, event.Data{Error: why})
	}
	held := fold.SlotOf(t) != fold.Parked && t.Phase != thole.PhaseQueued
	w.cancelAsks()
	if !held {
		w.endTurn(thole.OutcomeInterrupted, nil)
		return
	}
	ref := w.ref()
	w.call(func(r Runner) { _ = r.Interrupt(context.Background(), ref) })
}

// endTurn gives the open turn its outcome, closing first what is still open in
// it: partial text is kept, pending asks are canceled, messages that the agent
// did not take in return to the queue or to who sent them. Then the queue's head starts, or
// the next turn for the thread's goal. A message that was sent to a command starts also when
// the command was stopped: no agent has been.
func (w *writer) endTurn(o thole.Outcome, why *thole.TurnError) {
	t := w.s.Open
	w.cancelAsks()
	w.closeItems()
	command, _ := thole.TurnCommandOf(t.Input)
	if command == thole.TurnCommandReview {
		w.review(event.ReviewExited, w.found())
	}
	left := slices.Clone(w.s.Open.Steers)
	if o == thole.OutcomeInterrupted && t.Interrupted {
		left = slices.DeleteFunc(left, func(m event.Message) bool { return m.Back })
	}
	if t.Stop != nil && o != thole.OutcomeCompleted {
		o, why = thole.OutcomeFailed, t.Stop
	}
	if o == thole.OutcomeFailed && why == nil {
		why = w.s.Open.Error
	}
	usage := w.s.Open.Usage
	w.settleGoal(o, why)
	w.append(event.Event{ID: w.endID, Kind: event.TurnEnded, Turn: t.ID, Actor: w.actor, Data: event.Data{Outcome: o, Error: why, Usage: &usage}})
	w.endID = ""
	for i := len(left) - 1; i >= 0; i-- {
		left[i].Waits, left[i].Back = false, false
		w.add(event.QueueAdded, "", event.Data{Message: &left[i], Front: true})
	}
	if len(left) > 0 && !command.AgentRuns() && w.err == nil {
		_, _ = w.startQueued(left[0].ID) // one that may not start stays in the queue
	}
	w.drain()
}

// closeItems completes every item in flight with the text it has.
func (w *writer) closeItems() {
	for _, r := range w.s.Items {
		if !r.Open {
			continue
		}
		item := w.flights.fill(r.Item)
		if item.State == event.StateRunning || item.State == "" && item.Kind != event.ItemMessage && item.Kind != event.ItemReasoning {
			item.State = event.StateFailed
		}
		if item.Stamp.Ended.IsZero() {
			item.Stamp.Ended = w.now
		}
		w.flights.gone = append(w.flights.gone, item.ID)
		w.add(event.ItemCompleted, w.s.OpenID(), event.Data{Item: &item})
	}
}

// phase moves a turn along the pipeline on behalf of its driver.
func (w *writer) phase(turn *fold.Turn, p thole.Phase, note string) error {
	if turn.Phase == p {
		return nil
	}
	open := w.s.OpenID() == turn.ID
	if !mayEnter(turn, p) {
		// A driver that reports the phase our own fold has already left behind
		// (running while an ask is pending) is not wrong, only late.
		if open && p == thole.PhaseRunning && turn.Phase == thole.PhaseWaitingHuman && turn.Deferred == "" ||
			open && p == thole.PhaseWaitingHuman && turn.Phase == thole.PhaseRunning {
			return nil
		}
		return thole.Errorf(thole.CodeConflict, "turn %s cannot go from %s to %s", turn.ID, turn.Phase, p)
	}
	if open && p == thole.PhaseQueued {
		w.cancelAsks()
		w.closeItems()
	}
	w.add(event.TurnPhase, turn.ID, event.Data{Phase: p, Text: note})
	return w.err
}

func errBusy(s *fold.State) error {
	return thole.Errorf(thole.CodeBusy, "thread already has an active turn: %s", s.Open.ID).
		WithHint("steer the turn, queue the message, or wait until it ends")
}

// merge lays over settings what is not zero. Model and effort go back to the provider's own
// with event.OwnChoice.
func merge(base event.Settings, over *event.Settings) event.Settings {
	if over == nil {
		return base
	}
	set := func(dst *string, v string) {
		if v != "" {
			*dst = v
		}
	}
	set(&base.Provider, over.Provider)
	set(&base.Model, over.Model)
	set(&base.Effort, over.Effort)
	for _, word := range []*string{&base.Model, &base.Effort} {
		if *word == event.OwnChoice {
			*word = ""
		}
	}
	set((*string)(&base.Profile), string(over.Profile))
	set(&base.Dir, over.Dir)
	set(&base.Instructions, over.Instructions)
	if over.Network != nil {
		base.Network = over.Network
	}
	if len(over.Options) > 0 {
		options := maps.Clone(base.Options)
		if options == nil {
			options = map[string]string{}
		}
		maps.Copy(options, over.Options)
		base.Options = options
	}
	return base
}

// Settled are a thread's settings with a change of them, nil for none, or why it cannot
// have them.
func Settled(t fold.Thread, change *event.Settings) (event.Settings, error) {
	return settle(t, merge(t.Settings, change))
}

// settle checks new settings of a thread. Its agent's own session holds what was
// said, so a thread that has turns stays with its provider; model and effort are a
// provider's own words and do not go with a thread to another one.
func settle(t fold.Thread, next event.Settings) (event.Settings, error) {
	now := t.Settings
	if now.Provider == "" || next.Provider == now.Provider {
		return next, nil
	}
	if t.Turns > 0 {
		return next, thole.Errorf(thole.CodeConflict, "a thread stays with its provider; %s cannot continue it", next.Provider).
			WithHint("start a new thread with that provider")
	}
	if next.Model == now.Model {
		next.Model = ""
	}
	if next.Effort == now.Effort {
		next.Effort = ""
	}
	return next, nil
}

func equal(a, b event.Settings) bool {
	return maps.Equal(a.Options, b.Options) && a.Provider == b.Provider && a.Model == b.Model && a.Effort == b.Effort &&
		a.Profile == b.Profile && a.Dir == b.Dir && a.Instructions == b.Instructions && a.Network.Equal(b.Network)
}
