// Package event is the one model of what happens in a thread: the kinds of events,
// the event with its payload, and the nouns inside it (item, ask, todo, queued
// message). Providers emit events, executord keeps them, the thread machine decides
// about them, commits them and publishes them; every edge encodes them.
//
// The JSON form is durable: fields may be added, never renamed or reused, and a
// reader ignores fields it does not know. Package event decides nothing and keeps
// no state; package fold does.
package event

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
)

// Event is an immutable fact about a thread, or (ephemeral kinds, Seq 0) a
// change that is published and never stored.
//
// A provider fills ID, Kind, Turn, Time and Data. The thread machine adds the
// envelope when it commits: Thread, Seq, Actor, Executor, Trace, and its own Time.
type Event struct {
	// ID is stable: the same fact read again, in a replay of a log or after a
	// reconnect, has the same id, so that appending can drop repeats.
	ID   thole.EventID `json:"id"`
	Kind Kind          `json:"kind"`
	Turn thole.TurnID  `json:"turn,omitempty"`
	Time time.Time     `json:"time"`

	Thread   thole.ThreadID   `json:"-"`
	Seq      uint64           `json:"-"`
	Actor    thole.Actor      `json:"-"`
	Executor thole.ExecutorID `json:"-"`
	Trace    string           `json:"-"`

	Data
}

// Data is an event's payload: the fields its kind needs, the rest zero.
type Data struct {
	Created  *Created      `json:"created,omitempty"`
	NativeID string        `json:"native_id,omitempty"`
	Settings *Settings     `json:"settings,omitempty"`
	Name     *string       `json:"name,omitempty"`
	Archived *bool         `json:"archived,omitempty"`
	Pinned   *bool         `json:"pinned,omitempty"`
	Git      *Git          `json:"git,omitempty"`
	Status   *Status       `json:"status,omitempty"`
	Input    []thole.Input `json:"input,omitempty"`
	ClientID string        `json:"client_id,omitempty"`
	Phase    thole.Phase   `json:"phase,omitempty"`
	Outcome  thole.Outcome `json:"outcome,omitempty"`

	Item   *Item        `json:"item,omitempty"`
	ItemID thole.ItemID `json:"item_id,omitempty"`
	Stream Stream       `json:"stream,omitempty"`
	Delta  string       `json:"delta,omitempty"`
	Offset int64        `json:"offset,omitempty"` // bytes of the stream before Delta

	Todos []Todo `json:"todos,omitempty"`
	Ask   *Ask   `json:"ask,omitempty"`
	// AskID is the ask that was resolved, or that a turn is parked on.
	AskID    thole.AskID `json:"ask_id,omitempty"`
	AskState AskState    `json:"ask_state,omitempty"`
	Answer   *Answer     `json:"answer,omitempty"`
	// Receipt is what came with the answer to executord: the event that recorded it.
	// An answer without one was not given by a dispatcher.
	Receipt thole.EventID    `json:"receipt,omitempty"`
	Usage   *thole.Usage     `json:"usage,omitempty"`
	Error   *thole.TurnError `json:"error,omitempty"`
	Text    string           `json:"text,omitempty"`
	Limits  []Limit          `json:"limits,omitempty"`

	Network []Traffic `json:"network,omitempty"`

	Goal *Goal `json:"goal,omitempty"`

	Cut *Cut `json:"cut,omitempty"`

	Message *Message `json:"message,omitempty"`
	// MessageID names the queued message or steer that the event is about.
	MessageID thole.MessageID `json:"message_id,omitempty"`
	// Front puts a queued message first.
	Front bool `json:"front,omitempty"`
	// Idempotency is the caller's key for a turn.
	Idempotency string `json:"idempotency,omitempty"`
	// Schema is the JSON schema of a turn's last message.
	Schema json.RawMessage   `json:"schema,omitempty"`
	Order  []thole.MessageID `json:"order,omitempty"`
}
