package thread_test

import (
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/thread"
)

// reference is a second, naive fold of the whole log, against which rows,
// statuses and clients are checked.
type reference struct {
	seq      uint64
	ids      []thole.EventID // by sequence number - 1
	events   []event.Event
	open     thole.TurnID
	began    bool // the open turn's agent has begun
	parked   bool
	outcomes map[thole.TurnID]thole.Outcome
	last     thole.Outcome
	asked    []thole.AskID
	pending  []thole.AskID
	settled  map[thole.AskID]int
	inputs   map[thole.AskID]bool // asks that need data, not permission
	items    map[thole.ItemID]refItem
	order    []thole.ItemID
	step     uint64
	todos    map[thole.TodoID]string
	queue    []thole.MessageID
	usage    int64
	turnUse  int64

	command  bool                     // the open turn is one
	commands map[thole.MessageID]bool // by queued message
	stopped  bool                     // a client interrupted the open turn
	paused   bool                     // a user's stop holds the queue
	draining bool                     // a turn has just ended, and the queue must go on
	broken   string                   // a rule that the log itself breaks
}

type refItem struct {
	open bool
	seq  uint64
	text string
	user bool
}

func (w *world) reference() *reference {
	r := &reference{
		outcomes: map[thole.TurnID]thole.Outcome{}, settled: map[thole.AskID]int{}, inputs: map[thole.AskID]bool{},
		items: map[thole.ItemID]refItem{}, todos: map[thole.TodoID]string{}, commands: map[thole.MessageID]bool{},
	}
	for {
		page, err := w.m.Events(bg, me, w.id, r.seq, 500)
		if err != nil {
			w.t.Fatalf("events: %v", err)
		}
		for _, e := range page {
			if e.Seq != r.seq+1 {
				w.t.Fatalf("the log has %d behind %d", e.Seq, r.seq)
			}
			r.seq = e.Seq
			r.fold(e)
		}
		if len(page) < 500 {
			r.drained(event.Event{})
			if r.broken != "" {
				w.t.Fatalf("%s", r.broken)
			}
			return r
		}
	}
}

func (r *reference) fold(e event.Event) {
	r.events = append(r.events, e)
	r.ids = append(r.ids, e.ID)
	d := e.Data
	drop := func(ids []thole.MessageID, id thole.MessageID) []thole.MessageID {
		return slices.DeleteFunc(slices.Clone(ids), func(m thole.MessageID) bool { return m == id })
	}
	r.drained(e)
	switch e.Kind {
	case event.TurnStarted:
		r.open, r.began, r.parked, r.step, r.turnUse = e.Turn, false, false, e.Seq, 0
		command, _ := thole.TurnCommandOf(d.Input)
		r.command, r.stopped = command != "", false
	case event.TurnInterrupt:
		r.stopped = true
	case event.TurnPhase:
		if e.Turn == r.open {
			r.began = d.Phase != thole.PhaseQueued
			r.parked = d.Phase == thole.PhaseWaitingHuman && d.AskID != ""
		}
	case event.TurnEnded:
		r.outcomes[e.Turn], r.open, r.parked = d.Outcome, "", false
		if !r.command || !r.paused {
			r.last, r.paused = d.Outcome, r.stopped && d.Outcome == thole.OutcomeInterrupted
		}
		r.draining = !r.paused
		r.usage += r.turnUse
	case event.UsageUpdated:
		r.turnUse = d.Usage.Input
	case event.StepStarted:
		r.step = e.Seq
	case event.StepReset:
		for id, it := range r.items {
			if it.seq > r.step && !it.user {
				delete(r.items, id)
				r.order = slices.DeleteFunc(r.order, func(o thole.ItemID) bool { return o == id })
			}
		}
	case event.ItemStarted, event.ItemUpdated, event.ItemCompleted:
		it, known := r.items[d.Item.ID]
		if !known {
			it.seq = e.Seq
			r.order = append(r.order, d.Item.ID)
		}
		it.open, it.text, it.user = e.Kind != event.ItemCompleted, d.Item.Text, d.Item.Kind == event.ItemUserMessage
		r.items[d.Item.ID] = it
	case event.AskRequested:
		r.asked = append(r.asked, d.Ask.ID)
		r.pending = append(slices.Clone(r.pending), d.Ask.ID)
		r.inputs[d.Ask.ID] = d.Ask.Kind == event.AskInput
		r.began = true
	case event.AskResolved:
		r.settled[d.AskID]++
		r.pending = slices.DeleteFunc(slices.Clone(r.pending), func(a thole.AskID) bool { return a == d.AskID })
		if r.parked && d.AskState == event.AskAnswered {
			r.parked, r.began = false, false
		}
	case event.TodoSnapshot:
		r.todos = map[thole.TodoID]string{}
		fallthrough
	case event.TodoUpdate:
		for _, t := range d.Todos {
			r.todos[t.ID] = t.Content + "/" + string(t.State)
		}
	case event.QueueAdded:
		command, _ := thole.TurnCommandOf(d.Message.Input)
		r.commands[d.Message.ID] = command != ""
		if d.Front {
			r.queue = append([]thole.MessageID{d.Message.ID}, r.queue...)
		} else {
			r.queue = append(slices.Clone(r.queue), d.Message.ID)
		}
	case event.QueueRemoved:
		r.queue = drop(r.queue, d.MessageID)
	case event.QueueReordered:
		r.queue = d.Order
	}
}

// drained checks what follows a turn's end: what the agent did not take in goes
// to the head of the queue, and then the head starts.
func (r *reference) drained(e event.Event) {
	if !r.draining || e.Kind == event.QueueAdded && e.Data.Front {
		return
	}
	r.draining = false
	if len(r.queue) > 0 && (e.Kind != event.QueueRemoved || e.Data.MessageID != r.queue[0]) {
		r.broken = "a turn ended, messages wait, and then came " + string(e.Kind)
	}
}

func (r *reference) status(loaded bool) event.Status {
	st := event.Status{Loaded: loaded || r.open != "", Active: r.open != "", SystemError: r.open == "" && r.last == thole.OutcomeFailed}
	for _, a := range r.pending {
		if r.inputs[a] {
			st.WaitingOnInput = true
		} else {
			st.WaitingOnApproval = true
		}
	}
	return st
}

// check compares everything that can be read with the fold of the log.
func (w *world) check() {
	r := w.reference()
	th := w.thread()
	if want := r.status(th.Status.Loaded); th.Status != want {
		w.t.Fatalf("status %+v, the log says %+v", th.Status, want)
	}
	if th.Seq != r.seq || th.Open != r.open || th.Usage.Input != r.usage {
		w.t.Fatalf("thread at %d open %q usage %d; log at %d open %q usage %d", th.Seq, th.Open, th.Usage.Input, r.seq, r.open, r.usage)
	}
	for a, n := range r.settled {
		if n != 1 {
			w.t.Fatalf("ask %s was settled %d times", a, n)
		}
	}
	w.checkAsks(r)
	w.checkItems(r)
	todos, err := w.m.Todos(bg, me, w.id)
	if err != nil || len(todos) != len(r.todos) {
		w.t.Fatalf("todos %v (%v), the log says %v", todos, err, r.todos)
	}
	for _, t := range todos {
		if r.todos[t.ID] != t.Content+"/"+string(t.State) {
			w.t.Fatalf("todo %+v, the log says %q", t, r.todos[t.ID])
		}
	}
	queue, err := w.m.Queue(bg, me, w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []thole.MessageID
	for _, m := range queue {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, r.queue) {
		w.t.Fatalf("queue %v, the log says %v", ids, r.queue)
	}
	turns, err := w.m.Turns(bg, me, w.id, all)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, t := range turns.Items {
		if t.Outcome != r.outcomes[t.ID] || t.Number != i+1 {
			w.t.Fatalf("turn %d %s is %q, the log says %q", t.Number, t.ID, t.Outcome, r.outcomes[t.ID])
		}
	}
}

func (w *world) checkAsks(r *reference) {
	asks, err := w.m.Asks(bg, me, w.id, false)
	if err != nil || len(asks) != len(r.asked) {
		w.t.Fatalf("%d asks (%v), the log has %d", len(asks), err, len(r.asked))
	}
	for _, a := range asks {
		if pending := slices.Contains(r.pending, a.Ask.ID); pending != (a.State == event.AskPending) {
			w.t.Fatalf("ask %s is %s, the log says pending: %v", a.Ask.ID, a.State, pending)
		}
		if given, ok := w.answers[a.Ask.ID]; ok && (a.Answer == nil || a.Answer.Decision != given.Decision) {
			w.t.Fatalf("ask %s was acknowledged with %q and holds %+v", a.Ask.ID, given.Decision, a.Answer)
		}
	}
}

func (w *world) checkItems(r *reference) {
	var got []thole.ItemID
	p := thread.PageParams{Limit: 7}
	for {
		page, err := w.m.Items(bg, me, w.id, "", p)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, it := range page.Items {
			got = append(got, it.Item.ID)
			want := r.items[it.Item.ID]
			if it.Open != want.open || !it.Open && it.Item.Text != want.text || it.Seq != want.seq {
				w.t.Fatalf("item %+v, the log says %+v", it, want)
			}
			if it.Open && !strings.HasPrefix(w.agent.items[it.Item.ID], it.Item.Text) && w.agent.items[it.Item.ID] != "" {
				w.t.Fatalf("item %s shows %q, the agent said %q", it.Item.ID, it.Item.Text, w.agent.items[it.Item.ID])
			}
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
	}
	if !slices.Equal(got, r.order) {
		w.t.Fatalf("items %s, the log says %s", join(got), join(r.order))
	}
}
