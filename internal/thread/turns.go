package thread

import (
	"bytes"
	"context"
	"errors"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// StartTurn implements Service.
func (m *Machine) StartTurn(ctx context.Context, actor thole.Actor, p StartTurn) (fold.Turn, error) {
	valid := checkMessage
	if p.Command {
		valid = checkTurnCommand
	}
	if err := valid(p.Input, p.ClientID); err != nil {
		return fold.Turn{}, err
	}
	if err := checkOutputSchema(p.Schema); err != nil {
		return fold.Turn{}, err
	}
	if err := checkText("trace", p.Trace, maxKey); err != nil {
		return fold.Turn{}, err
	}
	if err := checkText("idempotency key", p.Idempotency, maxKey); err != nil {
		return fold.Turn{}, err
	}
	if p.ID != "" {
		if err := checkID("turn id", string(p.ID)); err != nil {
			return fold.Turn{}, err
		}
	}
	var turn fold.Turn
	err := m.change(ctx, actor, p.Thread, "thread.start_turn", func(l *live, w *writer) error {
		if done, found, err := m.repeated(ctx, p); err != nil || found {
			turn = done
			return err
		}
		l.attached.Store(true)
		if _, err := w.startTurn(p); err != nil {
			return err
		}
		turn = *w.s.Open
		return nil
	})
	return turn, err
}

// repeated finds the turn that an earlier call with the same key started, and
// refuses an id that another turn has.
func (m *Machine) repeated(ctx context.Context, p StartTurn) (fold.Turn, bool, error) {
	if p.Idempotency != "" {
		t, err := m.store.TurnByKey(ctx, p.Thread, p.Idempotency)
		if err == nil {
			if !slices.Equal(t.Input, p.Input) || !bytes.Equal(t.Schema, p.Schema) {
				return fold.Turn{}, false, thole.Errorf(thole.CodeConflict, "%w", ErrKeyReused).WithHint("take a new key for each message")
			}
			return t, true, nil
		}
		if !errors.Is(err, ErrNone) {
			return fold.Turn{}, false, failed("find turn", err)
		}
	}
	if p.ID != "" {
		_, err := m.store.Turn(ctx, p.Thread, p.ID)
		if err == nil {
			return fold.Turn{}, false, thole.Errorf(thole.CodeConflict, "turn id is in use: %s", p.ID)
		}
		if !errors.Is(err, ErrNone) {
			return fold.Turn{}, false, failed("find turn", err)
		}
	}
	return fold.Turn{}, false, nil
}

// Steer implements Service. The message is durable before the agent hears of
// it; if the agent cannot take it, it is taken back and the call fails.
func (m *Machine) Steer(ctx context.Context, actor thole.Actor, p Steer) (fold.Turn, error) {
	if err := checkSome(p.Input, p.ClientID); err != nil {
		return fold.Turn{}, err
	}
	if t, done, err := m.steered(ctx, actor, p); done || err != nil {
		return t, err
	}
	return m.steerWith(ctx, actor, p.Thread, false, "thread.steer", func(w *writer) error { return w.steer(p) })
}

func (m *Machine) steerWith(ctx context.Context, actor thole.Actor, id thole.ThreadID, requeue bool, step string, decide func(*writer) error) (fold.Turn, error) {
	var turn fold.Turn
	var ref TurnRef
	var msg event.Message
	err := m.change(ctx, actor, id, step, func(_ *live, w *writer) error {
		if err := decide(w); err != nil {
			return err
		}
		turn, ref = *w.s.Open, w.ref()
		msg = turn.Steers[len(turn.Steers)-1]
		return nil
	})
	if err != nil {
		return fold.Turn{}, err
	}
	// A turn that no process holds keeps the message for the process that takes it.
	if msg.Waits || fold.SlotOf(&turn) == fold.Queued || fold.SlotOf(&turn) == fold.Parked {
		return turn, nil
	}
	refused := steerNow(ctx, m.runs(), ref, msg)
	if refused == nil || errors.Is(refused, ErrNoTurn) || errors.Is(refused, context.Canceled) {
		return turn, nil // ErrNoTurn: it ends just now, and the queue gets the message
	}
	back := false
	err = m.change(context.WithoutCancel(ctx), thole.SystemActor, id, "thread.refuse_steer", func(_ *live, w *writer) error {
		back = w.refuseSteer(turn.ID, msg, requeue)
		return nil
	})
	if err != nil {
		return fold.Turn{}, err
	}
	if !back {
		return turn, nil // a failure would make the caller send it twice
	}
	if errors.Is(refused, ErrNotSteerable) {
		return fold.Turn{}, thole.Errorf(thole.CodeUnsupported, "this agent cannot be steered: %w", refused).WithHint("queue the message instead")
	}
	return fold.Turn{}, failed("steer", refused)
}

// Interrupt implements Service. Repeats change nothing.
func (m *Machine) Interrupt(ctx context.Context, actor thole.Actor, id thole.ThreadID, expected thole.TurnID) error {
	return m.change(ctx, actor, id, "thread.interrupt", func(_ *live, w *writer) error {
		if err := w.expect(expected, "interrupt"); err != nil {
			return err
		}
		w.interrupt(nil)
		return nil
	})
}

// Answer implements Service.
func (m *Machine) Answer(ctx context.Context, actor thole.Actor, id thole.ThreadID, ask thole.AskID, a event.Answer) (fold.AskRecord, error) {
	var done fold.AskRecord
	err := m.change(ctx, actor, id, "thread.answer", func(_ *live, w *writer) error {
		r, pending := w.s.Ask(ask)
		if !pending {
			var err error
			done, err = m.settled(ctx, id, ask, a)
			return err
		}
		if err := w.answer(r, a); err != nil {
			return err
		}
		r.State, r.Answer, r.Actor, r.Resolved = event.AskAnswered, &a, w.actor, w.now
		done = r
		return nil
	})
	return done, err
}

// settled judges an answer to an ask that is not pending any more.
func (m *Machine) settled(ctx context.Context, id thole.ThreadID, ask thole.AskID, a event.Answer) (fold.AskRecord, error) {
	r, err := m.store.Ask(ctx, id, ask)
	switch {
	case errors.Is(err, ErrNone):
		return fold.AskRecord{}, thole.Errorf(thole.CodeNotFound, "ask not found: %s", ask)
	case err != nil:
		return fold.AskRecord{}, failed("read ask", err)
	case r.State == event.AskAnswered && sameAnswer(r.Answer, &a):
		return r, nil
	}
	return r, thole.Errorf(thole.CodeConflict, "ask %s is already %s", ask, r.State)
}

// Apply implements Service.
func (m *Machine) Apply(ctx context.Context, ref TurnRef, events []event.Event) error {
	var skip map[thole.EventID]bool
	for range 2 {
		err := m.change(ctx, thole.SystemActor, ref.Thread, "thread.apply", func(_ *live, w *writer) error {
			if w.s.OpenID() != ref.Turn {
				return m.late(ctx, ref, events)
			}
			if fold.SlotOf(w.s.Open) == fold.Queued && skip == nil {
				// The first report moves the turn to running; an old one must not.
				var err error
				if skip, err = m.known(ctx, ref.Thread, events); err != nil {
					return err
				}
			}
			w.executor = ref.Executor
			w.c.Fence = ref
			return w.report(events, skip)
		})
		switch {
		case errors.Is(err, ErrRepeat):
			if skip, err = m.known(ctx, ref.Thread, events); err != nil {
				return err
			}
			continue
		case errors.Is(err, ErrFenced):
			return errFenced(ref.Turn)
		}
		return err
	}
	return failed("apply", ErrRepeat)
}

func errFenced(turn thole.TurnID) error {
	return thole.Errorf(thole.CodeConflict, "turn %s has another driver: %w", turn, ErrFenced)
}

func (m *Machine) known(ctx context.Context, id thole.ThreadID, events []event.Event) (map[thole.EventID]bool, error) {
	var ids []thole.EventID
	for _, e := range events {
		if e.ID != "" && e.Kind != event.ItemDelta {
			ids = append(ids, e.ID)
		}
	}
	known, err := m.store.Known(ctx, id, ids)
	if err != nil {
		return nil, failed("read log", err)
	}
	return known, nil
}

// late judges a report about a turn that is not open: a repeat of what the log
// has is fine, anything new comes from a driver that lost its turn.
func (m *Machine) late(ctx context.Context, ref TurnRef, events []event.Event) error {
	known, err := m.known(ctx, ref.Thread, events)
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Kind != event.ItemDelta && !known[e.ID] {
			return thole.Errorf(thole.CodeConflict, "report on turn %s: %w", ref.Turn, ErrOver)
		}
	}
	return nil
}

// SetPhase implements Service.
func (m *Machine) SetPhase(ctx context.Context, ref TurnRef, phase thole.Phase, lastError string) error {
	err := m.change(ctx, thole.SystemActor, ref.Thread, "thread.set_phase", func(_ *live, w *writer) error {
		w.executor = ref.Executor
		w.c.Fence = ref
		if w.s.OpenID() == ref.Turn {
			return w.phase(w.s.Open, phase, lastError)
		}
		t, err := m.store.Turn(ctx, ref.Thread, ref.Turn)
		if errors.Is(err, ErrNone) {
			return errNoTurn(ref.Turn)
		}
		if err != nil {
			return failed("read turn", err)
		}
		return w.phase(&t, phase, lastError)
	})
	if errors.Is(err, ErrFenced) {
		return errFenced(ref.Turn)
	}
	return err
}
