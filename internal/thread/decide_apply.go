package thread

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// report folds what the agent's provider reported into the open turn. skip are
// events known to be in the log. What the log's state shows to be a repeat is
// dropped too: a provider may tell a fact again after a reconnect.
func (w *writer) report(events []provider.Event, skip map[thole.EventID]bool) error {
	turn := w.s.openID()
	if slotOf(w.s.open) == slotParked {
		return thole.Errorf(thole.CodeConflict, "turn %s is parked on ask %s", turn, w.s.open.Deferred)
	}
	seen := map[thole.EventID]bool{}
	for _, e := range events {
		if w.s.openID() != turn || w.err != nil {
			break // the provider's end is its last word
		}
		if e.Kind == provider.EventItemDelta {
			w.delta(turn, e)
			continue
		}
		if e.ID != "" && (skip[e.ID] || seen[e.ID]) {
			continue
		}
		seen[e.ID] = true
		if w.moot(e) {
			continue
		}
		if slotOf(w.s.open) == slotQueued {
			w.add(TurnPhase, turn, Data{Phase: thole.PhaseRunning})
		}
		w.fact(turn, e)
	}
	return w.err
}

// moot reports whether a fact says nothing that the state does not know.
func (w *writer) moot(e provider.Event) bool {
	switch e.Kind {
	case provider.EventSession:
		return e.NativeID == ""
	case provider.EventItemStarted, provider.EventItemUpdated, provider.EventItemCompleted:
		if e.Item == nil || e.Item.Kind == thole.ItemUserMessage { // the user's messages are ours to tell
			return true
		}
		i := w.s.item(e.Item.ID)
		return i >= 0 && (!w.s.items[i].Open || e.Kind == provider.EventItemStarted)
	case provider.EventAskRequested:
		return e.Ask == nil || w.s.asked(e.Ask.ID)
	case provider.EventAskResolved:
		r, known := w.s.anyAsk(e.AskID)
		return !known || r.State != thole.AskPending && !w.usurped(r, e)
	case provider.EventUsage:
		return e.Usage == nil
	case provider.EventError:
		return e.Error == nil
	}
	return false
}

// delta tells subscribers of text that grew. It is not stored as an event.
func (w *writer) delta(turn thole.TurnID, e provider.Event) {
	i := w.s.item(e.ItemID)
	if i < 0 || !w.s.items[i].Open || e.Delta == "" {
		return
	}
	k := flightKey{e.ItemID, e.Stream}
	text, at, ok := w.flights.take(k, own(w.s.items[i].Item, e.Stream), e.Offset, e.Delta)
	if !ok {
		return
	}
	w.outs = append(w.outs, Event{
		Thread: w.s.row.Thread.ID, Turn: turn, Time: w.now, Kind: ItemDelta, Executor: w.executor, Actor: w.actor,
		Data: Data{ItemID: e.ItemID, Stream: e.Stream, Delta: text, Offset: at},
	})
}

func (w *writer) fact(turn thole.TurnID, e provider.Event) {
	put := func(k Kind, d Data) {
		w.append(Event{ID: e.ID, Kind: k, Turn: turn, Actor: w.actor, Data: d})
	}
	switch e.Kind {
	case provider.EventSession:
		// Stored also when nothing changes: a report that left no trace could be
		// repeated later and count then.
		w.append(Event{ID: e.ID, Kind: ThreadUpdated, Actor: w.actor, Data: Data{NativeID: e.NativeID}})
	case provider.EventStepStarted:
		put(StepStarted, Data{})
	case provider.EventStepEnded:
		put(StepEnded, Data{})
	case provider.EventStepReset:
		for _, r := range w.s.items {
			if r.Seq > w.s.row.Step && r.Item.Kind != thole.ItemUserMessage {
				w.flights.gone = append(w.flights.gone, r.Item.ID)
			}
		}
		put(StepReset, Data{})
	case provider.EventItemStarted, provider.EventItemUpdated, provider.EventItemCompleted:
		w.item(e, put)
		w.unasked(*e.Item)
	case provider.EventTodoSnapshot:
		put(TodoSnapshot, Data{Todos: e.Todos})
	case provider.EventTodoUpdate:
		put(TodoUpdate, Data{Todos: e.Todos})
	case provider.EventAskRequested:
		w.request(e.ID, *e.Ask)
	case provider.EventAskResolved:
		if r, _ := w.s.anyAsk(e.AskID); w.usurped(r, e) {
			w.selfAnswered(e.ID, r, e.Answer)
			return
		}
		put(AskResolved, Data{AskID: e.AskID, AskState: thole.AskCanceled})
	case provider.EventUsage:
		put(UsageUpdated, Data{Usage: e.Usage})
	case provider.EventError:
		put(ErrorReported, Data{Error: e.Error})
	case provider.EventNote:
		put(NoteReported, Data{Text: e.Text})
	case provider.EventSteered:
		w.steered(turn, e)
	case provider.EventEnded:
		w.ended(turn, e)
	default:
		put(NoteReported, Data{Text: "the agent reported something this version does not know: " + string(e.Kind)})
	}
}

func (w *writer) item(e provider.Event, put func(Kind, Data)) {
	item := *e.Item
	item.Tool = soundTool(item.Tool)
	i := w.s.item(item.ID)
	switch {
	case e.Kind == provider.EventItemCompleted:
		if i >= 0 {
			item = w.flights.fill(item)
		}
		if item.Stamp.Started.IsZero() && i >= 0 {
			item.Stamp.Started = w.s.items[i].Item.Stamp.Started
		}
		if item.Stamp.Ended.IsZero() {
			item.Stamp.Ended = w.now
		}
		w.flights.gone = append(w.flights.gone, item.ID)
		put(ItemCompleted, Data{Item: &item})
	case i < 0:
		if item.Stamp.Started.IsZero() {
			item.Stamp.Started = w.now
		}
		put(ItemStarted, Data{Item: &item})
	case e.Kind == provider.EventItemUpdated:
		put(ItemUpdated, Data{Item: &item})
	}
}

// steered records that the agent took in a message: the waiting one with the
// same client id, else the oldest.
func (w *writer) steered(turn thole.TurnID, e provider.Event) {
	waiting := w.s.open.Steers
	if len(waiting) == 0 {
		w.append(Event{ID: e.ID, Kind: NoteReported, Turn: turn, Actor: w.actor, Data: Data{Text: "the agent took in a message that nobody here gave it"}})
		return
	}
	i := 0
	if e.Item != nil && e.Item.ClientID != "" {
		i = max(0, slices.IndexFunc(waiting, func(m Message) bool { return m.ClientID == e.Item.ClientID }))
	}
	m := waiting[i]
	item := thole.Item{
		ID: thole.ItemID(m.ID), Kind: thole.ItemUserMessage, State: thole.ItemCompleted,
		Content: m.Input, ClientID: m.ClientID, Stamp: thole.Stamp{Started: w.now, Ended: w.now},
	}
	w.append(Event{ID: e.ID, Kind: ItemCompleted, Turn: turn, Actor: m.Actor, Data: Data{Item: &item, MessageID: m.ID}})
}

// ended takes the provider's last word. A turn parked on an ask is not over.
func (w *writer) ended(turn thole.TurnID, e provider.Event) {
	if e.Ended == nil {
		e.Ended = &provider.Ended{Outcome: thole.OutcomeFailed, Error: &thole.TurnError{
			Code: thole.ErrProviderCrashed, Message: "the agent ended without saying how",
		}}
	}
	if ask := e.Ended.Deferred; ask != "" && !w.s.open.Interrupted {
		for _, a := range w.s.asks {
			if a.Ask.ID != ask {
				w.resolve(a.Ask.ID, thole.AskCanceled, nil)
			}
		}
		if _, pending := w.s.ask(ask); pending {
			w.append(Event{ID: e.ID, Kind: TurnPhase, Turn: turn, Actor: w.actor, Data: Data{Phase: thole.PhaseWaitingHuman, AskID: ask}})
			return
		}
		w.append(Event{ID: e.ID, Kind: TurnPhase, Turn: turn, Actor: w.actor, Data: Data{Phase: thole.PhaseQueued, AskID: ask}})
		w.call(func(r Runner) { r.Wake(w.s.row.Thread.ID, turn) })
		return
	}
	o := e.Ended.Outcome
	if w.s.usurped() { // it may have finished before it heard that it must stop
		o = thole.OutcomeInterrupted
	}
	switch o {
	case thole.OutcomeCompleted, thole.OutcomeFailed, thole.OutcomeInterrupted:
	default: // "replaced" is derived, never stored
		o = thole.OutcomeInterrupted
	}
	w.endID = e.ID
	w.endTurn(o, e.Ended.Error)
}
