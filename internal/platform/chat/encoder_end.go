package chat

import (
	"cmp"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
)

func (e *Encoder) phase(ev event.Event) {
	if !e.started {
		return
	}
	e.emit(Chunk{Type: "data-phase", ID: string(e.turn.ID), Transient: true, Data: raw(struct {
		RunID    string      `json:"run_id"`
		Executor string      `json:"executor_id,omitempty"`
		Phase    thole.Phase `json:"phase"`
		Error    string      `json:"error,omitempty"`
		Since    time.Time   `json:"since"`
	}{string(e.turn.ID), string(e.turn.Executor), ev.Data.Phase, ev.Data.Text, ev.Time})})
}

// showTodos shows the whole list, in place.
func (e *Encoder) showTodos() {
	e.visible()
	e.emit(Chunk{Type: "data-todo", ID: "todo", Data: raw(struct {
		Todos   []event.Todo `json:"todos"`
		Changes int          `json:"changes"`
	}{append([]event.Todo{}, e.state.Todos...), e.changes})})
}

func (e *Encoder) used() {
	if e.state.Open == nil || e.state.Open.Usage == (thole.Usage{}) {
		return
	}
	e.visible()
	e.emit(Chunk{Type: "data-usage", ID: "usage", Data: raw(e.state.Open.Usage)})
}

// closeParts ends every text that is still open, so that no part stays in
// "streaming" for ever.
func (e *Encoder) closeParts() {
	for _, id := range e.order {
		p := e.parts[id]
		for _, s := range []event.Stream{event.StreamText, event.StreamSummary} {
			e.endText(p, s)
		}
	}
}

func (e *Encoder) end(ev event.Event) {
	e.start()
	e.printed()
	e.closeParts()
	m := &Metadata{EndedAt: ev.Time, Outcome: ev.Data.Outcome, Usage: (*view.Usage)(ev.Data.Usage), Seq: ev.Seq, ExecutorID: string(e.turn.Executor)}
	if used := e.state.Row.Thread.Usage; (m.Usage == nil || *m.Usage == (view.Usage{})) && used != (thole.Usage{}) {
		m.Usage = (*view.Usage)(&used) // this turn's alone: the fold began with it
	}
	finish := Chunk{Type: "finish", FinishReason: "stop", MessageMetadata: m}
	switch ev.Data.Outcome {
	case thole.OutcomeFailed:
		why := ev.Data.Error
		if why == nil {
			why = &thole.TurnError{Code: thole.ErrProviderCrashed, Message: "the run failed"}
		}
		e.visible()
		e.emit(Chunk{Type: "data-error", ID: "error", Data: raw(why)})
		e.closeStep()
		finish.FinishReason = "error"
		e.emit(finish)
		e.emit(Chunk{Type: "error", ErrorText: sentence(why)})
	case thole.OutcomeInterrupted:
		e.closeStep()
		e.emit(Chunk{Type: "abort", Reason: "interrupted"})
		finish.FinishReason = "other"
		e.emit(finish)
	default:
		e.closeStep()
		e.emit(finish)
	}
	e.ended = true
}

func sentence(why *thole.TurnError) string {
	text := cmp.Or(why.Message, string(why.Code))
	if why.Hint != "" {
		text += " (" + why.Hint + ")"
	}
	return text
}

// Cut ends the stream while the turn waits for an approval that the client will
// post: the metadata says where to go on.
func (e *Encoder) Cut() []Chunk {
	m := &Metadata{Seq: e.seq, Sent: map[string]int64{}}
	for _, id := range e.order {
		p := e.parts[id]
		for s, n := range p.sent {
			if n > 0 {
				m.Sent[sentKey(id, s)] = n
			}
		}
	}
	e.closeParts()
	e.closeStep()
	e.emit(Chunk{Type: "finish", FinishReason: "tool-calls", MessageMetadata: m})
	e.ended = true
	return e.Take()
}
