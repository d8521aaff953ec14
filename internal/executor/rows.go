package executor

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

// RowState is what we know about an executor, as opposed to what its driver
// finds:
//
//	creating → running   MarkRunning, once the driver started it
//	running  → stopped   MarkStopped, after a successful sync
//	stopped  → running   MarkRunning
//	stopped  → deleted   MarkDeleted, after a successful sync that began after the stop
//	any      → deleted   MarkMissing, when the driver proved that it is gone
type RowState string

const (
	RowCreating RowState = "creating"
	RowRunning  RowState = "running"
	RowStopped  RowState = "stopped"
	RowDeleted  RowState = "deleted"
)

// SyncStatus is how the last sync went.
type SyncStatus string

const (
	SyncIdle    SyncStatus = "idle"
	SyncRunning SyncStatus = "running"
	SyncSuccess SyncStatus = "success"
	SyncFailed  SyncStatus = "failed"
)

// Row is an executor's durable record.
type Row struct {
	ID          thole.ExecutorID
	Thread      thole.ThreadID
	Turn        thole.TurnID
	Scope       Scope
	Driver      string
	Engine      string // whose driver: see roster.Engine; empty: of the home that has the store
	State       RowState
	Restored    bool
	LastActive  time.Time
	Stopped     time.Time
	SyncStarted time.Time
	LastSync    time.Time
	SyncStatus  SyncStatus
	SyncReason  string
	SyncError   string
	Snapshot    string
	Created     time.Time
	Updated     time.Time
}

// Rows is the durable record of all executors. Each method is one transaction
// and one compare-and-set; a false result means that the expected state was not
// met and nothing changed. Times are the store's own.
type Rows interface {
	// Ensure returns the live executor of a thread (scope thread) or turn, making
	// the row of a new one with the given id if there is none.
	Ensure(ctx context.Context, want Row) (Row, error)
	Get(ctx context.Context, id thole.ExecutorID) (Row, error)
	// Of lists a thread's live executors: at most one of scope thread, and those of
	// its turns.
	Of(ctx context.Context, id thole.ThreadID) ([]Row, error)
	MarkRunning(ctx context.Context, id thole.ExecutorID) (bool, error)
	// MarkRestored records that restore, link and validate all succeeded.
	MarkRestored(ctx context.Context, id thole.ExecutorID) (bool, error)
	Touch(ctx context.Context, id thole.ExecutorID) error
	// BeginSync records the intent; EndSync the outcome: the stored snapshot, or why
	// it failed. A failed sync keeps the times of the last good one.
	BeginSync(ctx context.Context, id thole.ExecutorID, reason string) (bool, error)
	EndSync(ctx context.Context, id thole.ExecutorID, snapshot string, failure error) (bool, error)
	MarkStopped(ctx context.Context, id thole.ExecutorID) (bool, error)
	MarkDeleted(ctx context.Context, id thole.ExecutorID) (bool, error)
	// MarkMissing records that the driver has no such executor.
	MarkMissing(ctx context.Context, id thole.ExecutorID) (bool, error)
	// Idle lists running executors last active before a time, Old stopped ones
	// stopped before, Stale live ones whose last good sync is older than their last
	// activity and than a time; Live all that are not deleted.
	Idle(ctx context.Context, before time.Time, limit int) ([]Row, error)
	Old(ctx context.Context, before time.Time, limit int) ([]Row, error)
	Stale(ctx context.Context, before time.Time, limit int) ([]Row, error)
	Live(ctx context.Context, after thole.ExecutorID, limit int) ([]Row, error)
	// Now is the store's time, for the arguments above.
	Now(ctx context.Context) (time.Time, error)
}
