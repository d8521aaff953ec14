package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

// threads is the part of the graph that owns threads and runs their turns.
type threads struct {
	machine    *thread.Machine
	dispatcher *dispatch.Dispatcher
	providers  *registry
	workspaces *workspaces
	rows       executor.Rows
	queue      *store.Queue
	driver     executor.Driver
	terminals  atomic.Int64 // open ones
	log        *slog.Logger
}

func newThreads(cfg *config.Config, db *store.DB, providers *registry, creds provider.Credentials, ws *workspaces, m *meter, box func(context.Context) (string, error), log *slog.Logger) (*threads, error) {
	machine, err := thread.New(thread.Config{Store: db.Threads(), Policies: policies(cfg.Asks), KeepEvents: cfg.Threads.KeepEvents, Slow: m.slow, Log: log})
	if err != nil {
		return nil, err
	}
	driver, err := localDriver(cfg, providers, box)
	if err != nil {
		return nil, err
	}
	if note := unwalled(cfg.Executor); note != "" {
		log.Warn(note)
	}
	if f := checkLimits(cfg.Executor); !f.OK {
		log.Warn("executors run without some limits", "err", f.Problem)
	}
	t := &threads{machine: machine, providers: providers, workspaces: ws, rows: db.Executors(), queue: db.Queue(), driver: driver, log: log}
	t.dispatcher = dispatch.New(dispatch.Config{
		Alone: true, // this process owns the home, and the store is the home's
		Owner: fmt.Sprintf("pid-%d", os.Getpid()), Queue: db.Queue(), Threads: machine, Rows: t.rows, Driver: driver,
		Workspaces: ws, Credentials: creds, Info: providers.info,
		Scope: executor.Scope(cfg.Executor.Scope), Room: room(cfg.Executor), Limits: queue.Limits{Total: cfg.Turns.MaxRunning, PerUser: cfg.Turns.MaxPerUser},
		TurnTimeout: cfg.Turns.Timeout, IdleStop: cfg.Executor.IdleStop, RemoveAfter: cfg.Executor.RemoveAfter,
		SweepEvery: cfg.Executor.SweepEvery, StartsPerSec: cfg.Executor.StartsPerSec, Meter: m, Log: log,
	})
	machine.Attach(t.dispatcher)
	return t, nil
}

func policies(a config.Asks) thread.Policies {
	input := thread.AskPolicy{Wait: a.InputTimeout, OnTimeout: thread.TimeoutFail}
	switch a.InputPolicy {
	case "wait":
		input = thread.AskPolicy{}
	case "default":
		input.OnTimeout, input.Default = thread.TimeoutDefault, &event.Answer{Message: a.DefaultReply}
	}
	return thread.Policies{event.AskInput: input}
}

// localDriver makes executors in the home.
func localDriver(cfg *config.Config, providers *registry, box func(context.Context) (string, error)) (*local.Driver, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	root := filepath.Join(cfg.Home, "x")
	if err := local.CheckRoot(root); err != nil {
		return nil, err
	}
	return local.New(local.Config{
		Root: root, Binary: self, Box: box, Note: unwalled(cfg.Executor), UIDBase: cfg.Executor.UIDBase,
		Groups: local.FindGroups(cgroupRoot, cgroupOf(cfg.Executor)),
		Tools: func() local.Tools {
			env := providers.paths()
			env[config.Variable("executor.orphan_timeout")] = cfg.Executor.OrphanTimeout.String()
			return local.Tools{Readable: providers.binaries(), Env: env}
		},
	}), nil
}

// unwalled is what everybody is told where a person typed that agents run without
// walls, "" where they do not.
func unwalled(cfg config.Executor) string {
	if cfg.Isolation != "none" {
		return ""
	}
	return "executor.isolation is none: agents run without walls and can read and change everything that the user of this server can"
}

// isolation finds how executors are kept apart: bubblewrap's path, nil where a
// person typed that they are not. It begins to look while the rest starts, and looks
// again at every start of an executor until it was found.
func isolation(ctx context.Context, cfg config.Executor) func(context.Context) (string, error) {
	if unwalled(cfg) != "" {
		return nil
	}
	var mu sync.Mutex
	var path string
	find := func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if path != "" {
			return path, nil
		}
		found, err := local.FindBwrap(ctx, cfg.UIDBase)
		if err == nil {
			path = found
		}
		return path, err
	}
	go func() { _, _ = find(ctx) }()
	return find
}

func (t *threads) start(ctx context.Context) error {
	if err := t.machine.Start(ctx); err != nil {
		return err
	}
	return t.dispatcher.Start(ctx)
}

// stop lets go of running turns (they go on in their executors) and delivers
// what subscribers have pending.
func (t *threads) stop(ctx context.Context) error {
	err := t.dispatcher.Stop(ctx) // again, where it has stopped
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return errors.Join(err, t.machine.Close(ctx))
}

// staying says whether turns need this process.
func (t *threads) staying() string {
	if t.dispatcher.Busy() {
		return "a turn is running"
	}
	if t.terminals.Load() > 0 {
		return "a terminal is open"
	}
	return ""
}
