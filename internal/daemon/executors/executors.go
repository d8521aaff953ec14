// Package executors answers what people ask the owner of a home about threads'
// executors and their files: stop them, wait until files are saved, write files out,
// open a terminal. It decides no turn and moves no file itself: the dispatcher and
// the depot do.
package executors

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
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
	// Elsewhere reaches an executor on the machine of another server. there says that it is on
	// one; a nil client that it does not run. Nil: all are on this machine.
	Elsewhere func(ctx context.Context, row executor.Row) (client *executorclient.Client, there bool, err error)
	Files     *depot.Depot
	Home      string // whose disk everything is recorded on
	// Egress is what the configuration lets agents reach.
	Egress egress.Config
	// Calls are the recorded model calls, Recording whether there will be more.
	Calls     *calls.Store
	Recording bool
	// Jobs lists the jobs whose command is running in an executor; nil: there are none.
	Jobs func(ctx context.Context) ([]delivery.Job, error)
	// Shell is what of the owner's shell agents have.
	Shell func() toolchain.Plan
	// Audit records who opens a terminal; nil: nobody does.
	Audit *audit.Log
	Log   *slog.Logger
}

// Service answers on the home's socket. Safe for concurrent use.
type Service struct {
	cfg       Config
	terminals atomic.Int64 // open ones
	applying  sync.Mutex   // held while an executor is sent what its thread may reach
	listings  listings
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
