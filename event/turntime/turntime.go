// Package turntime says what a turn's time was spent on: waiting for the model, for tools, for
// a person, or for thole. It is a pure function over a turn's events and its model calls; it
// has no clock, keeps nothing and trusts no time that an executor reports beyond the turn's
// own start and the moment the report was recorded.
package turntime

import (
	"cmp"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Call is a model call through the gateway. It waited in the gateway's own queue for the
// first part of it; a zero Ended means that it is not over.
type Call struct {
	Started, Ended time.Time
	Waited         time.Duration
}

// Kinds are the events that Split reads; it ignores others.
var Kinds = []event.Kind{
	event.TurnStarted, event.TurnPhase, event.TurnEnded, event.ItemStarted, event.ItemCompleted, event.AskRequested, event.AskResolved,
}

// class is what a moment is spent on; the smaller one wins.
type class int

const (
	human class = iota
	tools
	model
	overhead
	classes
)

// span is an interval in milliseconds since the turn's start.
type span struct {
	class
	from, to int64
}

// Split returns what a turn's time was spent on, from its start until its last event, in any
// order of events and calls. It reports false where the start is missing: the log no longer
// has it.
//
// A turn whose model calls did not go through the gateway waited for the model whenever its
// agent ran and nothing else was under way.
func Split(events []event.Event, calls []Call) (thole.TurnTime, bool) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b event.Event) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), a.Time.Compare(b.Time)) })
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == event.TurnStarted })
	if i < 0 {
		return thole.TurnTime{}, false
	}
	s := splitter{start: events[i].Time}
	for _, e := range events {
		s.whole = max(s.whole, s.since(e.Time))
	}
	asking := s.calls(calls)
	spans := slices.Concat(s.asks(events), s.items(events, asking), asking)
	if command, _ := thole.TurnCommandOf(events[i].Input); len(calls) == 0 && command.AgentRuns() {
		spans = append(spans, s.running(events)...)
	}
	return s.sweep(spans), true
}

type splitter struct {
	start time.Time
	whole int64
}

func (s splitter) since(t time.Time) int64 { return t.Sub(s.start).Milliseconds() }

// calls are the times at which a model was asked and not merely waited for.
func (s splitter) calls(calls []Call) []span {
	out := make([]span, 0, len(calls))
	for _, c := range calls {
		to := s.whole
		if !c.Ended.IsZero() {
			to = s.since(c.Ended)
		}
		out = append(out, span{model, s.since(c.Started.Add(max(0, c.Waited))), to})
	}
	return out
}

// running are the times in which an executor had the turn.
func (s splitter) running(events []event.Event) (out []span) {
	from := int64(-1)
	for _, e := range events {
		if e.Kind != event.TurnPhase && e.Kind != event.TurnEnded {
			continue
		}
		if from >= 0 {
			out = append(out, span{model, from, s.since(e.Time)})
			from = -1
		}
		if e.Kind == event.TurnPhase && e.Phase == thole.PhaseRunning {
			from = s.since(e.Time)
		}
	}
	if from >= 0 {
		out = append(out, span{model, from, s.whole})
	}
	return out
}

// asks are the times in which a person had to answer. A tool of the client's program is a tool.
func (s splitter) asks(events []event.Event) (out []span) {
	open := map[thole.AskID]int{}
	for _, e := range events {
		switch e.Kind {
		case event.AskRequested:
			if e.Ask == nil {
				continue
			}
			c := human
			if e.Ask.Kind == event.AskTool {
				c = tools
			}
			open[e.Ask.ID] = len(out)
			out = append(out, span{c, s.since(e.Time), s.whole})
		case event.AskResolved:
			if i, ok := open[e.AskID]; ok {
				out[i].to = s.since(e.Time)
				delete(open, e.AskID) // the agent's own answer may follow, and changes nothing
			}
		}
	}
	return out
}

// items are the times in which tools ran. What a sub-agent does counts, not that it exists:
// it waits for its model as its caller does.
func (s splitter) items(events []event.Event, calls []span) (out []span) {
	parents := map[thole.ItemID]bool{}
	for _, e := range events {
		if e.Item != nil && e.Item.Parent != "" {
			parents[e.Item.Parent] = true
		}
	}
	open := map[thole.ItemID]int{}
	for _, e := range events {
		if e.Item == nil || parents[e.Item.ID] || !runs(e.Item.Kind) {
			continue
		}
		at := s.since(e.Time)
		i, started := open[e.Item.ID]
		if !started {
			i = len(out)
			open[e.Item.ID] = i
			out = append(out, span{tools, s.reported(e.Item.Stamp.Started, at), s.whole})
		}
		if e.Kind == event.ItemCompleted {
			out[i].to = s.reported(e.Item.Stamp.Ended, at)
			delete(open, e.Item.ID) // the next run of the turn may use the id again
		}
	}
	for i := range out {
		out[i].from = asked(out[i], calls)
	}
	return out
}

func runs(k event.ItemKind) bool {
	return k == event.ItemCommand || k == event.ItemFileChange || k == event.ItemTool
}

// reported is an executor's time of something that was recorded at a later one.
func (s splitter) reported(t time.Time, recorded int64) int64 {
	if t.IsZero() {
		return recorded
	}
	return min(max(s.since(t), 0), recorded)
}

// asked is when a tool began to run: an agent shows it as soon as the model names it, and
// runs it when the model has said how.
func asked(tool span, calls []span) int64 {
	from := tool.to
	for _, c := range calls {
		if c.from <= tool.from && tool.from < c.to {
			from = min(from, c.to)
		}
	}
	if from == tool.to { // no call, or one that has nothing to do with it
		return tool.from
	}
	return from
}

// sweep gives each moment of the turn to the first class that has a span there.
func (s splitter) sweep(spans []span) thole.TurnTime {
	type edge struct {
		at int64
		class
		step int
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, p := range spans {
		if from, to := max(p.from, 0), min(p.to, s.whole); from < to {
			edges = append(edges, edge{from, p.class, 1}, edge{to, p.class, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var spent [classes]int64
	var open [classes]int
	open[overhead] = 1
	last := int64(0)
	for _, e := range append(edges, edge{at: s.whole, class: overhead}) {
		for c := range classes {
			if open[c] > 0 {
				spent[c] += e.at - last
				break
			}
		}
		last = e.at
		open[e.class] += e.step
	}
	ms := func(c class) time.Duration { return time.Duration(spent[c]) * time.Millisecond }
	return thole.TurnTime{Model: ms(model), Tools: ms(tools), Human: ms(human), Overhead: ms(overhead)}
}
