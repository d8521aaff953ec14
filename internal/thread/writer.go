package thread

import (
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// writer makes one commit: decisions add events to it, each folded at once so
// that the next decision sees its effect. It has no clock and no randomness of
// its own.
type writer struct {
	s      *fold.State
	c      *Commit
	now    time.Time
	newID  func(time.Time) string
	loaded bool // of the thread, for its derived status
	policy Policies
	admit  func() error // refuses a new turn; nil: nothing does

	actor    thole.Actor
	executor thole.ExecutorID
	trace    string
	endID    thole.EventID // of the provider's last word, for the turn's end

	// outs is what subscribers will hear, durable and ephemeral, in order.
	outs []event.Event
	// flights holds the text of items in flight, this commit's deltas included.
	flights *flightPlan
	// calls are for the runner, after commit.
	calls []func(Runner)
	// usurpedAsks are the asks that the agent answered itself, for the log.
	usurpedAsks []thole.AskID
	err         error
}

// add appends an event. A change of the derived status is sent before the event
// that causes it, so that "idle" comes before the end of a turn.
func (w *writer) add(k event.Kind, turn thole.TurnID, d event.Data) {
	w.append(event.Event{Kind: k, Turn: turn, Actor: w.actor, Data: d})
}

func (w *writer) append(e event.Event) {
	if w.err != nil {
		return
	}
	if e.ID == "" {
		e.ID = thole.EventID(w.newID(w.now))
	}
	if e.Thread == "" {
		e.Thread = w.s.Row.Thread.ID
	}
	e.Seq, e.Time = w.s.Seq()+1, w.now
	e.Executor = w.executor
	if e.Trace = w.trace; e.Trace == "" && w.s.Open != nil {
		e.Trace = w.s.Open.Trace
	}
	before := w.s.Row.Status(w.loaded)
	if w.err = w.s.Apply(e, &w.c.Changes); w.err != nil {
		return
	}
	w.c.Events = append(w.c.Events, e)
	if after := w.s.Row.Status(w.loaded); after != before {
		w.outs = append(w.outs, statusEvent(e, after))
	}
	w.outs = append(w.outs, e)
}

func statusEvent(e event.Event, st event.Status) event.Event {
	return event.Event{Thread: e.Thread, Time: e.Time, Kind: event.ThreadStatus, Actor: e.Actor, Data: event.Data{Status: &st}}
}

// call leaves a message for the runner.
func (w *writer) call(f func(Runner)) { w.calls = append(w.calls, f) }

func (w *writer) ref() TurnRef {
	r := TurnRef{Thread: w.s.Row.Thread.ID, Turn: w.s.OpenID()}
	if w.s.Open != nil {
		r.Executor = w.s.Open.Executor
	}
	return r
}
