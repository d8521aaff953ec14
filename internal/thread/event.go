package thread

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// Kind is the closed set of events. Those marked ephemeral have Seq 0 and are
// never stored.
type Kind string

const (
	ThreadCreated  Kind = "thread.created"
	ThreadUpdated  Kind = "thread.updated" // name, settings, archived
	ThreadDeleted  Kind = "thread.deleted"
	ThreadStatus   Kind = "thread.status" // ephemeral: the derived status changed
	TurnStarted    Kind = "turn.started"
	TurnPhase      Kind = "turn.phase"
	TurnSteered    Kind = "turn.steered"
	SteerRefused   Kind = "turn.steer_refused" // the agent cannot take it; MessageID
	TurnInterrupt  Kind = "turn.interrupt_requested"
	TurnEnded      Kind = "turn.ended"
	StepStarted    Kind = "step.started"
	StepEnded      Kind = "step.ended"
	StepReset      Kind = "step.reset"
	ItemStarted    Kind = "item.started"
	ItemDelta      Kind = "item.delta" // ephemeral
	ItemUpdated    Kind = "item.updated"
	ItemCompleted  Kind = "item.completed"
	TodoSnapshot   Kind = "todo.snapshot"
	TodoUpdate     Kind = "todo.update"
	AskRequested   Kind = "ask.requested"
	AskResolved    Kind = "ask.resolved"
	UsageUpdated   Kind = "usage.updated"
	ErrorReported  Kind = "error.reported"
	NoteReported   Kind = "note.reported"
	QueueAdded     Kind = "queue.added"
	QueueEdited    Kind = "queue.edited"
	QueueRemoved   Kind = "queue.removed"
	QueueReordered Kind = "queue.reordered"
)

// kinds lists every kind once.
var kinds = []Kind{
	ThreadCreated, ThreadUpdated, ThreadDeleted, ThreadStatus,
	TurnStarted, TurnPhase, TurnSteered, SteerRefused, TurnInterrupt, TurnEnded,
	StepStarted, StepEnded, StepReset, ItemStarted, ItemDelta, ItemUpdated, ItemCompleted,
	TodoSnapshot, TodoUpdate, AskRequested, AskResolved, UsageUpdated, ErrorReported, NoteReported,
	QueueAdded, QueueEdited, QueueRemoved, QueueReordered,
}

// Data is an event's payload: the fields its kind needs, the rest zero. Its JSON
// form is durable: fields may be added, never renamed or reused.
type Data struct {
	Created  *Created         `json:"created,omitempty"`
	NativeID string           `json:"native_id,omitempty"`
	Settings *Settings        `json:"settings,omitempty"`
	Name     *string          `json:"name,omitempty"`
	Archived *bool            `json:"archived,omitempty"`
	Status   *Status          `json:"status,omitempty"`
	Input    []thole.Input    `json:"input,omitempty"`
	ClientID string           `json:"client_id,omitempty"`
	Phase    thole.Phase      `json:"phase,omitempty"`
	Outcome  thole.Outcome    `json:"outcome,omitempty"`
	Item     *thole.Item      `json:"item,omitempty"`
	ItemID   thole.ItemID     `json:"item_id,omitempty"`
	Stream   provider.Stream  `json:"stream,omitempty"`
	Delta    string           `json:"delta,omitempty"`
	Offset   int64            `json:"offset,omitempty"`
	Todos    []thole.Todo     `json:"todos,omitempty"`
	Ask      *thole.Ask       `json:"ask,omitempty"`
	AskID    thole.AskID      `json:"ask_id,omitempty"`
	AskState thole.AskState   `json:"ask_state,omitempty"`
	Answer   *thole.Answer    `json:"answer,omitempty"`
	Usage    *thole.Usage     `json:"usage,omitempty"`
	Error    *thole.TurnError `json:"error,omitempty"`
	Text     string           `json:"text,omitempty"`
	Message  *Message         `json:"message,omitempty"`
	// MessageID names the queued message or steer that the event is about.
	MessageID thole.MessageID `json:"message_id,omitempty"`
	// Front puts a queued message first.
	Front bool `json:"front,omitempty"`
	// Idempotency is the caller's key for a turn.
	Idempotency string            `json:"idempotency,omitempty"`
	Order       []thole.MessageID `json:"order,omitempty"`
}

// Created is what a thread is born with.
type Created struct {
	Owner      thole.Owner    `json:"owner"`
	Source     string         `json:"source,omitempty"`
	Client     string         `json:"client,omitempty"`
	Ephemeral  bool           `json:"ephemeral,omitempty"`
	ForkedFrom thole.ThreadID `json:"forked_from,omitempty"`
	Parent     thole.ThreadID `json:"parent,omitempty"`
	Origin     string         `json:"origin,omitempty"`
	// Preview, Turns and Todos come with the history of a fork.
	Preview string       `json:"preview,omitempty"`
	Turns   int          `json:"turns,omitempty"`
	Todos   []thole.Todo `json:"todos,omitempty"`
}
