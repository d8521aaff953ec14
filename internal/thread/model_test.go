package thread_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
	"pgregory.net/rapid"
)

var (
	me  = thole.LocalActor
	bg  = context.Background()
	all = thread.PageParams{Limit: 1000}
)

// world is one thread under random clients and a random agent, with a log-based
// reference of what must be true.
type world struct {
	t     tester
	d     *rapid.T // draws
	db    *store.DB
	clock time.Time
	m     *thread.Machine
	id    thole.ThreadID

	clients []*client
	agent   agent
	sent    []event.Event // everything the agent reported, for repeats
	answers map[thole.AskID]event.Answer
	serial  int
}

// agent is what runs the open turn: it knows its own items and asks.
type agent struct {
	ref   thread.TurnRef
	items map[thole.ItemID]string // open, with their text
	asks  []thole.AskID
}

func (w *world) machine() {
	m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: w.db.Threads()}, Now: func() time.Time { return w.clock }})
	if err != nil {
		w.t.Fatal(err)
	}
	m.Attach(nobody{})
	w.m = m
}

// next makes ids and texts that differ.
func (w *world) next(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s%d", prefix, w.serial)
}

func (w *world) thread() fold.Thread {
	th, err := w.m.Get(bg, me, w.id)
	if err != nil {
		w.t.Fatalf("get: %v", err)
	}
	return th
}

// code checks that a call did what the reference says it must.
func (w *world) code(what string, err error, want ...thole.Code) {
	w.t.Helper()
	if !slices.Contains(want, thole.CodeOf(err)) {
		w.t.Fatalf("%s: %v, want one of %q", what, err, want)
	}
}

func (w *world) tick() { w.clock = w.clock.Add(time.Millisecond) }

func (w *world) start() {
	w.tick()
	ref := w.reference()
	_, err := w.m.StartTurn(bg, me, thread.StartTurn{Thread: w.id, Input: thole.Text(w.next("do "))})
	if ref.open == "" {
		w.code("start", err, "")
	} else {
		w.code("start while busy", err, thole.CodeBusy)
	}
}

// take lets the agent notice the open turn, as a runner would when woken.
func (w *world) take() bool {
	ref := w.reference()
	if ref.open == "" || ref.parked {
		return false
	}
	if w.agent.ref.Turn != ref.open || w.agent.items == nil {
		w.agent = agent{ref: thread.TurnRef{Thread: w.id, Turn: ref.open, Executor: "x"}, items: map[thole.ItemID]string{}}
	}
	return true
}

func (w *world) report(events ...event.Event) {
	w.tick()
	for i := range events {
		if events[i].ID == "" && events[i].Kind != event.ItemDelta {
			events[i].ID = thole.EventID(w.next("event-"))
		}
	}
	before := w.reference()
	err := w.m.Apply(bg, w.agent.ref, events)
	if before.open != w.agent.ref.Turn || before.parked {
		w.code("report about a turn that is not open", err, thole.CodeConflict)
		return
	}
	w.code("report", err, "")
	w.sent = append(w.sent, events...)
}

func (w *world) pick(ids []thole.ItemID) thole.ItemID {
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(w.d, "item")
}

func (w *world) openItems() (ids []thole.ItemID) {
	for id := range w.agent.items {
		ids = append(ids, id)
	}
	return ids
}

// agentStep reports something random.
func (w *world) agentStep() {
	if !w.take() {
		return
	}
	a := &w.agent
	switch rapid.SampledFrom([]string{"start", "delta", "delta", "delta", "complete", "ask", "todo", "usage", "step", "reset", "note", "session", "steered", "resolve"}).Draw(w.d, "report") {
	case "start":
		id := thole.ItemID(w.next("item-"))
		kind := rapid.SampledFrom([]event.ItemKind{event.ItemMessage, event.ItemReasoning, event.ItemCommand}).Draw(w.d, "kind")
		item := event.Item{ID: id, Kind: kind, State: event.StateRunning}
		a.items[id] = ""
		if kind == event.ItemMessage { // several facts in one report
			a.items[id] = "so "
			w.report(event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &item}},
				event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: id, Stream: event.StreamText, Delta: "so "}})
			return
		}
		w.report(event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &item}})
	case "delta":
		if len(a.items) > 0 {
			id := w.pick(w.openItems())
			text := w.next("word ")
			at := int64(len(a.items[id]))
			a.items[id] += text
			if rapid.Bool().Draw(w.d, "overlap") && at > 0 { // sent again, and more
				text, at = a.items[id], 0
			}
			w.report(event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: id, Stream: event.StreamText, Delta: text, Offset: at}})
		}
	case "complete":
		if len(a.items) > 0 {
			id := w.pick(w.openItems())
			w.report(event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: id, Kind: event.ItemMessage, Text: a.items[id]}}})
			delete(a.items, id)
		}
	case "ask":
		id := thole.AskID(w.next("ask-"))
		kind := rapid.SampledFrom([]event.AskKind{event.AskCommand, event.AskInput}).Draw(w.d, "kind")
		ask := event.Ask{ID: id, Kind: kind, Questions: []event.Question{{ID: "q"}}}
		a.asks = append(a.asks, id)
		w.report(event.Event{Kind: event.AskRequested, Data: event.Data{Ask: &ask, AskID: id}})
	case "resolve":
		if len(a.asks) > 0 {
			w.report(event.Event{Kind: event.AskResolved, Data: event.Data{AskID: rapid.SampledFrom(a.asks).Draw(w.d, "ask")}})
		}
	case "todo":
		if rapid.Bool().Draw(w.d, "snapshot") {
			w.report(event.Event{Kind: event.TodoSnapshot, Data: event.Data{Todos: []event.Todo{{ID: "1", Content: w.next("c"), State: event.TodoDoing}, {ID: "2", State: event.TodoPending, Order: 1}}}})
		} else {
			w.report(event.Event{Kind: event.TodoUpdate, Data: event.Data{Todos: []event.Todo{{ID: "2", Content: w.next("c"), State: event.TodoDone, Order: 1}}}})
		}
	case "usage":
		w.report(event.Event{Kind: event.UsageUpdated, Data: event.Data{Usage: &thole.Usage{Input: int64(w.serial), Output: 1}}})
	case "step":
		w.report(event.Event{Kind: event.StepStarted})
	case "reset":
		w.report(event.Event{Kind: event.StepReset})
		// The agent goes on with items of earlier steps only; the reference says which.
		for id := range a.items {
			if !w.reference().items[id].open {
				delete(a.items, id)
			}
		}
	case "note":
		w.report(event.Event{Kind: event.NoteReported, Data: event.Data{Text: w.next("note ")}})
	case "session":
		w.report(event.Event{Kind: event.ThreadUpdated, Data: event.Data{NativeID: w.next("native-")}})
	case "steered":
		w.report(event.Event{Kind: event.SteerTaken, Data: event.Data{Item: &event.Item{ID: "x", Kind: event.ItemUserMessage}}})
	}
}

func (w *world) agentEnds() {
	if !w.take() {
		return
	}
	ended := event.Data{Outcome: rapid.SampledFrom([]thole.Outcome{thole.OutcomeCompleted, thole.OutcomeFailed, thole.OutcomeInterrupted}).Draw(w.d, "outcome")}
	ref := w.reference()
	if len(ref.pending) > 0 && rapid.Bool().Draw(w.d, "defer") {
		ended = event.Data{AskID: ref.pending[0]}
	}
	turn := w.agent.ref.Turn
	w.report(event.Event{Kind: event.TurnEnded, Data: ended})
	w.agent = agent{}
	after := w.reference()
	if ended.AskID == "" && after.outcomes[turn] == "" {
		w.t.Fatalf("turn %s did not end", turn)
	}
	if after.paused && after.open != "" && after.open != turn {
		w.t.Fatalf("turn %s was stopped, and turn %s began by itself", turn, after.open)
	}
}

// repeat reports old facts again, as after a reconnect.
func (w *world) repeat() {
	if len(w.sent) == 0 || w.agent.ref.Turn == "" {
		return
	}
	before := w.reference()
	from := rapid.IntRange(0, len(w.sent)-1).Draw(w.d, "from")
	again := w.sent[from:min(len(w.sent), from+5)]
	again = slices.DeleteFunc(slices.Clone(again), func(e event.Event) bool { return e.Kind == event.ItemDelta })
	err := w.m.Apply(bg, w.agent.ref, again)
	w.code("repeat", err, "", thole.CodeConflict)
	if after := w.reference(); after.seq != before.seq {
		w.t.Fatalf("repeating known events moved the log from %d to %d", before.seq, after.seq)
	}
}

func TestModel(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		rapid.Check(t, func(t *rapid.T) {
			w := &world{t: t, d: t, db: db, clock: time.UnixMilli(1_700_000_000_000).UTC(), answers: map[thole.AskID]event.Answer{}}
			w.machine()
			defer func() {
				for _, c := range w.clients {
					c.finish(false)
				}
				ended, cancel := context.WithCancel(bg)
				cancel()
				_ = w.m.Close(ended)
			}()
			th, err := w.m.Create(bg, me, thread.Create{})
			if err != nil {
				t.Fatal(err)
			}
			w.id = th.ID
			w.keep()
			t.Repeat(map[string]func(*rapid.T){
				"":          func(*rapid.T) { w.check() },
				"start":     func(*rapid.T) { w.start() },
				"agent":     func(*rapid.T) { w.agentStep() },
				"agent2":    func(*rapid.T) { w.agentStep() },
				"agent3":    func(*rapid.T) { w.agentStep() },
				"ends":      func(*rapid.T) { w.agentEnds() },
				"repeat":    func(*rapid.T) { w.repeat() },
				"steer":     func(*rapid.T) { w.steer() },
				"interrupt": func(*rapid.T) { w.interrupt() },
				"answer":    func(*rapid.T) { w.answer() },
				"queue":     func(*rapid.T) { w.queue() },
				"phase":     func(*rapid.T) { w.phase() },
				"later":     func(*rapid.T) { w.later() },
				"crash":     func(*rapid.T) { w.crash() },
				"attach":    func(*rapid.T) { w.attach() },
				"detach":    func(*rapid.T) { w.detach() },
				"read":      func(*rapid.T) { w.read() },
			})
			w.read()
			w.check()
			w.compact()
		})
	})
}

// errEnded marks a subscription that ended as it should.
func endedWell(err error) bool {
	return err == nil || errors.Is(err, thread.ErrSlow) || thole.CodeOf(err) == thole.CodeUnavailable
}

func join(ids []thole.ItemID) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, string(id))
	}
	return strings.Join(parts, " ")
}

// nobody is a runner that does nothing: the test is the agent. Turns it finds
// at start have lost their process.
type nobody struct{}

func (nobody) Wake(thole.ThreadID, thole.TurnID)                                       {}
func (nobody) Steer(context.Context, thread.TurnRef, []thole.Input, string) error      { return nil }
func (nobody) Answer(context.Context, thread.TurnRef, thole.AskID, event.Answer) error { return nil }
func (nobody) Interrupt(context.Context, thread.TurnRef) error                         { return nil }
func (nobody) Recover(context.Context, fold.Thread, fold.Turn) thread.Fate {
	return thread.FateInterrupt
}

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
