package provider

import (
	"time"

	thole "github.com/tholehq/thole"
)

// EventKind is the closed set of things a provider reports.
type EventKind string

const (
	EventSession       EventKind = "session"        // NativeID is known
	EventStepStarted   EventKind = "step.started"   // a model call begins
	EventStepEnded     EventKind = "step.ended"     // a model call ended
	EventStepReset     EventKind = "step.reset"     // drop this step's items: the CLI repeats the call
	EventItemStarted   EventKind = "item.started"   // Item, possibly empty so far
	EventItemDelta     EventKind = "item.delta"     // ItemID, Stream, Delta
	EventItemUpdated   EventKind = "item.updated"   // Item as it is now (tool input became known, …)
	EventItemCompleted EventKind = "item.completed" // Item, final
	EventTodoSnapshot  EventKind = "todo.snapshot"  // Todos is the whole list
	EventTodoUpdate    EventKind = "todo.update"    // Todos has one entry
	EventAskRequested  EventKind = "ask.requested"  // Ask
	EventAskResolved   EventKind = "ask.resolved"   // AskID, Answer (nil when cancelled)
	EventUsage         EventKind = "usage"          // Usage of this turn so far
	EventError         EventKind = "error"          // Error; Retrying says whether it goes on
	EventNote          EventKind = "note"           // Text, a warning worth showing
	EventSteered       EventKind = "steered"        // Item: the user message that was taken in
	EventEnded         EventKind = "ended"          // Ended; always last, exactly once
)

// Stream says what a delta extends.
type Stream string

const (
	StreamText    Stream = "text"    // Item.Text of messages, reasoning and plans
	StreamSummary Stream = "summary" // Item.Summary of reasoning
	StreamInput   Stream = "input"   // the JSON text of Item.Tool.Input
	StreamOutput  Stream = "output"  // Item.Command.Output, or a tool's output so far
)

// streams is how many there are.
const streams = 4

func (s Stream) index() int {
	switch s {
	case StreamText:
		return 0
	case StreamSummary:
		return 1
	case StreamInput:
		return 2
	}
	return 3
}

// Event is one fact from a CLI. ID is stable: the same fact read again, in a
// replay of the log or after a reconnect, has the same id, so that whoever
// appends events can drop repeats.
type Event struct {
	ID   thole.EventID `json:"id"`
	Kind EventKind     `json:"kind"`
	Turn thole.TurnID  `json:"turn"`
	Time time.Time     `json:"time"`

	NativeID string        `json:"native_id,omitempty"`
	Item     *thole.Item   `json:"item,omitempty"`
	ItemID   thole.ItemID  `json:"item_id,omitempty"`
	Stream   Stream        `json:"stream,omitempty"`
	Delta    string        `json:"delta,omitempty"`
	Offset   int64         `json:"offset,omitempty"` // bytes of this stream before Delta
	Todos    []thole.Todo  `json:"todos,omitempty"`
	Ask      *thole.Ask    `json:"ask,omitempty"`
	AskID    thole.AskID   `json:"ask_id,omitempty"`
	Answer   *thole.Answer `json:"answer,omitempty"`
	// Receipt is what came with the answer to executord: the event that recorded it.
	// An answer without one was not given by a dispatcher.
	Receipt thole.EventID    `json:"receipt,omitempty"`
	Usage   *thole.Usage     `json:"usage,omitempty"`
	Error   *thole.TurnError `json:"error,omitempty"`
	Text    string           `json:"text,omitempty"`
	Ended   *Ended           `json:"ended,omitempty"`
}

// Ended is how a turn ended.
type Ended struct {
	Outcome thole.Outcome    `json:"outcome"`
	Error   *thole.TurnError `json:"error,omitempty"`
	// Deferred is the ask that was parked on disk: the turn waits for a human and
	// goes on with a Turn.Reply, in this process or another.
	Deferred thole.AskID `json:"deferred,omitempty"`
}
