package thread

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// report folds what the agent's provider reported into the open turn. skip are
// events known to be in the log. What the log's state shows to be a repeat is
// dropped too: a provider may report a fact again after a reconnect.
func (w *writer) report(events []event.Event, skip map[thole.EventID]bool) error {
	turn := w.s.OpenID()
	if fold.SlotOf(w.s.Open) == fold.Parked {
		return thole.Errorf(thole.CodeConflict, "turn %s is parked on ask %s", turn, w.s.Open.Deferred)
	}
	seen := map[thole.EventID]bool{}
	for _, e := range events {
		if w.s.OpenID() != turn || w.err != nil || fold.SlotOf(w.s.Open) == fold.Parked {
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
		if fold.SlotOf(w.s.Open) == fold.Queued {
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
		if e.Item == nil || e.Item.Kind == event.ItemUserMessage { // the user's messages are ours to record
			return true
		}
		i := w.s.Item(e.Item.ID)
		return i >= 0 && (!w.s.Items[i].Open || e.Kind == event.ItemStarted)
	case event.AskRequested:
		return e.Ask == nil || w.s.Asked(e.Ask.ID)
	case event.AskResolved:
		r, known := w.s.AnyAsk(e.AskID)
		return !known || r.State != event.AskPending && !w.usurped(r, e)
	case event.UsageUpdated:
		return e.Usage == nil
	case event.NetworkUpdated:
		return len(e.Network) == 0
	case event.ErrorReported:
		return e.Error == nil
	}
	return false
}

// delta sends subscribers text that grew. It is not stored as an event.
func (w *writer) delta(turn thole.TurnID, e event.Event) {
	i := w.s.Item(e.ItemID)
	if i < 0 || !w.s.Items[i].Open || e.Delta == "" {
		return
	}
	k := flightKey{e.ItemID, e.Stream}
	text, at, ok := w.flights.take(k, own(w.s.Items[i].Item, e.Stream), e.Offset, e.Delta)
	if !ok {
		return
	}
	w.outs = append(w.outs, event.Event{
		Thread: w.s.Row.Thread.ID, Turn: turn, Time: w.now, Kind: event.ItemDelta, Executor: w.executor, Actor: w.actor,
		Data: event.Data{ItemID: e.ItemID, Stream: e.Stream, Delta: text, Offset: at},
	})
}

// fact records one reported event. Only what a kind's payload may say is taken over:
// an executor is not trusted with the rest.
func (w *writer) fact(turn thole.TurnID, e event.Event) {
	put := func(d event.Data) {
		w.append(event.Event{ID: e.ID, Kind: e.Kind, Turn: turn, Actor: w.actor, Data: d})
	}
	switch e.Kind {
	case event.ThreadUpdated:
		// Stored also when nothing changes: a report that left no trace could be
		// repeated later and count then.
		w.append(event.Event{ID: e.ID, Kind: e.Kind, Actor: w.actor, Data: event.Data{NativeID: e.NativeID}})
	case event.StepStarted, event.StepEnded:
		put(event.Data{})
	case event.StepReset:
		for _, r := range w.s.Items {
			if r.Seq > w.s.Row.Step && r.Item.Kind != event.ItemUserMessage {
				w.flights.gone = append(w.flights.gone, r.Item.ID)
			}
		}
		put(event.Data{})
	case event.ItemStarted, event.ItemUpdated, event.ItemCompleted:
		w.item(turn, e)
		w.unasked(*e.Item)
	case event.TodoSnapshot, event.TodoUpdate:
		put(event.Data{Todos: e.Todos})
	case event.AskRequested:
		w.request(e.ID, *e.Ask)
	case event.AskResolved:
		if r, _ := w.s.AnyAsk(e.AskID); w.usurped(r, e) {
			w.selfAnswered(e.ID, r, e.Answer)
			return
		}
		put(event.Data{AskID: e.AskID, AskState: event.AskCanceled})
	case event.UsageUpdated:
		put(event.Data{Usage: e.Usage})
	case event.NetworkUpdated:
		put(event.Data{Network: event.BoundTraffic(e.Network)})
	case event.ErrorReported:
		put(event.Data{Error: e.Error})
	case event.NoteReported:
		put(event.Data{Text: e.Text})
	case event.LimitsUpdated:
		put(event.Data{Limits: e.Limits})
	case event.SteerTaken:
		w.steered(turn, e)
	case event.TurnEnded:
		w.ended(turn, e)
	default:
		w.append(event.Event{ID: e.ID, Kind: event.NoteReported, Turn: turn, Actor: w.actor, Data: event.Data{
			Text: "the agent reported something this version does not know: " + string(e.Kind)}})
	}
}

func (w *writer) item(turn thole.TurnID, e event.Event) {
	item := *e.Item
	item.Tool = soundTool(item.Tool)
	i := w.s.Item(item.ID)
	kind := e.Kind
	switch {
	case kind == event.ItemCompleted:
		if i >= 0 {
			w.keepOutput(turn, item)
			item = w.flights.fill(item)
		}
		if item.Stamp.Started.IsZero() && i >= 0 {
			item.Stamp.Started = w.s.Items[i].Item.Stamp.Started
		}
		if item.Stamp.Ended.IsZero() {
			item.Stamp.Ended = w.now
		}
		w.flights.gone = append(w.flights.gone, item.ID)
	case i < 0: // also an update whose start was not reported
		kind = event.ItemStarted
		if item.Stamp.Started.IsZero() {
			item.Stamp.Started = w.now
		}
	}
	w.append(event.Event{ID: e.ID, Kind: kind, Turn: turn, Actor: w.actor, Data: event.Data{Item: &item}})
}

// steered records that the agent took in a message: the waiting one with the
// same client id, else the oldest.
func (w *writer) steered(turn thole.TurnID, e event.Event) {
	waiting := w.s.Open.Steers
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
	if ask := e.AskID; ask != "" && !w.s.Open.Interrupted {
		for _, a := range w.s.Asks {
			if a.Ask.ID != ask {
				w.resolve(a.Ask.ID, event.AskCanceled, nil)
			}
		}
		if _, pending := w.s.Ask(ask); pending {
			w.append(event.Event{ID: e.ID, Kind: event.TurnPhase, Turn: turn, Actor: w.actor, Data: event.Data{Phase: thole.PhaseWaitingHuman, AskID: ask}})
			return
		}
		w.append(event.Event{ID: e.ID, Kind: event.TurnPhase, Turn: turn, Actor: w.actor, Data: event.Data{Phase: thole.PhaseQueued, AskID: ask}})
		w.call(func(r Runner) { r.Wake(w.s.Row.Thread.ID, turn) })
		return
	}
	o, te := e.Outcome, e.Error
	if usurped(w.s) { // it may have finished before it heard that it must stop
		o = thole.OutcomeInterrupted
	}
	switch o {
	case thole.OutcomeCompleted, thole.OutcomeFailed, thole.OutcomeInterrupted:
	case "":
		o, te = thole.OutcomeFailed, &thole.TurnError{Code: thole.ErrProviderCrashed, Message: "the agent ended without saying how"}
	default: // "replaced" is derived, never stored
		o = thole.OutcomeInterrupted
	}
	w.endID = e.ID
	w.endTurn(o, te)
}
