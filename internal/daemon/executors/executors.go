// Package executors answers what people ask the owner of a home about threads'
// executors and their files: stop them, wait until files are saved, write files out,
// open a terminal. It decides no turn and moves no file itself: the dispatcher and
// the depot do.
package executors

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/gateway/calls"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/toolchain"
)

// Config makes a Service.
type Config struct {
	Threads    *thread.Machine
	Dispatcher *dispatch.Dispatcher
	Rows       executor.Rows
	Queue      *store.Queue
	Driver     executor.Driver
	Files      *depot.Depot
	Home       string // whose disk everything is recorded on
	// Egress is what the configuration lets agents reach.
	Egress egress.Config
	// Calls are the recorded model calls, Recording whether there will be more.
	Calls     *calls.Store
	Recording bool
	// Shell is what of the owner's shell agents have.
	Shell func() toolchain.Plan
	Log   *slog.Logger
}

// Service answers on the home's socket. Safe for concurrent use.
type Service struct {
	cfg       Config
	terminals atomic.Int64 // open ones
	applying  sync.Mutex   // held while an executor is sent what its thread may reach
}

// New makes a service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Staying says whether turns or terminals need this process, "" if none does.
func (t *Service) Staying() string {
	if t.cfg.Dispatcher.Busy() {
		return "a turn is running"
	}
	if t.terminals.Load() > 0 {
		return "a terminal is open"
	}
	return ""
}
