package thread

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/event/turntime"
	"github.com/tholehq/thole/internal/authz"
)

// Outcomes of a commit that are not failures.
var (
	// ErrStale: the thread's log is not at the expected sequence number. Another process
	// else wrote; fold what is new and decide again.
	ErrStale = errors.New("thread: log moved on")
	// ErrRepeat: one of the events is in the log already.
	ErrRepeat = errors.New("thread: event repeated")
	// ErrExists: a thread with that id exists.
	ErrExists = errors.New("thread: id in use")
	// ErrSaving: the files and the agent's memory of the last turn are still being saved.
	ErrSaving = errors.New("thread: the last turn is still being saved")
	// ErrDeleted: a thread with that id was deleted.
	ErrDeleted = errors.New("thread: id was deleted")
	// ErrNone: no such thread (or turn).
	ErrNone = errors.New("thread: not found")
	// ErrFenced: the writer's token is no longer the turn's.
	ErrFenced = errors.New("thread: fenced off")
	// ErrOver: a report is about a turn that has ended.
	ErrOver = errors.New("thread: turn is over")
)

// Store keeps logs and the rows folded from them. Each method is one
// transaction. Any error other than those above leaves open whether a commit
// happened: the machine looks it up, it never guesses.
type Store interface {
	// Commit appends events and writes the rows folded from them, all or nothing,
	// if the thread's log is at Commit.Expected. It wakes the watchers of the
	// thread in every process once durable. step names the durable step.
	Commit(ctx context.Context, step string, c *Commit) error
	// Draft keeps text of items in flight. It is outside the log's order: only the
	// driver of a turn writes it, and completing the item removes it.
	Draft(ctx context.Context, id thole.ThreadID, drafts []Draft) error
	// Delete removes a thread with everything folded from it. No other thread ever gets
	// its id: creating one is ErrDeleted.
	Delete(ctx context.Context, id thole.ThreadID, expected uint64) error
	// Fork commits c, whose Expected is the parent's sequence number at the cut, with a copy
	// of the parent's turns and items up to and including the turn numbered upTo.
	Fork(ctx context.Context, parent thole.ThreadID, upTo int, c *Commit) error
	// Compact removes events up to and including floor and raises the thread's
	// floor to it.
	Compact(ctx context.Context, id thole.ThreadID, floor uint64) error

	// Head reads what a loaded thread keeps in memory, on one snapshot.
	Head(ctx context.Context, id thole.ThreadID) (*Head, error)
	// Drafts reads the kept text of a thread's items in flight, in order.
	Drafts(ctx context.Context, id thole.ThreadID) ([]Draft, error)
	Thread(ctx context.Context, id thole.ThreadID) (fold.Row, error)
	// Deleted returns whose a deleted thread was, without its app.
	Deleted(ctx context.Context, id thole.ThreadID) (thole.Owner, error)
	Threads(ctx context.Context, q ThreadQuery) ([]fold.Row, error)
	Turn(ctx context.Context, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error)
	// TurnByKey finds a turn by its idempotency key.
	TurnByKey(ctx context.Context, id thole.ThreadID, key string) (fold.Turn, error)
	Turns(ctx context.Context, id thole.ThreadID, q RangeQuery) ([]fold.Turn, error)
	Items(ctx context.Context, id thole.ThreadID, turn thole.TurnID, q RangeQuery) ([]fold.ItemRecord, error)
	// TurnItems reads the newest limit items of some turns, newest first; with said only
	// what the user, the agent and thole said.
	TurnItems(ctx context.Context, id thole.ThreadID, turns []thole.TurnID, said bool, limit int) ([]fold.ItemRecord, error)
	// Item reads the newest item of that id.
	Item(ctx context.Context, id thole.ThreadID, item thole.ItemID) (fold.ItemRecord, error)
	// Output reads the pieces of a kept output that have bytes from offset on, up to offset+limit,
	// in order, and how many bytes are kept of it.
	Output(ctx context.Context, id thole.ThreadID, turn thole.TurnID, item thole.ItemID, offset, limit int64) ([]OutputPiece, int64, error)
	Asks(ctx context.Context, id thole.ThreadID, pendingOnly bool) ([]fold.AskRecord, error)
	Ask(ctx context.Context, id thole.ThreadID, ask thole.AskID) (fold.AskRecord, error)
	// Waiting reads the pending asks of all threads in a scope in one query, oldest first.
	Waiting(ctx context.Context, q WaitingQuery) ([]Waiting, error)
	// Hits reads the messages of all threads in a scope that have a text in them, newest
	// turn first, in one query.
	Hits(ctx context.Context, q HitQuery) ([]Hit, error)
	Todos(ctx context.Context, id thole.ThreadID) ([]event.Todo, error)
	Queue(ctx context.Context, id thole.ThreadID) ([]event.Message, error)
	Events(ctx context.Context, id thole.ThreadID, after uint64, limit int) ([]event.Event, error)
	// Timeline reads the events of a turn that turntime.Split needs, and its model calls.
	Timeline(ctx context.Context, id thole.ThreadID, turn thole.TurnID) ([]event.Event, []turntime.Call, error)
	// Network reads the last limit events of kind event.NetworkUpdated, oldest first.
	Network(ctx context.Context, id thole.ThreadID, limit int) ([]event.Event, error)
	// Known returns which of the ids are in the thread's log.
	Known(ctx context.Context, id thole.ThreadID, ids []thole.EventID) (map[thole.EventID]bool, error)
	// Due lists threads with a pending ask whose deadline is not after now.
	Due(ctx context.Context, now time.Time, limit int) ([]thole.ThreadID, error)
	// Busy lists threads with an open turn, in id order following after.
	Busy(ctx context.Context, after thole.ThreadID, limit int) ([]thole.ThreadID, error)
	// Ephemeral lists ephemeral threads not changed since before.
	Ephemeral(ctx context.Context, before time.Time, limit int) ([]thole.ThreadID, error)
	// Resting lists threads without an open turn that nothing happened to since
	// before and whose log still has events, the oldest first.
	Resting(ctx context.Context, before time.Time, limit int) ([]thole.ThreadID, error)

	// Watch calls fn after each commit or draft of any process that shares the
	// store. An empty id says that some may have been missed. fn does not block.
	Watch(fn func(id thole.ThreadID)) (cancel func())
	// Shared reports whether other processes may write to the same threads.
	Shared() bool
}

// Commit is one atomic step of one thread: events and the rows they fold into.
type Commit struct {
	Row      fold.Row // as it is after the events
	Expected uint64
	Create   bool
	// Fence, when it names a turn, must still hold it: its token is the queue's.
	Fence  TurnRef
	Events []event.Event
	// Outputs are the beginnings of outputs that their items have only the ends of.
	Outputs []ItemOutput

	fold.Changes
}

// ItemOutput is the beginning of a command's output.
type ItemOutput struct {
	Turn thole.TurnID
	Item thole.ItemID
	Text string
}

// Head is a thread as far as it must be in memory: bounded by its open turn.
type Head struct {
	fold.Row
	Open  *fold.Turn
	Items []fold.ItemRecord // of the open turn
	Asks  []fold.AskRecord  // pending
	// Settled are the open turn's other asks.
	Settled []fold.AskRecord
	Todos   []event.Todo
	Queue   []event.Message
	Drafts  []Draft
}

func newState(h *Head) *fold.State {
	return &fold.State{Row: h.Row, Open: h.Open, Items: h.Items, Asks: h.Asks, Settled: h.Settled, Todos: h.Todos, Queue: h.Queue}
}

// Draft is a piece of the text of an item in flight.
type Draft struct {
	Turn   thole.TurnID
	Item   thole.ItemID
	Stream event.Stream
	Offset int64
	Text   string
}

// RangeQuery walks rows in order of their number or sequence, exclusively
// following After (0 = from the end that Desc says).
type RangeQuery struct {
	After uint64
	Desc  bool
	Limit int
}

// ThreadQuery selects threads. Key, KeyID and, with PinnedFirst, KeyPinned are the
// exclusive keyset position. PinnedLast is PinnedFirst read backwards.
type ThreadQuery struct {
	Scope     authz.Scope
	Archived  bool
	Dirs      []string
	Except    []thole.ThreadID
	Search    string
	Providers []string
	ByCreated bool
	Desc      bool
	Key       time.Time
	KeyID     thole.ThreadID
	Limit     int
	Pinned    *bool // only those that are, or are not

	PinnedFirst bool
	PinnedLast  bool
	KeyPinned   bool
}
