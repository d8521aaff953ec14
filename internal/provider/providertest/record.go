package providertest

import (
	"encoding/json"
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// Record is one turn's events.
type Record []event.Event

func (r Record) String() string {
	var b strings.Builder
	for i, e := range r {
		if i > 200 {
			fmt.Fprintf(&b, "… and %d more\n", len(r)-i)
			break
		}
		e.ID, e.Turn = "", ""
		data, _ := json.Marshal(e)
		if len(data) > 600 {
			data = append(data[:600:600], "…"...)
		}
		fmt.Fprintf(&b, "%s\n", data)
	}
	return b.String()
}

// Settled reports what is wrong with a turn that a broken stream sent: what was
// said need not make sense, but the turn ends, once, with nothing left open.
func (r Record) Settled() error {
	open := map[thole.ItemID]bool{}
	for i, e := range r {
		switch e.Kind {
		case event.ItemStarted:
			open[e.Item.ID] = true
		case event.ItemCompleted:
			delete(open, e.Item.ID)
		case event.StepReset:
			clear(open)
		}
		if (e.Kind == event.TurnEnded) != (i == len(r)-1) {
			return fmt.Errorf("event %d of %d is %s", i, len(r), e.Kind)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d items are open; events:\n%s", len(open), r)
	}
	return nil
}

// Outcome is how the turn ended.
func (r Record) Outcome() thole.Outcome { return r.Ended().Outcome }

// Ended is the last event's body.
func (r Record) Ended() provider.Ended {
	if n := len(r); n > 0 && r[n-1].Kind == event.TurnEnded {
		return provider.EndedOf(r[n-1])
	}
	return provider.Ended{}
}

// Items are the completed items of a kind in order, without those of steps that
// were reset.
func (r Record) Items(kind event.ItemKind) []event.Item {
	var out []event.Item
	step := 0
	for _, e := range r {
		switch {
		case e.Kind == event.StepStarted:
			step = len(out)
		case e.Kind == event.StepReset:
			out = out[:step]
		case e.Kind == event.ItemCompleted && e.Item.Kind == kind:
			out = append(out, *e.Item)
		}
	}
	return out
}

// Text is what the agent said.
func (r Record) Text() string {
	var parts []string
	for _, i := range r.Items(event.ItemMessage) {
		parts = append(parts, i.Text)
	}
	return strings.Join(parts, "\n")
}

// Of returns the events of a kind.
func (r Record) Of(kind event.Kind) []event.Event {
	var out []event.Event
	for _, e := range r {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// Usage is the last report.
func (r Record) Usage() thole.Usage {
	all := r.Of(event.UsageUpdated)
	if len(all) == 0 {
		return thole.Usage{}
	}
	return *all[len(all)-1].Usage
}

// Error is the error the turn ended with, or the last one reported.
func (r Record) Error() *thole.TurnError {
	if e := r.Ended().Error; e != nil {
		return e
	}
	if all := r.Of(event.ErrorReported); len(all) > 0 {
		return all[len(all)-1].Error
	}
	return nil
}

// Check holds every stream to the promises of the port.
func Check(turn thole.TurnID, r Record) error {
	if len(r) == 0 {
		return fmt.Errorf("no events")
	}
	ids := map[thole.EventID]int{}
	type state struct {
		text, summary, input strings.Builder
		output               int64
		step                 int
	}
	steps := 0
	open := map[thole.ItemID]*state{}
	closed := map[thole.ItemID]bool{}
	asks := map[thole.AskID]bool{}
	for n, e := range r {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("event %d (%s): %s", n, e.Kind, fmt.Sprintf(format, args...))
		}
		if e.ID == "" || e.Turn != turn || e.Time.IsZero() {
			return fail("id, turn and time are not all set")
		}
		if was, dup := ids[e.ID]; dup {
			return fail("has the id of event %d", was)
		}
		ids[e.ID] = n
		if (e.Kind == event.TurnEnded) != (n == len(r)-1) {
			return fail("ended must be the last event and only that")
		}
		switch e.Kind {
		case event.ItemStarted:
			if open[e.Item.ID] != nil || closed[e.Item.ID] {
				return fail("item started twice")
			}
			s := &state{step: steps}
			s.text.WriteString(e.Item.Text)
			s.summary.WriteString(e.Item.Summary)
			if e.Item.Command != nil {
				s.output = int64(len(e.Item.Command.Output))
			}
			open[e.Item.ID] = s
		case event.ItemDelta:
			s := open[e.ItemID]
			if s == nil {
				return fail("delta for an item that is not open")
			}
			var at int64
			switch e.Stream {
			case event.StreamText:
				at = int64(s.text.Len())
				s.text.WriteString(e.Delta)
			case event.StreamSummary:
				at = int64(s.summary.Len())
				s.summary.WriteString(e.Delta)
			case event.StreamInput:
				at = int64(s.input.Len())
				s.input.WriteString(e.Delta)
			case event.StreamOutput:
				at = s.output
				s.output += int64(len(e.Delta))
			default:
				return fail("unknown stream %q", e.Stream)
			}
			if e.Offset != at {
				return fail("%s offset %d, want %d", e.Stream, e.Offset, at)
			}
		case event.ItemUpdated:
			if open[e.Item.ID] == nil {
				return fail("update of an item that is not open")
			}
		case event.ItemCompleted:
			s := open[e.Item.ID]
			if s == nil {
				return fail("completed an item that is not open")
			}
			if t := s.text.String(); t != "" && e.Item.Text != t && (e.Item.Kind == event.ItemMessage || e.Item.Kind == event.ItemPlan) {
				return fail("text %q is not the sum of its deltas %q", e.Item.Text, t)
			}
			if in := s.input.String(); in != "" && !json.Valid([]byte(in)) && e.Item.State == event.StateCompleted {
				return fail("tool input deltas make no JSON: %q", in)
			}
			if c := e.Item.Command; c != nil && len(c.Output) > provider.OutputLimit {
				return fail("output of %d bytes is not bounded", len(c.Output))
			}
			if e.Item.State == "" || e.Item.State == event.StateRunning {
				return fail("completed in state %q", e.Item.State)
			}
			delete(open, e.Item.ID)
			closed[e.Item.ID] = true
		case event.StepReset: // items of this step are void, earlier ones stay
			for id, s := range open {
				if s.step == steps {
					delete(open, id)
				}
			}
		case event.StepStarted:
			steps++
		case event.AskRequested:
			asks[e.Ask.ID] = true
		case event.AskResolved:
			if !asks[e.AskID] {
				return fail("resolved an ask that is not pending")
			}
			delete(asks, e.AskID)
		case event.TurnEnded:
			delete(asks, e.AskID)
			if len(open) > 0 || len(asks) > 0 {
				return fail("%d items and %d asks are still open", len(open), len(asks))
			}
			if e.Outcome == thole.OutcomeFailed && (e.Error == nil || e.Error.Code == "" || e.Error.Hint == "") {
				return fail("failed without a code and a hint")
			}
		}
	}
	return nil
}
