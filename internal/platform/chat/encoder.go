package chat

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Encoder folds the events of one turn into chunks. Give it the turn's events in
// order, from TurnStarted on; it ignores those of other turns. Deltas may repeat
// (a joiner gets the text so far again): what was sent is not sent twice.
//
// It is not safe for concurrent use.
type Encoder struct {
	turn fold.Turn
	out  []Chunk
	// mute: events up to this position are known to the client already.
	mute  uint64
	muted bool
	sent  map[string]int64 // what the client has of texts in flight, by key

	seq     uint64
	started bool
	step    bool
	steps   int // how many were begun
	ended   bool
	parts   map[thole.ItemID]*part
	order   []thole.ItemID // of parts that are not done, oldest first
	asks    map[thole.AskID]*ask
	pending int // approvals that only the client can settle
	posts   bool
	changes int // of the todo list
	state   fold.State
	steered bool // the turn's own input went by
}

// NewEncoder makes an encoder for a turn.
func NewEncoder(t fold.Turn) *Encoder {
	return &Encoder{turn: t, parts: map[thole.ItemID]*part{}, asks: map[thole.AskID]*ask{}}
}

// Continue makes an encoder whose client has the message up to a place that a
// former stream's metadata named.
func Continue(t fold.Turn, at Metadata) *Encoder {
	e := NewEncoder(t)
	e.mute, e.sent = at.Seq, at.Sent
	e.muted = at.Seq > 0
	return e
}

// Posts says that the client answers approvals by posting the message back, as the
// official one does: by itself, once every tool of the message's last step has ended
// or is answered. So an approval must be in that step, and nothing may run there.
func (e *Encoder) Posts() { e.posts = true }

// Ended reports whether the turn is over and its last chunk was made.
func (e *Encoder) Ended() bool { return e.ended }

// Blocked reports whether the turn waits for approvals and the client has
// everything before them.
func (e *Encoder) Blocked() bool { return e.pending > 0 && !e.ended && !e.muted }

// Take returns the chunks made since the last call.
func (e *Encoder) Take() []Chunk {
	if !e.ended {
		e.printed()
	}
	out := e.out
	e.out = nil
	return out
}

// printed shows what running tools printed since the last call.
func (e *Encoder) printed() {
	for _, id := range e.order {
		e.preliminary(e.parts[id])
	}
}

func (e *Encoder) emit(c Chunk) {
	if e.muted {
		return
	}
	if last := len(e.out) - 1; last >= 0 && joins(&e.out[last], &c) {
		e.out[last].Delta += c.Delta
		e.out[last].InputTextDelta += c.InputTextDelta
		return
	}
	e.out = append(e.out, c)
}

// joins reports whether two neighbouring deltas can travel as one.
func joins(a, b *Chunk) bool {
	switch b.Type {
	case "text-delta", "reasoning-delta":
		return a.Type == b.Type && a.ID == b.ID
	case "tool-input-delta":
		return a.Type == b.Type && a.ToolCallID == b.ToolCallID
	}
	return false
}

// Event takes one event.
func (e *Encoder) Event(ev event.Event) {
	if e.ended || ev.Turn != e.turn.ID {
		return
	}
	if e.muted && (ev.Seq == 0 || ev.Seq > e.mute) {
		e.unmute()
	}
	if ev.Seq > 0 {
		e.seq = ev.Seq
	}
	if ev.Executor != "" {
		e.turn.Executor = ev.Executor
	}
	d, changed := ev.Data, e.state.Follow(ev)
	switch ev.Kind {
	case event.TurnStarted:
		e.start()
	case event.TurnPhase:
		e.phase(ev)
	case event.StepStarted:
		e.closeStep()
		e.openStep()
	case event.StepEnded:
		e.closeStep()
	case event.StepReset:
		e.reset()
	case event.ItemStarted, event.ItemUpdated:
		e.item(*d.Item, false)
	case event.ItemCompleted:
		e.item(*d.Item, true)
	case event.ItemDelta:
		e.delta(d.ItemID, d.Stream, d.Delta, d.Offset)
	case event.TodoSnapshot, event.TodoUpdate:
		e.changes++
		e.showTodos()
	case event.AskRequested:
		if len(changed.Asks) > 0 {
			e.asked(changed.Asks[0])
		}
	case event.AskResolved:
		if len(changed.Asks) > 0 {
			e.resolved(changed.Asks[0])
		}
	case event.UsageUpdated:
		e.used()
	case event.ErrorReported:
		if d.Error != nil && d.Error.Retrying {
			e.emit(Chunk{Type: "data-retry", ID: "retry", Data: raw(d.Error), Transient: true})
		}
	case event.NoteReported:
		e.note(string(ev.ID), "note", d.Text)
	case event.LimitsUpdated:
		for _, l := range d.Limits {
			if l.Near() {
				e.note("limit-"+l.Name, "note", l.String())
			}
		}
	case event.TurnEnded:
		e.end(ev)
	}
}

func (e *Encoder) start() {
	if e.started {
		return
	}
	e.started = true
	t := e.turn
	e.emit(Chunk{Type: "start", MessageID: string(t.ID), MessageMetadata: &Metadata{
		SessionID: string(t.Thread), RunID: string(t.ID), TraceID: t.Trace, ExecutorID: string(t.Executor), Provider: t.Settings.Provider,
		Model: t.Settings.Model, ExecutionProfile: string(t.Settings.Profile), CreatedAt: t.Created,
	}})
}

// unmute goes on with a message that the client has the beginning of: texts in
// flight are opened again and continue where the former stream ended.
func (e *Encoder) unmute() {
	e.muted, e.started = false, false
	e.start()
	for _, id := range e.order {
		p := e.parts[id]
		for _, s := range []event.Stream{event.StreamText, event.StreamSummary, event.StreamInput} {
			if n := e.sent[sentKey(id, s)]; n > 0 {
				p.sent[s] = n
			}
		}
		p.open = map[event.Stream]bool{}
	}
}

func sentKey(id thole.ItemID, s event.Stream) string { return string(id) + "/" + string(s) }

func (e *Encoder) openStep() {
	if !e.step {
		e.step = true
		e.steps++
		e.emit(Chunk{Type: "start-step"})
	}
}

// closeStep ends the step. The client looks for a call's input only in the step
// it began in, so one that is not known by now is sent as empty: its output still
// finds it.
func (e *Encoder) closeStep() {
	if e.step {
		for _, id := range e.order {
			if p := e.parts[id]; p.begun && !p.ready {
				e.announce(p, raw(struct{}{}))
			}
		}
		e.step = false
		e.emit(Chunk{Type: "finish-step"})
	}
}

// visible makes sure that a part has a message and a step to be in.
func (e *Encoder) visible() {
	e.start()
	e.openStep()
}

// reset drops the parts of the current step: the agent repeats its model call.
func (e *Encoder) reset() {
	if !e.step {
		return
	}
	e.emit(Chunk{Type: "reset-step"})
	kept := e.order[:0]
	for _, id := range e.order {
		p := e.parts[id]
		if p.step == e.steps {
			delete(e.parts, id)
			continue
		}
		// The client forgets which texts are open, also those of earlier steps.
		p.open = map[event.Stream]bool{}
		kept = append(kept, id)
	}
	e.order = kept
	for _, a := range e.asks { // their tools are gone; an answer has nothing to be put on
		a.call = ""
	}
	e.pending = 0
	if e.changes > 0 {
		e.showTodos()
	}
	e.used()
}
