package thread

import (
	"slices"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
)

// maxPreview bounds the preview of a thread, in bytes.
const maxPreview = 200

func (s *state) foldTurn(e Event, c *Commit) error {
	d := e.Data
	switch e.Kind {
	case TurnStarted:
		if s.open != nil {
			return illegal(e, "a turn is open")
		}
		s.startTurn(e, c)
		return nil
	case TurnPhase:
		return s.foldPhase(e, c)
	case TurnSteered:
		return s.touchTurn(c, func(t *Turn) {
			t.Steers = append(slices.Clone(t.Steers), *d.Message)
		})
	case SteerRefused:
		return s.touchTurn(c, func(t *Turn) { t.Steers = without(t.Steers, d.MessageID) })
	case TurnInterrupt:
		return s.touchTurn(c, func(t *Turn) {
			t.Interrupted = true
			if t.Stop == nil {
				t.Stop = d.Error
			}
		})
	case UsageUpdated:
		return s.touchTurn(c, func(t *Turn) { t.Usage = *d.Usage })
	case ErrorReported:
		if d.Error.Retrying {
			return nil
		}
		return s.touchTurn(c, func(t *Turn) { t.Error = d.Error })
	case TurnEnded:
		return s.endTurn(e, c)
	}
	return illegal(e, "not about a turn")
}

func (s *state) startTurn(e Event, c *Commit) {
	d, th := e.Data, &s.row.Thread
	th.Turns++
	t := Turn{
		ID: e.Turn, Thread: e.Thread, Input: d.Input, ClientID: d.ClientID, Actor: e.Actor,
		Phase: thole.PhaseQueued, Trace: e.Trace, Created: e.Time, Number: th.Turns, Seq: e.Seq,
	}
	if d.Settings != nil {
		t.Settings = *d.Settings
	}
	if th.Preview == "" {
		th.Preview = preview(d.Input)
	}
	th.Open = t.ID
	s.open, s.items, s.settled, s.row.Step = &t, nil, nil, e.Seq
	c.Key = d.Idempotency
	c.putTurn(t)
}

// foldPhase moves a turn along the pipeline. A turn that is over is not in
// memory any more: its row alone is changed.
func (s *state) foldPhase(e Event, c *Commit) error {
	if s.open == nil || s.open.ID != e.Turn {
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

func (s *state) endTurn(e Event, c *Commit) error {
	for _, r := range s.items {
		if r.Open {
			return illegal(e, "an item is in flight")
		}
	}
	if len(s.asks) > 0 {
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
	t := *s.open
	c.Settled = append(c.Settled, t)
	s.row.Thread.Usage = s.row.Thread.Usage.Plus(t.Usage)
	s.row.Thread.Open = ""
	if errand, _ := thole.ErrandOf(t.Input); errand == "" || !s.row.Paused { // an errand does not say that what a stop holds may go on
		s.row.LastOutcome = t.Outcome
		s.row.Paused = t.Outcome == thole.OutcomeInterrupted && t.Interrupted
	}
	s.open, s.items, s.settled, s.row.Step = nil, nil, nil, 0
	return nil
}

func without(ms []Message, id thole.MessageID) []Message {
	return slices.DeleteFunc(slices.Clone(ms), func(m Message) bool { return m.ID == id })
}

func preview(input []thole.Input) string {
	for _, in := range input {
		if in.Type == "text" && in.Text != "" {
			return clip(strings.ReplaceAll(in.Text, "\x00", ""), maxPreview)
		}
	}
	return ""
}

// clip cuts text to at most n bytes at a rune's edge.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
