package thread

import (
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/strictjson"
)

// executord is in the agent's reach, so an agent can answer its own question there,
// or at its CLI. What is recorded here before it is forwarded is the only proof of
// an answer; all else is the agent's own word, which stops the turn.

// usurped reports whether a reported resolution of an ask is not ours: an answer
// that was not recorded, another than was recorded, or one without the receipt of
// the record. A CLI may withdraw what it asked, so no answer is no offence.
func (w *writer) usurped(r fold.AskRecord, e event.Event) bool {
	if e.Answer == nil || r.State == event.AskSelfAnswered {
		return false
	}
	return r.State != event.AskAnswered || !sameAnswer(r.Answer, e.Answer) || r.Receipt != "" && r.Receipt != e.Receipt
}

// unasked looks whether an item was carried out that nobody had allowed: its ask is
// pending still, or was withdrawn. An "always" may have allowed other pending asks too.
func (w *writer) unasked(item event.Item) {
	if item.State != event.StateCompleted || w.s.Open == nil || w.s.Open.Interrupted {
		return
	}
	for _, r := range append(w.s.Asks[:len(w.s.Asks):len(w.s.Asks)], w.s.Settled...) {
		waits := r.State == event.AskPending || r.State == event.AskCanceled && !always(w.s, r.Ask.Kind)
		if r.Ask.Item == item.ID && r.Ask.Kind.Approval() && waits {
			w.selfAnswered("", r, nil)
			return
		}
	}
}

// always reports whether the open turn has had "always" for an answer.
func always(s *fold.State, k event.AskKind) bool {
	for _, r := range s.Settled {
		if r.Ask.Kind == k && r.State == event.AskAnswered && r.Answer.Decision == event.DecisionAlways {
			return true
		}
	}
	return false
}

// usurped reports whether the agent answered an ask of the open turn itself.
func usurped(s *fold.State) bool {
	for _, r := range s.Settled {
		if r.State == event.AskSelfAnswered {
			return true
		}
	}
	return false
}

// selfAnswered records that the agent went on by its own word and stops the turn.
func (w *writer) selfAnswered(id thole.EventID, r fold.AskRecord, a *event.Answer) {
	if a != nil {
		b := *a
		b.Input, b.Amendment, b.Result = sound(a.Input), sound(a.Amendment), sound(a.Result)
		a = &b
	}
	ref := w.ref()
	w.append(event.Event{ID: id, Kind: event.AskResolved, Turn: ref.Turn, Actor: thole.AgentActor, Data: event.Data{AskID: r.Ask.ID, AskState: event.AskSelfAnswered, Answer: a}})
	w.append(event.Event{Kind: event.NoteReported, Turn: ref.Turn, Actor: w.actor, Data: event.Data{
		Text: "the agent answered its own question (" + string(r.Ask.Kind) + "); nobody allowed that, so the turn was stopped",
	}})
	if w.err != nil {
		return
	}
	w.usurpedAsks = append(w.usurpedAsks, r.Ask.ID)
	w.interrupt(nil)
}

// alarm logs, after the commit, which asks an agent answered itself.
func (m *Machine) alarm(w *writer) {
	for _, ask := range w.usurpedAsks {
		m.cfg.Log.Warn("an agent answered its own question; its turn was stopped",
			"thread", w.s.Row.Thread.ID, "ask", ask, "executor", w.executor)
	}
}

// sameAnswer reports whether two answers say the same. Each is read once more, so
// that what a wire changes in form makes no difference.
func sameAnswer(a, b *event.Answer) bool {
	if a == nil || b == nil {
		return a == b
	}
	return plainAnswer(a) == plainAnswer(b)
}

func plainAnswer(a *event.Answer) string {
	var again event.Answer
	raw, err := json.Marshal(a)
	if err == nil {
		err = strictjson.Unmarshal(raw, &again)
	}
	if err != nil {
		return "unreadable: " + err.Error()
	}
	raw, _ = json.Marshal(again)
	return string(raw)
}
