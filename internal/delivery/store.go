package delivery

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
)

// Store runs the machine's transactions. Update is durable when it returns nil;
// its function may run more than once and touches nothing but the Tx.
type Store interface {
	Update(ctx context.Context, step string, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
}

// Tx is rows and nothing else: it decides nothing. Reads of one row return nil
// when there is none. Update methods are compare-and-set on the row's version,
// which they raise; losing the race is thole.CodeConflict.
type Tx interface {
	Now() time.Time
	AfterCommit(func())

	// LockLane reads a lane and keeps other writers from it until commit.
	LockLane(id string) (*Lane, error)
	Lane(id string) (*Lane, error)
	// Lanes lists the lanes of a thread id over all endpoints of a user.
	Lanes(user thole.UserID, thread thole.ThreadID) ([]Lane, error)
	InsertLane(*Lane) error
	UpdateLane(*Lane) error
	// Ready is the head of the fair order.
	Ready(scope thole.Target, limit int) ([]Lane, error)
	// DueLanes lists lanes whose DueAt is not after now, or is beyond far (the
	// clock went back), oldest first, after the given position.
	DueLanes(now, far time.Time, after Position, limit int) ([]Lane, error)

	// Installation and LockInstallation read the one row there is.
	Installation() (*Installation, error)
	LockInstallation() (*Installation, error)
	UpdateInstallation(*Installation) error
	// DegradeOtherBindings degrades every bound one that was made for another state of it.
	DegradeOtherBindings(in Installation, why string, now time.Time) error
	Binding(laneID string) (*Binding, error)
	LockBinding(laneID string) (*Binding, error)
	InsertBinding(*Binding) error
	UpdateBinding(*Binding) error
	// Bindings lists those of a user, by thread.
	Bindings(thole.UserID) ([]Binding, error)
	// RestlessBindings lists those that a sweep must look at: bound ones whose heartbeat may
	// be paused by now (or not before far: the clock went back) and is not known to be, and
	// degraded ones whose lane is not settled.
	RestlessBindings(now, far time.Time) ([]Binding, error)
	// ArmingAttempts lists those that are being armed and whose lease is over.
	ArmingAttempts(now time.Time) ([]Attempt, error)
	Scope(thole.Target) (*Scope, error)

	// Advance moves a fair order on, and returns it as it is then.
	Advance(thole.Target, Advance) (*Scope, error)

	Job(id thole.JobID) (*Job, error)
	JobByDedupe(laneID, key string) (*Job, error)
	InsertJob(*Job) error
	UpdateJob(*Job) error
	Children(parent thole.JobID) ([]Job, error)
	JobsOf(batch thole.BatchID) ([]Job, error)
	Jobs(JobFilter) ([]Job, error)

	Batch(id thole.BatchID) (*Batch, error)
	// HeadBatch is the lane's first batch that is neither closed nor aside, TailBatch its last.
	HeadBatch(laneID string) (*Batch, error)
	TailBatch(laneID string) (*Batch, error)
	InsertBatch(*Batch) error
	UpdateBatch(*Batch) error
	Batches(BatchFilter) ([]Batch, error)
	// OverdueBatches lists open batches by window end, like DueLanes.
	OverdueBatches(now, far time.Time, after Position, limit int) ([]Batch, error)

	Attempt(id thole.AttemptID) (*Attempt, error)
	OpenAttempt(laneID string) (*Attempt, error)
	InsertAttempt(*Attempt) error
	UpdateAttempt(*Attempt) error
	AttemptsOf(batch thole.BatchID) ([]Attempt, error)
	// OverdueAttempts lists open attempts by Deadline, like DueLanes.
	OverdueAttempts(now, far time.Time, after Position, limit int) ([]Attempt, error)
	// LiveAttempts lists the attempts a driver must follow, by id, a page following after.
	LiveAttempts(after thole.AttemptID, limit int) ([]Attempt, error)

	InsertArtifact(*artifact.Record) error
	// ReleaseArtifacts sets when the last batch that refers to the artifact closed.
	ReleaseArtifacts(ids []thole.ArtifactID, at time.Time) error

	// Append gives rows the next numbers of their lane, whose lock the caller holds.
	Append([]Audit) error
	Audits(AuditFilter) ([]Audit, error)

	// Ended lists what ended before a time, oldest first, after a position.
	Ended(before time.Time, after Position, limit int) ([]Ended, error)
	// ForgetIfEnded removes it with all its rows but the lane's newest one in the ledger;
	// false if it did not end before, or has a result file that is kept.
	ForgetIfEnded(e Ended, before time.Time) (bool, error)

	// Pending is the state that decides how long a daemon must live.
	Pending() (Pending, error)
}

// Position is where a page of a sweep ended: rows after it in (At, ID) order.
type Position struct {
	At time.Time
	ID string
}

// JobFilter selects jobs, newest first. Zero fields do not filter.
type JobFilter struct {
	User   thole.UserID
	Thread thole.ThreadID
	State  thole.JobState
	Limit  int
	// After continues after the last job of a page.
	After thole.JobID
	// Supervised selects running jobs that some supervisor must end, by id.
	Supervised bool
	// Commands selects running jobs that run in the box of their thread, by id; LaneID
	// those of one lane.
	Commands bool
	LaneID   string
}

// BatchFilter selects batches, newest first.
type BatchFilter struct {
	User   thole.UserID
	Thread thole.ThreadID
	Open   bool
	Held   bool
	Limit  int
	// After continues after the last batch of a page.
	After thole.BatchID
}

// AuditFilter selects ledger rows in the order in which they were written; with
// Limit, the newest ones.
type AuditFilter struct {
	User   thole.UserID
	LaneID string
	Job    thole.JobID
	Batch  thole.BatchID
	Limit  int
}

// Pending is what is not finished.
type Pending struct {
	RunningJobs int64
	// Observing is the latest deadline of a call or turn that a driver follows.
	Observing time.Time
	// Next is the earliest deadline or due time of any kind.
	Next time.Time
	// Near is Next without the pauses after failures: a lane that waits to be tried
	// again waits for its receiver, which is no work of this process.
	Near time.Time
	// Ready is how many lanes wait in each fair order.
	Ready map[thole.Target]int64
}
