package thread

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Create makes a thread. ID may be chosen by the caller (any UUID not in use).
type Create struct {
	ID        thole.ThreadID
	Owner     thole.Owner
	Name      string
	Settings  event.Settings
	Source    string
	Client    string
	Ephemeral bool
	Parent    thole.ThreadID
	// Files is where its files come from, decided by the edge; it never changes.
	Files thole.Source
	// Tools are those that its client runs itself; they never change.
	Tools []event.ClientTool
}

// Fork copies a thread's history up to and including a turn, or what came before
// one; all of it when neither is named.
type Fork struct {
	ID     thole.ThreadID
	UpTo   thole.TurnID
	Before thole.TurnID
	// Name is the fork's, nil for its parent's.
	Name     *string
	Settings *event.Settings
	Source   string
	Client   string
	// Ephemeral forks are never listed and go when nobody uses them.
	Ephemeral bool
}

// Precondition is a condition on what a change replaces. It is called inside the
// thread's own order, so nothing happens between its success and the change; its
// error refuses the change. It may be called several times.
type Precondition[T any] func(T) error

// check calls all preconditions.
func check[T any](now T, conditions []Precondition[T]) error {
	for _, c := range conditions {
		if err := c(now); err != nil {
			return err
		}
	}
	return nil
}

// Update changes what is not nil.
type Update struct {
	Name     *string
	Archived *bool
	Pinned   *bool
	Git      func(event.Git) event.Git // makes the new one of the present one
	Settings *event.Settings           // zero fields stay
	// Change makes new settings of the present ones; fields may become empty.
	Change func(event.Settings) event.Settings
}

// Filter selects threads. The zero Filter lists the newest unarchived ones.
type Filter struct {
	Archived  bool
	Dirs      []string // any when there is none
	Search    string   // in name, preview and message text
	Providers []string
	Except    []thole.ThreadID // left out
	Sort      string           // "created", "updated" (default)
	Pinned    *bool            // only those that are, or are not
	// PinnedFirst lists the pinned threads before all others, each part in its order.
	PinnedFirst bool
	// Everybody lists all threads that the actor may see; else only their own.
	Everybody bool
	PageParams
}

// PageParams walks a list. Cursor is opaque and comes from a Page.
type PageParams struct {
	Cursor string
	Limit  int
	Desc   bool
}

// Page is one page and the cursors to its neighbours, "" at an end.
type Page[T any] struct {
	Items []T
	Next  string
	Back  string
}

// TurnNetwork is what one turn's processes exchanged with the network.
type TurnNetwork struct {
	Turn    thole.TurnID
	Traffic []event.Traffic
}

// StartTurn begins a turn on an idle thread.
type StartTurn struct {
	Thread   thole.ThreadID
	ID       thole.TurnID // "" lets the edge choose
	Input    []thole.Input
	ClientID string
	// Settings change the thread's sticky settings with this turn; zero fields stay.
	Settings *event.Settings
	// Once changes them further for this turn only.
	Once  *event.Settings
	Trace string
	// Idempotency makes a repeat return the first turn; another message under the same
	// key is ErrKeyReused.
	Idempotency string
	// Schema is what the turn's last message has to satisfy, nil for any text.
	Schema json.RawMessage
	// Command says that Input is a thole.TurnCommand, as that of Enqueue does.
	Command bool
}

// SetGoal changes what is not nil.
type SetGoal struct {
	Objective *string
	Status    *event.GoalStatus
	// Budget is a number of tokens, 0 for no limit.
	Budget *int64
}

// Steer adds input to the running turn.
type Steer struct {
	Thread thole.ThreadID
	// ID names the message; a steer with the same one again has no effect. "" lets the
	// machine choose.
	ID       thole.MessageID
	Expected thole.TurnID
	Input    []thole.Input
	ClientID string
	// Waits and Back are those of event.Message.
	Waits, Back bool
}

// Enqueue adds a message after the thread's running turn.
type Enqueue struct {
	Thread thole.ThreadID
	// ID names the message; the same one again has no effect, also when it left the queue
	// since. "" lets the machine choose.
	ID       thole.MessageID
	Input    []thole.Input
	ClientID string
	// Start takes the message at once when the thread is idle.
	Start bool
	// Command says that Input is a thole.TurnCommand; elsewhere they are refused, so
	// that no edge lets one in by passing on what it was sent. It starts also while
	// the queue is paused: a user asks for it now.
	Command bool
}

// SubscribeOptions say where a subscription begins and how much it may lag.
type SubscribeOptions struct {
	// After resumes after a sequence number; nil takes a snapshot.
	After *uint64
	// NoDeltas leaves out ephemeral deltas.
	NoDeltas bool
	// Buffer bounds the undelivered events; past it the subscription ends with
	// ErrSlow. Zero takes the default.
	Buffer int
}

// Snapshot is a thread at one sequence number. It is shared: read, never write.
type Snapshot struct {
	Thread fold.Thread
	Seq    uint64
	// Revision: batches of the thread up to it are in the snapshot, later ones are not.
	Revision uint64
	// Open is the running turn with its items so far, the one in flight included.
	Open  *fold.Turn
	Asks  []fold.AskRecord
	Todos []event.Todo
	Queue []event.Message
	Taken time.Time
	// Fold is the state that the snapshot shows; texts in flight are only in Open.
	Fold *fold.State
}
