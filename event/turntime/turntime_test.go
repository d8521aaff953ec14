package turntime_test

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/turntime"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }

// log makes a turn's events with rising sequence numbers.
type log []event.Event

func (l *log) add(s float64, k event.Kind, d event.Data) {
	*l = append(*l, event.Event{Kind: k, Turn: "t", Time: at(s), Seq: uint64(len(*l) + 1), Data: d})
}
func (l *log) start(s float64)                { l.add(s, event.TurnStarted, event.Data{Input: thole.Text("do")}) }
func (l *log) phase(s float64, p thole.Phase) { l.add(s, event.TurnPhase, event.Data{Phase: p}) }
func (l *log) end(s float64) {
	l.add(s, event.TurnEnded, event.Data{Outcome: thole.OutcomeCompleted})
}

// tool is a command that ran from one time to another, both reported when it was over.
func (l *log) tool(id thole.ItemID, from, to float64) {
	item := event.Item{ID: id, Kind: event.ItemCommand, Stamp: thole.Stamp{Started: at(from), Ended: at(to)}}
	l.add(to, event.ItemCompleted, event.Data{Item: &item})
}

func (l *log) ask(id thole.AskID, kind event.AskKind, from float64) {
	l.add(from, event.AskRequested, event.Data{Ask: &event.Ask{ID: id, Kind: kind}})
}

func (l *log) answer(id thole.AskID, s float64) {
	l.add(s, event.AskResolved, event.Data{AskID: id, AskState: event.AskAnswered})
}

func call(from, to float64) turntime.Call {
	return turntime.Call{Started: at(from), Ended: at(to)}
}

func spent(model, tools, human, overhead float64) thole.TurnTime {
	d := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return thole.TurnTime{Model: d(model), Tools: d(tools), Human: d(human), Overhead: d(overhead)}
}

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		log   func(*log)
		calls []turntime.Call
		want  thole.TurnTime
	}{
		"never ran": {func(l *log) { l.end(3) }, nil, spent(0, 0, 0, 3)},
		"queue, model calls and sync": {func(l *log) {
			l.phase(1, thole.PhaseRunning)
			l.end(8)
			l.phase(10, thole.PhaseSucceeded)
		}, []turntime.Call{call(2, 5), call(6, 8)}, spent(5, 0, 0, 5)},
		"calls at the same time count once": {func(l *log) { l.end(8) }, []turntime.Call{call(1, 5), call(2, 4), call(4, 6)}, spent(5, 0, 0, 3)},
		"the gateway's queue is ours": {func(l *log) { l.end(8) },
			[]turntime.Call{{Started: at(1), Ended: at(5), Waited: 3 * time.Second}}, spent(1, 0, 0, 7)},
		"a call that waited for a slot to its end": {func(l *log) { l.end(8) },
			[]turntime.Call{{Started: at(1), Ended: at(5), Waited: 4 * time.Second}}, spent(0, 0, 0, 8)},
		"a call that is not settled lasts until the end": {func(l *log) { l.end(8) }, []turntime.Call{{Started: at(6)}}, spent(2, 0, 0, 6)},
		"a call that outlived its turn":                  {func(l *log) { l.end(8) }, []turntime.Call{call(6, 20)}, spent(2, 0, 0, 6)},
		"tools at the same time count once": {func(l *log) {
			l.tool("a", 1, 5)
			l.tool("b", 2, 4)
			l.tool("c", 4, 7)
			l.end(8)
		}, []turntime.Call{call(0, 1)}, spent(1, 6, 0, 1)},
		"a tool beats a model call beside it": {func(l *log) {
			l.tool("a", 1, 5)
			l.end(8)
		}, []turntime.Call{call(2, 6)}, spent(1, 4, 0, 3)},
		"a tool that the model still writes does not run": {func(l *log) {
			l.tool("a", 2, 7)
			l.end(8)
		}, []turntime.Call{call(0, 4)}, spent(4, 3, 0, 1)},
		"a tool within a call of another agent": {func(l *log) {
			l.tool("a", 2, 3)
			l.end(8)
		}, []turntime.Call{call(0, 8)}, spent(7, 1, 0, 0)},
		"a person beats all": {func(l *log) {
			l.ask("q", event.AskCommand, 2)
			l.answer("q", 6)
			l.tool("a", 1, 7)
			l.end(8)
		}, []turntime.Call{call(0, 1), call(3, 5)}, spent(1, 2, 4, 1)},
		"a parked turn waits for the person, then for us": {func(l *log) {
			l.phase(1, thole.PhaseRunning)
			l.ask("q", event.AskInput, 2)
			l.phase(3, thole.PhaseWaitingHuman)
			l.answer("q", 60)
			l.phase(60, thole.PhaseQueued)
			l.phase(63, thole.PhaseRunning)
			l.end(64)
		}, nil, spent(2, 0, 58, 4)},
		"an ask that nobody answers": {func(l *log) {
			l.ask("q", event.AskPlan, 2)
			l.end(8)
		}, nil, spent(0, 0, 6, 2)},
		"the first answer counts": {func(l *log) {
			l.ask("q", event.AskPlan, 2)
			l.answer("q", 3)
			l.answer("q", 7)
			l.end(8)
		}, nil, spent(0, 0, 1, 7)},
		"a tool of the client is a tool": {func(l *log) {
			l.ask("q", event.AskTool, 2)
			l.answer("q", 5)
			l.end(8)
		}, nil, spent(0, 3, 0, 5)},
		"without the gateway an agent that runs waits for its model": {func(l *log) {
			l.phase(1, thole.PhaseClaimed)
			l.phase(2, thole.PhaseRunning)
			l.tool("a", 3, 5)
			l.end(8)
			l.phase(9, thole.PhaseSucceeded)
		}, nil, spent(4, 2, 0, 3)},
		"a turn that lost its executor waits for us": {func(l *log) {
			l.phase(1, thole.PhaseRunning)
			l.phase(3, thole.PhaseQueued)
			l.phase(5, thole.PhaseRunning)
			l.end(8)
		}, nil, spent(5, 0, 0, 3)},
		"a sub-agent is no tool, what it runs is": {func(l *log) {
			l.add(1, event.ItemStarted, event.Data{Item: &event.Item{ID: "agent", Kind: event.ItemTool}})
			child := event.Item{ID: "c", Parent: "agent", Kind: event.ItemCommand, Stamp: thole.Stamp{Started: at(3), Ended: at(4)}}
			l.add(4, event.ItemCompleted, event.Data{Item: &child})
			l.add(7, event.ItemCompleted, event.Data{Item: &event.Item{ID: "agent", Kind: event.ItemTool}})
			l.end(8)
		}, []turntime.Call{call(1, 3), call(4, 7)}, spent(5, 1, 0, 2)},
		"what an executor reports stays within what was recorded": {func(l *log) {
			l.add(1, event.ItemStarted, event.Data{Item: &event.Item{ID: "a", Kind: event.ItemCommand, Stamp: thole.Stamp{Started: at(-1e6)}}})
			l.add(3, event.ItemCompleted, event.Data{Item: &event.Item{ID: "a", Kind: event.ItemCommand, Stamp: thole.Stamp{Started: at(-1e6), Ended: at(1e6)}}})
			l.end(8)
		}, []turntime.Call{call(3, 4)}, spent(1, 3, 0, 4)},
		"a tool that ended before it began": {func(l *log) {
			l.tool("a", 5, 2)
			l.end(8)
		}, []turntime.Call{call(3, 4)}, spent(1, 0, 0, 7)},
		"words are not tools": {func(l *log) {
			l.add(4, event.ItemCompleted, event.Data{Item: &event.Item{ID: "m", Kind: event.ItemMessage, Stamp: thole.Stamp{Started: at(1), Ended: at(4)}}})
			l.end(8)
		}, []turntime.Call{call(1, 4)}, spent(3, 0, 0, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			var l log
			l.start(0)
			c.log(&l)
			if got, ok := turntime.Split(l, c.calls); !ok || got != c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A shell command of the user's has no model in it.
func TestShellTurn(t *testing.T) {
	var l log
	l.add(0, event.TurnStarted, event.Data{Input: thole.Shell("make")})
	l.phase(1, thole.PhaseRunning)
	l.tool("a", 2, 5)
	l.end(6)
	if got, _ := turntime.Split(l, nil); got != spent(0, 3, 0, 3) {
		t.Fatalf("%+v", got)
	}
}

func TestAStartThatIsGone(t *testing.T) {
	var l log
	l.phase(1, thole.PhaseRunning)
	l.end(6)
	if _, ok := turntime.Split(l, nil); ok {
		t.Fatal("a turn without a start has no length")
	}
}

// Whatever the log says: the parts add up, none is negative, and the order in which events
// and calls are read does not matter.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := rapid.Float64Range(0, 100)
		wild := rapid.Float64Range(-1000, 1000)
		var l log
		l.start(0)
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			s := second.Draw(t, "at")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				l.phase(s, rapid.SampledFrom([]thole.Phase{thole.PhaseQueued, thole.PhaseRunning, thole.PhaseWaitingHuman, thole.PhaseSyncing}).Draw(t, "phase"))
			case 1:
				l.ask(thole.AskID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "ask")), rapid.SampledFrom([]event.AskKind{event.AskCommand, event.AskTool}).Draw(t, "kind"), s)
			case 2:
				l.answer(thole.AskID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "answer")), s)
			default:
				item := event.Item{
					ID:   thole.ItemID(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "item")),
					Kind: rapid.SampledFrom([]event.ItemKind{event.ItemCommand, event.ItemTool, event.ItemMessage}).Draw(t, "kind"),
				}
				if rapid.Bool().Draw(t, "stamped") {
					item.Stamp = thole.Stamp{Started: at(wild.Draw(t, "from")), Ended: at(wild.Draw(t, "to"))}
				}
				l.add(s, rapid.SampledFrom([]event.Kind{event.ItemStarted, event.ItemCompleted}).Draw(t, "kind"), event.Data{Item: &item})
			}
		}
		end := second.Draw(t, "end")
		l.end(end)
		var calls []turntime.Call
		for range rapid.IntRange(0, 10).Draw(t, "calls") {
			calls = append(calls, turntime.Call{Started: at(wild.Draw(t, "from")), Ended: at(wild.Draw(t, "to")), Waited: time.Duration(wild.Draw(t, "waited") * float64(time.Second))})
		}
		got, ok := turntime.Split(l, calls)
		last := slices.MaxFunc(l, func(a, b event.Event) int { return a.Time.Compare(b.Time) }).Time
		if whole := last.Sub(t0).Truncate(time.Millisecond); !ok || got.Whole() != whole {
			t.Fatalf("%+v is %v, want %v", got, got.Whole(), whole)
		}
		if min(got.Model, got.Tools, got.Human, got.Overhead) < 0 {
			t.Fatalf("negative: %+v", got)
		}
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		r.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		r.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		if again, _ := turntime.Split(l, calls); again != got {
			t.Fatalf("%+v in one order, %+v in another", got, again)
		}
	})
}
