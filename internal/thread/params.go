package thread

import (
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
}

// Fork copies a thread's history up to and including a turn ("" = all).
type Fork struct {
	ID       thole.ThreadID
	UpTo     thole.TurnID
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
	Settings *event.Settings // zero fields stay
	// Change makes new settings of the present ones; fields may become empty.
	Change func(event.Settings) event.Settings
}

// Filter selects threads. The zero Filter lists the newest unarchived ones.
type Filter struct {
	Archived  bool
	Dirs      []string // any when there is none
	Search    string   // in name, preview and message text
	Providers []string
	Sort      string // "created", "updated" (default)
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
	// Once applies Settings to this turn only.
	Once  bool
	Trace string
	// Idempotency makes a repeat return the first turn.
	Idempotency string
	// Command says that Input is a thole.TurnCommand, as that of Enqueue does.
	Command bool
}

// Steer adds input to the running turn.
type Steer struct {
	Thread   thole.ThreadID
	Expected thole.TurnID
	Input    []thole.Input
	ClientID string
}

// Enqueue adds a message after the thread's running turn.
type Enqueue struct {
	Thread   thole.ThreadID
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
	// Open is the running turn with its items so far, the one in flight included.
	Open  *fold.Turn
	Asks  []fold.AskRecord
	Todos []event.Todo
	Queue []event.Message
	Taken time.Time
	// Fold is the state that the snapshot shows; texts in flight are only in Open.
	Fold *fold.State
}
