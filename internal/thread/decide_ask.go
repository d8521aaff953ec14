package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// request records an ask with the deadline its kind's policy gives it.
func (w *writer) request(id thole.EventID, ask event.Ask) {
	ask.Tool, ask.Schema, ask.Amendment = soundTool(ask.Tool), sound(ask.Schema), sound(ask.Amendment)
	if p := w.policy.For(ask.Kind); ask.Deadline.IsZero() && p.Wait > 0 {
		ask.Deadline = w.now.Add(p.Wait).Truncate(time.Millisecond)
	}
	w.append(event.Event{ID: id, Kind: event.AskRequested, Turn: w.s.OpenID(), Actor: w.actor, Data: event.Data{Ask: &ask}})
	if w.s.Open != nil && w.s.Open.Interrupted { // too late to ask: the turn is on its way out
		w.resolve(ask.ID, event.AskCanceled, nil)
	}
}

func (w *writer) resolve(id thole.AskID, st event.AskState, a *event.Answer) {
	w.add(event.AskResolved, w.s.OpenID(), event.Data{AskID: id, AskState: st, Answer: a})
}

func (w *writer) cancelAsks() {
	for _, a := range w.s.Asks {
		w.resolve(a.Ask.ID, event.AskCanceled, nil)
	}
}

// answer settles a pending ask and hands the answer to the agent.
func (w *writer) answer(r fold.AskRecord, a event.Answer) error {
	if err := checkAnswer(r.Ask, a); err != nil {
		return err
	}
	parked := fold.SlotOf(w.s.Open) == fold.Parked
	ref := w.ref()
	w.resolve(r.Ask.ID, event.AskAnswered, &a)
	if parked {
		w.call(func(rn Runner) { rn.Wake(ref.Thread, ref.Turn) })
	} else {
		w.call(func(rn Runner) { _ = rn.Answer(context.Background(), ref, r.Ask.ID, a) })
	}
	if a.Decision == event.DecisionCancel {
		w.interrupt(nil)
	}
	return w.err
}

// expire settles every overdue ask as its policy says.
func (w *writer) expire() error {
	for _, r := range w.s.Asks {
		if r.Ask.Deadline.IsZero() || r.Ask.Deadline.After(w.now) || w.s.Open == nil {
			continue
		}
		if _, pending := w.s.Ask(r.Ask.ID); !pending { // canceled with the turn meanwhile
			continue
		}
		p := w.policy.For(r.Ask.Kind)
		if p.OnTimeout == TimeoutDefault && p.Default != nil {
			if reply := p.reply(r.Ask); checkAnswer(r.Ask, reply) == nil {
				if err := w.answer(r, reply); err != nil {
					return err
				}
				continue
			}
		}
		w.resolve(r.Ask.ID, event.AskExpired, nil)
		if p.OnTimeout == TimeoutCancel {
			w.interrupt(nil)
			continue
		}
		w.interrupt(&thole.TurnError{
			Code: thole.ErrCancelled, Message: fmt.Sprintf("no answer to a %s ask in time", r.Ask.Kind),
			Hint: "start a new turn, or raise the wait for this kind of ask (asks.* in the configuration)",
		})
	}
	return w.err
}

// checkAnswer refuses an answer that this ask cannot be settled with.
func checkAnswer(ask event.Ask, a event.Answer) error {
	bad := func(format string, args ...any) error {
		return thole.Errorf(thole.CodeInvalid, "answer to "+string(ask.Kind)+" ask: "+format, args...)
	}
	switch a.Decision {
	case "", event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel:
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
	if len(a.Input) > 0 && len(ask.Input) == 0 {
		return bad("its input cannot be replaced")
	}
	negative := a.Decision == event.DecisionDeny || a.Decision == event.DecisionCancel
	if ask.Kind.Approval() {
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
	case event.AskInput:
		if len(a.Answers) == 0 && len(ask.Questions) > 0 {
			return bad("no question is answered")
		}
		for id := range a.Answers {
			if !slices.ContainsFunc(ask.Questions, func(q event.Question) bool { return q.ID == id }) {
				return bad("there is no question %q", id)
			}
		}
	case event.AskTool, event.AskElicitation:
		if len(a.Result) == 0 && a.Decision == "" {
			return bad("a result is needed")
		}
	}
	return nil
}

func sizeOf(a event.Answer) int {
	n := len(a.Message) + len(a.Input) + len(a.Amendment) + len(a.Result)
	for _, given := range a.Answers {
		for _, s := range given {
			n += len(s)
		}
	}
	return n
}
