package provider

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Emitter gives one turn's events their ids, times and offsets and keeps the
// promises of the port: an item is started before its deltas and completed
// before the end, asks are resolved before the end, the last event is
// EventEnded and there is only one. Drivers use it from one goroutine
// at a time.
type Emitter struct {
	turn thole.TurnID
	emit func(event.Event)
	now  func() time.Time

	open  map[thole.ItemID]*openItem
	order []thole.ItemID // open items, oldest first
	over  map[thole.ItemID]bool
	asks  []pendingAsk
	seq   map[event.Kind]int
	step  int
	in    bool   // inside a step
	again string // sets ids apart that are used again after a reset
	ended bool
	// parked is the ask that the turn ends on, and that outlives its CLI.
	parked thole.AskID

	stopped atomic.Bool // we asked the CLI to stop
}

type pendingAsk struct {
	id   thole.AskID
	item thole.ItemID
}

type openItem struct {
	item    event.Item
	text    []byte // of messages, reasoning and plans so far
	summary []byte
	output  Output
	offsets map[event.Stream]int64
	updates int
	step    int
}

// NewEmitter makes the emitter of one turn.
func NewEmitter(turn thole.TurnID, emit func(event.Event)) *Emitter {
	return &Emitter{turn: turn, emit: emit, now: time.Now,
		open: map[thole.ItemID]*openItem{}, over: map[thole.ItemID]bool{}, seq: map[event.Kind]int{}}
}

// ItemID is the id of the item that the CLI calls native. CLIs promise unique
// ids within a turn only.
func (e *Emitter) ItemID(native string) thole.ItemID {
	return StableID[thole.ItemID]("item", string(e.turn), native)
}

// AskID is the id of the ask that the CLI calls native.
func (e *Emitter) AskID(native string) thole.AskID {
	return StableID[thole.AskID]("ask", string(e.turn), native)
}

// send completes and hands out one event. key makes its id unique within its
// kind; an empty key counts.
func (e *Emitter) send(ev event.Event, key string) {
	if e.ended {
		return
	}
	if key == "" {
		e.seq[ev.Kind]++
		key = "#" + strconv.Itoa(e.seq[ev.Kind])
	}
	ev.ID = StableID[thole.EventID]("event", string(e.turn), string(ev.Kind), key)
	ev.Turn, ev.Time = e.turn, e.now().UTC()
	ev.Item = clone(ev.Item)
	if ev.Kind == event.TurnEnded {
		e.ended = true
	}
	e.emit(ev)
}

// clone copies an item with what it points to: events are facts, and a reader that
// has one reads it while the driver works on.
func clone(item *event.Item) *event.Item {
	if item == nil {
		return nil
	}
	c := *item
	if c.Command != nil {
		cmd := *c.Command
		c.Command = &cmd
	}
	if c.Tool != nil {
		tool := *c.Tool
		c.Tool = &tool
	}
	c.Changes = slices.Clone(c.Changes)
	return &c
}

// Session reports the CLI's own session id.
func (e *Emitter) Session(native string) {
	e.send(event.Event{Kind: event.ThreadUpdated, Data: event.Data{NativeID: native}}, native)
}

// StepStarted begins a model call; a call in progress is ended first.
func (e *Emitter) StepStarted() {
	e.StepEnded()
	e.step++
	e.in = true
	e.send(event.Event{Kind: event.StepStarted}, "")
}

// StepEnded ends the model call in progress, if any.
func (e *Emitter) StepEnded() {
	if e.in {
		e.in = false
		e.send(event.Event{Kind: event.StepEnded}, "")
	}
}

// InStep reports whether a model call is in progress.
func (e *Emitter) InStep() bool { return e.in }

// StepReset drops what the model call in progress has shown: the CLI repeats it.
// Open items of the step are forgotten, not completed.
func (e *Emitter) StepReset() {
	if !e.in {
		return
	}
	for _, id := range append([]thole.ItemID(nil), e.order...) {
		if e.open[id].step == e.step {
			e.forget(id)
		}
	}
	e.send(event.Event{Kind: event.StepReset}, "")
	e.again = "/" + strconv.Itoa(e.seq[event.StepReset])
}

// Start begins an item; a repeat is ignored, also after its completion.
func (e *Emitter) Start(item event.Item) {
	if _, ok := e.open[item.ID]; ok || e.over[item.ID] || e.ended {
		return
	}
	if item.Stamp.Started.IsZero() {
		item.Stamp.Started = e.now().UTC()
	}
	if item.State == "" {
		item.State = event.StateRunning
	}
	o := &openItem{item: item, step: e.step, text: []byte(item.Text), summary: []byte(item.Summary), offsets: map[event.Stream]int64{}}
	o.offsets[event.StreamText], o.offsets[event.StreamSummary] = int64(len(item.Text)), int64(len(item.Summary))
	if item.Command != nil {
		o.output.Write(item.Command.Output)
		o.offsets[event.StreamOutput] = int64(len(item.Command.Output))
	}
	e.open[item.ID] = o
	e.order = append(e.order, item.ID)
	e.send(event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &item, ItemID: item.ID}}, string(item.ID)+e.again)
}

// Opened returns the item as it was last emitted, if it is open.
func (e *Emitter) Opened(id thole.ItemID) (event.Item, bool) {
	if o, ok := e.open[id]; ok {
		return o.item, true
	}
	return event.Item{}, false
}

// Delta extends an open item; a delta for an item that is not open is dropped,
// because its completed form is the authority.
func (e *Emitter) Delta(id thole.ItemID, stream event.Stream, text string) {
	o := e.open[id]
	if o == nil || text == "" || e.ended {
		return
	}
	off := o.offsets[stream]
	o.offsets[stream] += int64(len(text))
	switch stream {
	case event.StreamText:
		o.text = append(o.text, text...)
	case event.StreamSummary:
		o.summary = append(o.summary, text...)
	case event.StreamOutput:
		o.output.Write(text)
	}
	e.send(event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: id, Stream: stream, Delta: text, Offset: off}},
		string(id)+"/"+string(stream)+"/"+strconv.FormatInt(off, 10)+e.again)
}

// Update replaces an open item's known fields.
func (e *Emitter) Update(item event.Item) {
	o := e.open[item.ID]
	if o == nil {
		e.Start(item)
		return
	}
	item.Stamp.Started = o.item.Stamp.Started
	if item.State == "" {
		item.State = event.StateRunning
	}
	o.item = item
	o.updates++
	e.send(event.Event{Kind: event.ItemUpdated, Data: event.Data{Item: &item, ItemID: item.ID}}, string(item.ID)+"/"+strconv.Itoa(o.updates)+e.again)
}

// Complete ends an item, starting it first when nobody did. What the CLI leaves
// empty is filled from the deltas; outputs are bounded.
func (e *Emitter) Complete(item event.Item) {
	o := e.open[item.ID]
	if o == nil {
		started := item
		started.State, started.Text, started.Summary = "", "", ""
		if item.Command != nil {
			c := event.Command{Line: item.Command.Line, Dir: item.Command.Dir}
			started.Command = &c
		}
		e.Start(started)
		if o = e.open[item.ID]; o == nil {
			return
		}
	}
	item.Stamp.Started = o.item.Stamp.Started
	if item.Stamp.Ended.IsZero() {
		item.Stamp.Ended = e.now().UTC()
	}
	if item.State == "" || item.State == event.StateRunning {
		item.State = event.StateCompleted
	}
	if item.Text == "" {
		item.Text = string(o.text)
	}
	if item.Summary == "" {
		item.Summary = string(o.summary)
	}
	if item.Command != nil {
		c := *item.Command
		e.showOutput(o, item.ID, c.Output)
		// A CLI may cap the whole output it repeats; then what streamed is more.
		if int64(len(c.Output)) < o.output.Total() {
			c.Output, c.OutputDropped = o.output.Text()
		} else {
			c.Output, c.OutputDropped = Bound(c.Output)
		}
		item.Command = &c
	}
	e.forget(item.ID)
	e.over[item.ID] = true
	e.send(event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &item, ItemID: item.ID}}, string(item.ID)+e.again)
}

// showOutput emits as deltas what the item of a long output cannot keep and nobody was
// shown: a CLI may report an output only when its command has ended.
func (e *Emitter) showOutput(o *openItem, id thole.ItemID, output string) {
	shown, cut := o.output.Text()
	if len(output) <= OutputLimit || cut > 0 || !strings.HasPrefix(output, shown) {
		return
	}
	for rest := output[len(shown):]; rest != "" && o.output.Total() < maxDeltas; {
		n := min(len(rest), OutputLimit)
		for n < len(rest) && n > OutputLimit-utf8.UTFMax && !utf8.RuneStart(rest[n]) {
			n--
		}
		e.Delta(id, event.StreamOutput, rest[:n])
		rest = rest[n:]
	}
}

// maxDeltas bounds what showOutput emits of one output: threads keep no more.
const maxDeltas = 1 << 20

func (e *Emitter) forget(id thole.ItemID) {
	delete(e.open, id)
	for i, o := range e.order {
		if o == id {
			e.order = append(e.order[:i], e.order[i+1:]...)
			return
		}
	}
}

// Cut completes an open item with what it has so far: the CLI will not.
func (e *Emitter) Cut(id thole.ItemID, state event.ItemState) {
	if o := e.open[id]; o != nil {
		item := o.item
		item.State, item.Text, item.Summary = state, string(o.text), string(o.summary)
		e.Complete(item)
	}
}

// Todos reports the whole list.
func (e *Emitter) Todos(todos []event.Todo) {
	e.send(event.Event{Kind: event.TodoSnapshot, Data: event.Data{Todos: todos}}, "")
}

// Todo reports one entry.
func (e *Emitter) Todo(todo event.Todo) {
	e.send(event.Event{Kind: event.TodoUpdate, Data: event.Data{Todos: []event.Todo{todo}}}, "")
}

// Ask reports a question. What it is about is shown first: nobody approves a command or
// an edit that its item does not show.
func (e *Emitter) Ask(ask event.Ask) {
	if o := e.open[ask.Item]; o != nil {
		item := o.item
		switch {
		case item.Command != nil && item.Command.Line == "" && ask.Command != "":
			c := *item.Command
			c.Line, c.Argv = ask.Command, ask.Argv
			item.Command = &c
			e.Update(item)
		case item.Kind == event.ItemFileChange && len(item.Changes) == 0 && len(ask.Changes) > 0:
			item.Changes = ask.Changes
			e.Update(item)
		}
	}
	e.asks = append(e.asks, pendingAsk{ask.ID, ask.Item})
	e.send(event.Event{Kind: event.AskRequested, Data: event.Data{Ask: &ask, AskID: ask.ID}}, string(ask.ID))
}

// Resolve reports that a pending ask was answered, or cancelled with a nil
// answer; a repeat is ignored.
func (e *Emitter) Resolve(id thole.AskID, answer *event.Answer) {
	if id == e.parked && answer == nil {
		return // the CLI withdraws what it forgets; the ask stays
	}
	for i, a := range e.asks {
		if a.id == id {
			e.asks = append(e.asks[:i], e.asks[i+1:]...)
			e.send(event.Event{Kind: event.AskResolved, Data: event.Data{AskID: id, Answer: answer}}, string(id))
			return
		}
	}
}

// Park has the turn end on an ask that stays open, whatever the CLI makes of the
// end; false when the ask is not pending.
func (e *Emitter) Park(id thole.AskID) bool {
	if !slices.ContainsFunc(e.asks, func(a pendingAsk) bool { return a.id == id }) {
		return false
	}
	e.parked = id
	return true
}

// Parked is the ask of Park, "" without one.
func (e *Emitter) Parked() thole.AskID { return e.parked }

// Usage reports this turn's totals so far.
func (e *Emitter) Usage(u thole.Usage) {
	e.send(event.Event{Kind: event.UsageUpdated, Data: event.Data{Usage: &u}}, "")
}

// Error reports a problem that the turn survives, or that is about to end it.
func (e *Emitter) Error(te thole.TurnError) {
	e.send(event.Event{Kind: event.ErrorReported, Data: event.Data{Error: &te}}, "")
}

// Note reports a warning worth showing.
func (e *Emitter) Note(text string) {
	e.send(event.Event{Kind: event.NoteReported, Data: event.Data{Text: text}}, "")
}

// Limits reports how much of the account's allowances is used.
func (e *Emitter) Limits(l []event.Limit) {
	e.send(event.Event{Kind: event.LimitsUpdated, Data: event.Data{Limits: l}}, "")
}

// Steered reports the user message that the running turn took in.
func (e *Emitter) Steered(item event.Item) {
	e.send(event.Event{Kind: event.SteerTaken, Data: event.Data{Item: &item, ItemID: item.ID}}, string(item.ID))
}

// Interrupt notes that a user asked the turn to stop. It may be called from
// anywhere, before the CLI is asked.
func (e *Emitter) Interrupt() { e.stopped.Store(true) }

// Interrupted reports whether a user asked the turn to stop.
func (e *Emitter) Interrupted() bool { return e.stopped.Load() }

// End ends the turn: open items are cut, pending asks cancelled (except the
// deferred one), then EventEnded. Later calls are ignored.
//
// A turn that was asked to stop and did not complete before that was interrupted,
// whatever the CLI made of it: some report an error, some die.
func (e *Emitter) End(ended Ended) {
	if e.ended {
		return
	}
	if e.Interrupted() {
		e.parked = "" // a stop that came after it
	}
	if e.Interrupted() && ended.Outcome != thole.OutcomeCompleted {
		ended = Ended{Outcome: thole.OutcomeInterrupted}
	}
	state := event.StateFailed
	switch {
	case e.parked != "":
		ended = Ended{Outcome: thole.OutcomeCompleted, Deferred: e.parked}
	case ended.Outcome == thole.OutcomeCompleted:
		state = event.StateCompleted
	}
	for _, a := range e.asks { // what waits for a yes was not done, parked or not
		e.Cut(a.item, event.StateFailed)
	}
	for len(e.order) > 0 {
		e.Cut(e.order[0], state)
	}
	for _, a := range slices.Clone(e.asks) {
		if a.id != ended.Deferred {
			e.Resolve(a.id, nil)
		}
	}
	e.StepEnded()
	e.send(event.Event{Kind: event.TurnEnded, Data: ended.Data()}, "")
}

// Ended reports whether End was called.
func (e *Emitter) Ended() bool { return e.ended }
