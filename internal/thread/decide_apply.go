package thread

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// report folds what the agent's provider reported into the open turn. skip are
// events known to be in the log. What the log's state shows to be a repeat is
// dropped too: a provider may tell a fact again after a reconnect.
func (w *writer) report(events []event.Event, skip map[thole.EventID]bool) error {
	turn := w.s.openID()
	if fold.SlotOf(w.s.open) == fold.Parked {
		return thole.Errorf(thole.CodeConflict, "turn %s is parked on ask %s", turn, w.s.open.Deferred)
	}
	seen := map[thole.EventID]bool{}
	for _, e := range events {
		if w.s.openID() != turn || w.err != nil {
			break // the provider's end is its last word
		}
		if e.Kind == event.ItemDelta {
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
		if fold.SlotOf(w.s.open) == fold.Queued {
			w.add(event.TurnPhase, turn, event.Data{Phase: thole.PhaseRunning})
		}
		w.fact(turn, e)
	}
	return w.err
}

// moot reports whether a fact says nothing that the state does not know.
func (w *writer) moot(e event.Event) bool {
	switch e.Kind {
	case event.ThreadUpdated:
		return e.NativeID == ""
	case event.ItemStarted, event.ItemUpdated, event.ItemCompleted:
		if e.Item == nil || e.Item.Kind == event.ItemUserMessage { // the user's messages are ours to tell
			return true
		}
		i := w.s.item(e.Item.ID)
		return i >= 0 && (!w.s.items[i].Open || e.Kind == event.ItemStarted)
	case event.AskRequested:
		return e.Ask == nil || w.s.asked(e.Ask.ID)
	case event.AskResolved:
		_, pending := w.s.ask(e.AskID)
		return !pending
	case event.UsageUpdated:
		return e.Usage == nil
	case event.ErrorReported:
		return e.Error == nil
	}
	return false
}

// delta tells subscribers of text that grew. It is not stored as an event.
func (w *writer) delta(turn thole.TurnID, e event.Event) {
	i := w.s.item(e.ItemID)
	if i < 0 || !w.s.items[i].Open || e.Delta == "" {
		return
	}
	k := flightKey{e.ItemID, e.Stream}
	text, at, ok := w.flights.take(k, own(w.s.items[i].Item, e.Stream), e.Offset, e.Delta)
	if !ok {
		return
	}
	w.outs = append(w.outs, event.Event{
		Thread: w.s.row.Thread.ID, Turn: turn, Time: w.now, Kind: event.ItemDelta, Executor: w.executor, Actor: w.actor,
		Data: event.Data{ItemID: e.ItemID, Stream: e.Stream, Delta: text, Offset: at},
	})
}

func (w *writer) fact(turn thole.TurnID, e event.Event) {
	put := func(k event.Kind, d event.Data) {
		w.append(event.Event{ID: e.ID, Kind: k, Turn: turn, Actor: w.actor, Data: d})
	}
	switch e.Kind {
	case event.ThreadUpdated:
		// Stored also when nothing changes: a report that left no trace could be
		// repeated later and count then.
		w.append(event.Event{ID: e.ID, Kind: event.ThreadUpdated, Actor: w.actor, Data: event.Data{NativeID: e.NativeID}})
	case event.StepStarted:
		put(event.StepStarted, event.Data{})
	case event.StepEnded:
		put(event.StepEnded, event.Data{})
	case event.StepReset:
		for _, r := range w.s.items {
			if r.Seq > w.s.row.Step && r.Item.Kind != event.ItemUserMessage {
				w.flights.gone = append(w.flights.gone, r.Item.ID)
			}
		}
		put(event.StepReset, event.Data{})
	case event.ItemStarted, event.ItemUpdated, event.ItemCompleted:
		w.item(e, put)
	case event.TodoSnapshot:
		put(event.TodoSnapshot, event.Data{Todos: e.Todos})
	case event.TodoUpdate:
		put(event.TodoUpdate, event.Data{Todos: e.Todos})
	case event.AskRequested:
		w.request(e.ID, *e.Ask)
	case event.AskResolved:
		st := event.AskAnswered
		if e.Answer == nil {
			st = event.AskCanceled
		}
		put(event.AskResolved, event.Data{AskID: e.AskID, AskState: st, Answer: e.Answer})
	case event.UsageUpdated:
		put(event.UsageUpdated, event.Data{Usage: e.Usage})
	case event.ErrorReported:
		put(event.ErrorReported, event.Data{Error: e.Error})
	case event.NoteReported:
		put(event.NoteReported, event.Data{Text: e.Text})
	case event.SteerTaken:
		w.steered(turn, e)
	case event.TurnEnded:
		w.ended(turn, e)
	default:
		put(event.NoteReported, event.Data{Text: "the agent reported something this version does not know: " + string(e.Kind)})
	}
}

func (w *writer) item(e event.Event, put func(event.Kind, event.Data)) {
	item := *e.Item
	item.Tool = soundTool(item.Tool)
	i := w.s.item(item.ID)
	switch {
	case e.Kind == event.ItemCompleted:
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
		put(event.ItemCompleted, event.Data{Item: &item})
	case i < 0:
		if item.Stamp.Started.IsZero() {
			item.Stamp.Started = w.now
		}
		put(event.ItemStarted, event.Data{Item: &item})
	case e.Kind == event.ItemUpdated:
		put(event.ItemUpdated, event.Data{Item: &item})
	}
}

// steered records that the agent took in a message: the waiting one with the
// same client id, else the oldest.
func (w *writer) steered(turn thole.TurnID, e event.Event) {
	waiting := w.s.open.Steers
	if len(waiting) == 0 {
		w.append(event.Event{ID: e.ID, Kind: event.NoteReported, Turn: turn, Actor: w.actor, Data: event.Data{Text: "the agent took in a message that nobody here gave it"}})
		return
	}
	i := 0
	if e.Item != nil && e.Item.ClientID != "" {
		i = max(0, slices.IndexFunc(waiting, func(m event.Message) bool { return m.ClientID == e.Item.ClientID }))
	}
	m := waiting[i]
	item := event.Item{
		ID: thole.ItemID(m.ID), Kind: event.ItemUserMessage, State: event.StateCompleted,
		Content: m.Input, ClientID: m.ClientID, Stamp: thole.Stamp{Started: w.now, Ended: w.now},
	}
	w.append(event.Event{ID: e.ID, Kind: event.ItemCompleted, Turn: turn, Actor: m.Actor, Data: event.Data{Item: &item, MessageID: m.ID}})
}

// ended takes the provider's last word. A turn parked on an ask is not over.
func (w *writer) ended(turn thole.TurnID, e event.Event) {
	if e.Ended == nil {
		e.Ended = &provider.Ended{Outcome: thole.OutcomeFailed, Error: &thole.TurnError{
			Code: thole.ErrProviderCrashed, Message: "the agent ended without saying how",
		}}
	}
	if ask := e.Ended.Deferred; ask != "" && !w.s.open.Interrupted {
		for _, a := range w.s.asks {
			if a.Ask.ID != ask {
				w.resolve(a.Ask.ID, event.AskCanceled, nil)
			}
		}
		if _, pending := w.s.ask(ask); pending {
			w.append(event.Event{ID: e.ID, Kind: event.TurnPhase, Turn: turn, Actor: w.actor, Data: event.Data{Phase: thole.PhaseWaitingHuman, AskID: ask}})
			return
		}
		w.append(event.Event{ID: e.ID, Kind: event.TurnPhase, Turn: turn, Actor: w.actor, Data: event.Data{Phase: thole.PhaseQueued, AskID: ask}})
		w.call(func(r Runner) { r.Wake(w.s.row.Thread.ID, turn) })
		return
	}
	o := e.Ended.Outcome
	switch o {
	case thole.OutcomeCompleted, thole.OutcomeFailed, thole.OutcomeInterrupted:
	default: // "replaced" is derived, never stored
		o = thole.OutcomeInterrupted
	}
	w.endID = e.ID
	w.endTurn(o, e.Ended.Error)
}
