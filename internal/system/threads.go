package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
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
	driver     executor.Driver
	terminals  atomic.Int64 // open ones
	log        *slog.Logger
}

func newThreads(cfg *config.Config, db *store.DB, providers *registry, creds provider.Credentials, ws *workspaces, m *meter, bwrap func() (string, error), log *slog.Logger) (*threads, error) {
	machine, err := thread.New(thread.Config{Store: db.QueuedThreads(), Policies: policies(cfg.Asks), KeepEvents: cfg.Threads.KeepEvents, Slow: m.slow, Log: log})
	if err != nil {
		return nil, err
	}
	driver, err := localDriver(cfg, providers, bwrap)
	if err != nil {
		return nil, err
	}
	if f := checkLimits(cfg.Executor); !f.OK {
		log.Warn("executors run without some limits", "err", f.Problem)
	}
	t := &threads{machine: machine, providers: providers, workspaces: ws, rows: db.Executors(), driver: driver, log: log}
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
func localDriver(cfg *config.Config, providers *registry, bwrap func() (string, error)) (*local.Driver, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	root := filepath.Join(cfg.Home, "x")
	if err := local.CheckRoot(root); err != nil {
		return nil, err
	}
	path, err := bwrap()
	if err != nil {
		return nil, err
	}
	return local.New(local.Config{
		Root: root, Binary: self, Bwrap: path, Groups: local.FindGroups(cgroupRoot, cgroupOf(cfg.Executor)),
		Tools: func() local.Tools { return local.Tools{Readable: providers.binaries(), Env: providers.paths()} },
	}), nil
}

// isolation begins to find out how executors are kept apart, while the rest
// starts: bubblewrap's path, "" where they run without it.
func isolation(ctx context.Context, mode string) func() (string, error) {
	find := sync.OnceValues(func() (string, error) {
		if mode == "off" {
			return "", nil
		}
		path, err := exec.LookPath("bwrap")
		if err != nil {
			err = thole.Errorf(thole.CodeUnavailable, "executor.bubblewrap is on, but bwrap is not installed").WithHint("apt-get install bubblewrap")
		} else {
			err = local.CheckBwrap(ctx, path)
		}
		if err == nil {
			return path, nil
		}
		if mode == "on" {
			return "", err
		}
		return "", nil // "auto": a machine without user namespaces still runs agents
	})
	go func() { _, _ = find() }()
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
	err := t.dispatcher.Stop(ctx)
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
