package thread

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
)

// request records an ask with the deadline its kind's policy gives it.
func (w *writer) request(id thole.EventID, ask thole.Ask) {
	ask.Tool, ask.Schema, ask.Amendment = soundTool(ask.Tool), sound(ask.Schema), sound(ask.Amendment)
	if p := w.policy.For(ask.Kind); ask.Deadline.IsZero() && p.Wait > 0 {
		ask.Deadline = w.now.Add(p.Wait).Truncate(time.Millisecond)
	}
	w.append(Event{ID: id, Kind: AskRequested, Turn: w.s.openID(), Actor: w.actor, Data: Data{Ask: &ask}})
	if w.s.open != nil && w.s.open.Interrupted { // too late to ask: the turn is on its way out
		w.resolve(ask.ID, thole.AskCanceled, nil)
	}
}

func (w *writer) resolve(id thole.AskID, st thole.AskState, a *thole.Answer) {
	w.add(AskResolved, w.s.openID(), Data{AskID: id, AskState: st, Answer: a})
}

func (w *writer) cancelAsks() {
	for _, a := range w.s.asks {
		w.resolve(a.Ask.ID, thole.AskCanceled, nil)
	}
}

// answer settles a pending ask and hands the answer to the agent.
func (w *writer) answer(r AskRecord, a thole.Answer) error {
	if err := checkAnswer(r.Ask, a); err != nil {
		return err
	}
	parked := slotOf(w.s.open) == slotParked
	ref := w.ref()
	w.resolve(r.Ask.ID, thole.AskAnswered, &a)
	if parked {
		w.call(func(rn Runner) { rn.Wake(ref.Thread, ref.Turn) })
	} else {
		w.call(func(rn Runner) { _ = rn.Answer(context.Background(), ref, r.Ask.ID, a) })
	}
	if a.Decision == thole.DecisionCancel {
		w.interrupt(nil)
	}
	return w.err
}

// expire settles every overdue ask as its policy says.
func (w *writer) expire() error {
	for _, r := range w.s.asks {
		if r.Ask.Deadline.IsZero() || r.Ask.Deadline.After(w.now) || w.s.open == nil {
			continue
		}
		if _, pending := w.s.ask(r.Ask.ID); !pending { // canceled with the turn meanwhile
			continue
		}
		p := w.policy.For(r.Ask.Kind)
		if p.OnTimeout == TimeoutDefault && p.Default != nil && checkAnswer(r.Ask, *p.Default) == nil {
			if err := w.answer(r, *p.Default); err != nil {
				return err
			}
			continue
		}
		w.resolve(r.Ask.ID, thole.AskExpired, nil)
		if p.OnTimeout == TimeoutCancel {
			w.interrupt(nil)
			continue
		}
		w.interrupt(&thole.TurnError{
			Code: thole.ErrCancelled, Message: "no answer to a question in time",
			Hint: "start a new turn, or raise the wait for this kind of question",
		})
	}
	return w.err
}

// checkAnswer refuses an answer that this ask cannot be settled with.
func checkAnswer(ask thole.Ask, a thole.Answer) error {
	bad := func(format string, args ...any) error {
		return thole.Errorf(thole.CodeInvalid, "answer to "+string(ask.Kind)+" ask: "+format, args...)
	}
	switch a.Decision {
	case "", thole.DecisionAllow, thole.DecisionAlways, thole.DecisionDeny, thole.DecisionCancel:
	default:
		return thole.Errorf(thole.CodeInvalid, "answer to %s ask: unknown decision %q", ask.Kind, a.Decision).WithHint("use allow, always, deny or cancel")
	}
	for _, raw := range []json.RawMessage{a.Input, a.Amendment, a.Result} {
		if len(raw) > 0 && !json.Valid(raw) {
			return bad("a part of it is not JSON")
		}
	}
	if n := sizeOf(a); n > maxAnswer {
		return bad("it has %d bytes; at most %d are taken", n, maxAnswer)
	}
	negative := a.Decision == thole.DecisionDeny || a.Decision == thole.DecisionCancel
	if approval(ask.Kind) {
		if a.Decision == "" {
			return bad("a decision is needed")
		}
		if len(ask.Decisions) > 0 && !negative && !slices.Contains(ask.Decisions, a.Decision) {
			return bad("%q is not offered", a.Decision)
		}
		return nil
	}
	if negative {
		return nil
	}
	switch ask.Kind {
	case thole.AskInput:
		if len(a.Answers) == 0 && len(ask.Questions) > 0 {
			return bad("no question is answered")
		}
		for id := range a.Answers {
			if !slices.ContainsFunc(ask.Questions, func(q thole.Question) bool { return q.ID == id }) {
				return bad("there is no question %q", id)
			}
		}
	case thole.AskTool, thole.AskElicitation, thole.AskAuth:
		if len(a.Result) == 0 && a.Decision == "" {
			return bad("a result is needed")
		}
	}
	return nil
}

func sizeOf(a thole.Answer) int {
	n := len(a.Message) + len(a.Input) + len(a.Amendment) + len(a.Result)
	for _, given := range a.Answers {
		for _, s := range given {
			n += len(s)
		}
	}
	return n
}
