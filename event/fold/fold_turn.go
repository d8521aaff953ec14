package fold

import (
	"slices"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// maxPreview bounds the preview of a thread, in bytes.
const maxPreview = 200

func (s *State) foldTurn(e event.Event, c *Changes) error {
	d := e.Data
	switch e.Kind {
	case event.TurnStarted:
		if s.Open != nil {
			return illegal(e, "a turn is open")
		}
		s.startTurn(e, c)
		return nil
	case event.TurnPhase:
		return s.foldPhase(e, c)
	case event.TurnSteered:
		s.countAlone(false, d.Message.Actor)
		return s.touchTurn(c, func(t *Turn) {
			t.Steers = append(slices.Clone(t.Steers), *d.Message)
		})
	case event.SteerRefused:
		return s.touchTurn(c, func(t *Turn) { t.Steers = Without(t.Steers, d.MessageID) })
	case event.TurnInterrupt:
		return s.touchTurn(c, func(t *Turn) {
			t.Interrupted = true
			if t.Stop == nil {
				t.Stop = d.Error
			}
		})
	case event.UsageUpdated:
		return s.touchTurn(c, func(t *Turn) { t.Usage = *d.Usage })
	case event.ErrorReported:
		if d.Error.Retrying {
			return nil
		}
		return s.touchTurn(c, func(t *Turn) { t.Error = d.Error })
	case event.TurnEnded:
		return s.endTurn(e, c)
	}
	return illegal(e, "not about a turn")
}

func (s *State) startTurn(e event.Event, c *Changes) {
	d, th := e.Data, &s.Row.Thread
	th.Turns++
	t := Turn{
		ID: e.Turn, Thread: e.Thread, Input: d.Input, ClientID: d.ClientID, Actor: e.Actor, Schema: d.Schema,
		Phase: thole.PhaseQueued, Trace: e.Trace, Created: e.Time, Number: th.Turns, Seq: e.Seq,
	}
	if d.Settings != nil {
		t.Settings = *d.Settings
	}
	if th.Preview == "" {
		th.Preview = Preview(d.Input)
	}
	command, _ := thole.TurnCommandOf(d.Input)
	s.countAlone(command == thole.TurnCommandGoal, e.Actor)
	th.Open = t.ID
	s.Open, s.Items, s.Settled, s.Row.Step = &t, nil, nil, e.Seq
	c.Key = d.Idempotency
	c.putTurn(t)
}

// countAlone counts the turns that a goal began since a person last said something.
func (s *State) countAlone(forGoal bool, by thole.Actor) {
	if s.Row.Thread.Goal == nil {
		return
	}
	g := *s.Row.Thread.Goal
	switch {
	case forGoal:
		g.Alone++
	case by.Person():
		g.Alone = 0
	}
	s.Row.Thread.Goal = &g
}

// foldPhase moves a turn along the pipeline. A turn that is over is not in
// memory any more: its row alone is changed.
func (s *State) foldPhase(e event.Event, c *Changes) error {
	if s.Open == nil || s.Open.ID != e.Turn {
		c.Phases = append(c.Phases, PhaseChange{Turn: e.Turn, Phase: e.Data.Phase})
		return nil
	}
	return s.touchTurn(c, func(t *Turn) {
		t.Phase = e.Data.Phase
		if e.Executor != "" {
			t.Executor = e.Executor
		}
		t.Deferred = ""
		switch t.Phase {
		case thole.PhaseWaitingHuman:
			t.Deferred = e.Data.AskID
		case thole.PhaseQueued:
			t.Reply = e.Data.AskID
			t.Run++
		case thole.PhaseRunning:
			t.Reply = ""
		}
		if t.Stamp.Started.IsZero() && t.Phase == thole.PhaseRunning {
			t.Stamp.Started = e.Time
		}
	})
}

func (s *State) endTurn(e event.Event, c *Changes) error {
	for _, r := range s.Items {
		if r.Open {
			return illegal(e, "an item is in flight")
		}
	}
	if len(s.Asks) > 0 {
		return illegal(e, "an ask is pending")
	}
	err := s.touchTurn(c, func(t *Turn) {
		t.Outcome, t.Error = e.Data.Outcome, e.Data.Error
		t.Stamp.Ended, t.Deferred, t.Steers = e.Time, "", nil
		if t.Phase == thole.PhaseQueued { // nobody has it, so nobody will finish the pipeline
			t.Phase = t.Outcome.Phase()
		} else {
			t.Phase = thole.PhaseSyncing
		}
	})
	if err != nil {
		return err
	}
	t := *s.Open
	c.Settled = append(c.Settled, t)
	s.Row.Thread.Usage = s.Row.Thread.Usage.Plus(t.Usage)
	s.Row.Thread.Open = ""
	if t.retold(s.Row.Thread.NativeID) {
		s.Row.Thread.Retell = false
	}
	if command, _ := thole.TurnCommandOf(t.Input); command == "" || !s.Row.Paused { // a command turn does not say that what a stop holds may go on
		s.Row.LastOutcome = t.Outcome
		s.Row.Paused = t.Outcome == thole.OutcomeInterrupted && t.Interrupted
	}
	s.Open, s.Items, s.Settled, s.Row.Step = nil, nil, nil, 0
	return nil
}

func Without(ms []event.Message, id thole.MessageID) []event.Message {
	return slices.DeleteFunc(slices.Clone(ms), func(m event.Message) bool { return m.ID == id })
}

func Preview(input []thole.Input) string {
	if command, objective := thole.TurnCommandOf(input); command == thole.TurnCommandGoal {
		return Clip(objective, maxPreview)
	}
	for _, in := range input {
		if in.Type == "text" && in.Text != "" {
			return Clip(strings.ReplaceAll(in.Text, "\x00", ""), maxPreview)
		}
	}
	for _, in := range input {
		if in.Type == thole.InputFile {
			return in.Name
		}
	}
	return ""
}

// clip cuts text to at most n bytes at a rune's edge.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
