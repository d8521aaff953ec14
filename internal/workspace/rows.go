package workspace

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// ErrMoved says that a thread's snapshot is not the one a sync began from.
var ErrMoved = errors.New("workspace: another sync was faster")

// TurnsKept is how long the files that a turn ended with can be forked.
const TurnsKept = 30 * 24 * time.Hour

// SnapshotID names a stored state of a workspace.
type SnapshotID string

// Snapshot is one stored state.
type Snapshot struct {
	ID       SnapshotID
	Thread   thole.ThreadID // whose sync made it; forks share it
	Turn     thole.TurnID
	Executor thole.ExecutorID
	Reason   string
	Tree     objects.Sum
	// RuntimeVersion is the manifest's version the workspace was made with.
	RuntimeVersion string
	Files          int
	Bytes          int64
	Unsettled      int // files that kept an older state because they would not hold still
	Created        time.Time
}

// Ref is one object that a snapshot needs, its tree among them.
type Ref struct {
	ID   string // as trees call it
	Key  string
	Size int64
}

// Commit moves a thread to a new snapshot.
type Commit struct {
	Snapshot Snapshot
	Refs     []Ref
	Base     SnapshotID // the one the sync began from, "" for none
	// Lease and Token fence the writer: the queue's lease on this turn must hold.
	Lease thole.TurnID
	Token string
}

// Rows is the durable record of snapshots. Every change is one transaction.
type Rows interface {
	// Head returns a thread's snapshot and what it needs; CodeNotFound if it was
	// never synced.
	Head(ctx context.Context, id thole.ThreadID) (Snapshot, []Ref, error)
	Snapshot(ctx context.Context, id SnapshotID) (Snapshot, []Ref, error)
	// Commit stores the snapshot and moves the thread to it, if the thread is
	// still at Base (else ErrMoved) and the lease holds.
	Commit(ctx context.Context, c Commit) error
	// Bind ties an executor to a runtime version, once: a second call returns the
	// first one's version. Runtime returns it, "" if there is none.
	Bind(ctx context.Context, id thole.ExecutorID, version string) (string, error)
	Runtime(ctx context.Context, id thole.ExecutorID) (string, error)
	// Pin keeps a snapshot from being collected until then; Unpin lets go of it.
	Pin(ctx context.Context, holder string, id SnapshotID, until time.Time) error
	Unpin(ctx context.Context, holder string) error
	// Prune forgets the files of turns that were kept before turns, takes all
	// deleted threads without an executor off theirs, then drops up to limit snapshots that no thread is at, that no turn keeps, that are not pinned
	// and that were left before then.
	Prune(ctx context.Context, before, turns time.Time, limit int) (int, error)
	// Unreferenced returns those of keys that no snapshot needs.
	Unreferenced(ctx context.Context, keys []string) ([]string, error)
	Now(ctx context.Context) (time.Time, error)
}
