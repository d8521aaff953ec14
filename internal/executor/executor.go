// Package executor is the port to isolated places where turns run. An executor
// holds one thread's workspace (scope thread) or one turn's (scope turn) and one
// resident executord; drivers (executor/local, later executor/docker) make,
// start, stop, remove and find them. The port knows no queue and no thread log;
// rows and policy belong to the dispatcher.
package executor

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
)

// Errors of the port.
var (
	// ErrNotFound: the driver has no such executor.
	ErrNotFound = errors.New("executor: not found")
	// ErrUnavailable: the platform lacks what the driver needs; the text says what.
	ErrUnavailable = errors.New("executor: driver unavailable")
	// ErrUnseen: a process keeps the driver from seeing what the executor's files take.
	ErrUnseen = errors.New("executor: it hides some of its files")
)

// Scope says what an executor is made for.
type Scope string

const (
	ScopeThread Scope = "thread"
	ScopeTurn   Scope = "turn"
)

// State is what the driver finds, never what a row says.
type State string

const (
	Running State = "running"
	Stopped State = "stopped"
	Missing State = "missing"
)

// Spec makes an executor. Its labels are written before anything is created, so
// that a crash at any point leaves something List finds.
type Spec struct {
	ID     thole.ExecutorID
	Thread thole.ThreadID
	Owner  thole.Owner
	Scope  Scope
	Limits Limits
	// Files is where the thread's files come from: a directory of the user that is shown
	// at its own path, and git objects that are shown read-only.
	Files thole.Source
	// Providers are the CLIs that must be reachable inside.
	Providers []string
}

// Limits bound an executor where the platform allows; 0 is no limit.
type Limits struct {
	CPUs   float64
	Memory int64 // bytes
	Pids   int
	Disk   int64 // bytes; held by who runs turns, where the driver is a Disk
}

// Info is an executor as the driver finds it.
type Info struct {
	ID      thole.ExecutorID
	Thread  thole.ThreadID
	State   State
	Created time.Time
	// Endpoint and Token reach executord while Running: "unix:PATH" or a URL.
	Endpoint string
	Token    string
	// Boot identifies this start of the executor's processes; it changes with every
	// Start, so that a caller can distinguish a survivor from a successor.
	Boot string
	// Gateway says that its agents can reach the model gateway, while Running.
	Gateway bool
	// Old says that an earlier version started it, while Running: it refuses requests that
	// this version makes.
	Old bool
}

// Driver manages executors of one kind.
//
// Every call is idempotent: creating what exists returns it, stopping what is
// stopped and removing what is gone succeed. Calls for different executors may
// run at the same time; calls for one executor are made one after another.
// Unknown is an error, never Missing.
type Driver interface {
	Name() string
	// Check says whether the driver can work here; the error names what is missing
	// and the command that helps.
	Check(ctx context.Context) error
	Create(ctx context.Context, spec Spec) error
	// Start returns when executord answers.
	Start(ctx context.Context, id thole.ExecutorID) (Info, error)
	// Stop ends every process of the executor and keeps its files.
	Stop(ctx context.Context, id thole.ExecutorID) error
	// Remove deletes the files too. The caller has proven that they are synced.
	Remove(ctx context.Context, id thole.ExecutorID) error
	Inspect(ctx context.Context, id thole.ExecutorID) (Info, error)
	// List finds every executor this driver ever made and did not remove.
	List(ctx context.Context) ([]Info, error)
}

// Files opens a stopped executor's workspace, for a sync after the stop and for
// the comparison before a removal. Drivers whose files are reachable without
// executord implement it.
type Files interface {
	// WorkspaceDir is the workspace's directory on this machine; "" means that there is
	// none, because the agents work in a directory of the user.
	WorkspaceDir(id thole.ExecutorID) (string, error)
	// DataDir is where the CLIs' conversations are; "" means in the workspace, as in an
	// executor of an earlier version that was not started since.
	DataDir(id thole.ExecutorID) (string, error)
}

// InPlace is a driver whose executors can work in a directory of the user of this machine:
// Spec.Files of kind here.
type InPlace interface {
	// CheckFiles is why that directory is not the one any more that the executor shows: it
	// is gone, or was replaced. It says nothing of executors that do not exist.
	CheckFiles(ctx context.Context, id thole.ExecutorID) error
}

// Memory is a driver that sees its executors run out of memory.
type Memory interface {
	// Starved counts the processes of an executor that were killed since its start
	// because together they went beyond its memory limit.
	Starved(id thole.ExecutorID) int
}

// Disk is a driver that sees what its executors take on the disk.
type Disk interface {
	// DiskUsed is how many bytes the files of an executor take, those too that have no
	// name any more. It stops counting beyond upTo. ErrUnseen: a process hides some.
	DiskUsed(ctx context.Context, id thole.ExecutorID, upTo int64) (int64, error)
	// DiskAllowed is what AllowDisk recorded for an executor, 0 for nothing: how much it
	// may take although its limit is lower. It outlives the process that recorded it.
	DiskAllowed(id thole.ExecutorID) (int64, error)
	AllowDisk(id thole.ExecutorID, bytes int64) error
}
