package base

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// Running is a CLI's own part of a turn, with Turn embedded. All but Gone, Steer
// and Finish are called by the holder of the turn's lock.
type Running interface {
	Base() *Turn
	// Begin hands the turn to the CLI; with an error it did not begin.
	Begin(ctx context.Context) error
	// Interrupt asks the CLI to stop; what it does not do within grace ends by Kill.
	Interrupt(grace time.Duration)
	Kill()
	// Gone is closed when the CLI says no more.
	Gone() <-chan struct{}
	// Lost says why the CLI is gone, unless it ends the turn in another way.
	Lost() (why string)
	// Steer takes the lock by itself: some CLIs answer only while others act.
	Steer(ctx context.Context, input []thole.Input, clientID string) error
	Answer(ctx context.Context, ask thole.AskID, answer event.Answer) error
	Defer(ctx context.Context, ask thole.AskID) error
	// Finish emits what is left before the end.
	Finish(ended provider.Ended)
}

// Turn is one turn in progress. Everything but Lock belongs to its holder.
type Turn struct {
	provider.Turn // with the session's settings where it says none
	Em            *provider.Emitter
	Lock          *TurnLock

	Stall   *Alarm // a silent model call
	Stalled bool
	// Excused says that it is not the model that is silent; nil: it is.
	Excused func() bool

	opts    *Options
	run     Running
	grace   *Alarm // an interrupt that is not obeyed
	refused error
	replied bool // Settled has given its answer
}

func newTurn(o *Options, turn provider.Turn, emit func(event.Event)) *Turn {
	t := &Turn{Turn: turn, Em: provider.NewEmitter(turn.ID, emit), Lock: NewTurnLock(), opts: o}
	t.grace = t.Lock.NewAlarm(func() { t.run.Kill() })
	t.Stall = t.Lock.NewAlarm(func() {
		if t.Excused == nil || !t.Excused() {
			t.Stalled = true
			t.Abort(o.StopGrace)
		}
	})
	return t
}

// Base is what every driver has of a turn.
func (t *Turn) Base() *Turn { return t }

// Listen makes a silent model call fail the turn, after a wait that is known.
func (t *Turn) Listen(wait time.Duration) { t.Stall.Set(max(wait, 0) + t.opts.Stall) }

// Refuse ends a turn that did not begin.
func (t *Turn) Refuse(err error) {
	t.refused = err
	t.Lock.End(provider.Ended{})
}

// Cancel stops the turn because a caller asked for it.
func (t *Turn) Cancel() { t.halt(t.opts.StopGrace) }

func (t *Turn) halt(grace time.Duration) {
	t.Em.Interrupt()
	t.Abort(grace)
}

// Abort stops the turn: the CLI is asked, and killed when it does not within grace.
func (t *Turn) Abort(grace time.Duration) {
	t.grace.Set(grace)
	t.run.Interrupt(grace)
}

// StallEnd is the end of a turn whose model stayed silent.
func (t *Turn) StallEnd() provider.Ended {
	return provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrNetwork, fmt.Sprintf("the model sent nothing for %v in the middle of an answer", t.opts.Stall), 0)}
}

// Structured ends a turn with the answer that its schema asked for, which a CLI calls
// native and gives apart from what the agent said.
func (t *Turn) Structured(native string, answer json.RawMessage) provider.Ended {
	if len(answer) == 0 || string(answer) == "null" {
		why := provider.Failure(thole.ErrBadRequest, "the agent gave no answer of the form that the turn's output schema asks for", 0)
		why.Hint = "send the message again, or ask for a simpler form"
		return provider.Ended{Outcome: thole.OutcomeFailed, Error: why}
	}
	t.Em.Complete(event.Item{ID: t.Em.ItemID(native + "/structured"), Kind: event.ItemMessage, Text: string(answer)})
	return provider.Ended{Outcome: thole.OutcomeCompleted}
}

func (t *Turn) crashed(why string) {
	ended := provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrProviderCrashed, t.opts.Name+" ended in the middle of the turn: "+why, 0)}
	if t.Stalled {
		ended = t.StallEnd()
	}
	t.Lock.End(ended)
}

// Defer parks an ask of a CLI that forgets it with its process: the turn is stopped
// and ends on the ask. The answer begins another run in words (Words), and what it
// allows is allowed when the CLI asks for it again (Settled).
func (t *Turn) Defer(_ context.Context, ask thole.AskID) error {
	if !t.Em.Park(ask) {
		return provider.ErrSettled
	}
	t.Abort(t.opts.StopGrace)
	return nil
}

// Words are the input of the turn: the answer to a parked ask in prose, if it is one.
func (t *Turn) Words() []thole.Input {
	if t.Reply != nil {
		return thole.Text(t.Reply.Prose())
	}
	return t.Input
}

// Replied reports the answer that Words hold, once the CLI has them.
func (t *Turn) Replied() {
	if t.Reply != nil {
		t.Em.Ask(t.Reply.Ask)
		t.Em.Resolve(t.Reply.Ask.ID, &t.Reply.Answer)
	}
}

// Settled is the answer that a person gave to the same ask before it was forgotten.
// It holds for what was shown then and once.
func (t *Turn) Settled(ask event.Ask) (event.Answer, bool) {
	if t.Reply == nil || t.replied || !t.Reply.Allows(ask) {
		return event.Answer{}, false
	}
	t.replied = true
	return t.Reply.Answer, true
}

// Message is input for the running turn, which the CLI calls native.
func (t *Turn) Message(native string, input []thole.Input, clientID string) *event.Item {
	now := time.Now().UTC()
	return &event.Item{ID: t.Em.ItemID(native), Kind: event.ItemUserMessage, State: event.StateCompleted, Content: input, ClientID: clientID, Stamp: thole.Stamp{Started: now, Ended: now}}
}
