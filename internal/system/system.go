package system

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/calls"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/registry"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/service"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/tracing"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
)

// Options say which parts of the graph run.
type Options struct {
	Config *config.Config
	Role   string // "daemon", started on demand, or "up"
	// Idle ends the process after this long with nothing to do; 0: never.
	Idle     time.Duration
	Takeover bool
	// Demo puts the scripted model in place of the user's own.
	Demo bool
	// DemoModel is the URL of a scripted model that runs elsewhere; if empty, a demo
	// starts its own, which ends with this process and breaks the calls in progress.
	DemoModel string
	// Sample is the directory of a demo's sample repository, "" for none.
	Sample string
	Log    *slog.Logger
	// Ready is called once: with nil when the home's socket answers.
	Ready func(error)
	// Web receives where the page is once the home's socket answers, because it names
	// commands that ask there; nil: no HTTP. UI is the built page.
	Web func(Page)
	UI  fs.FS
	// Leaves receives at the end which executors go on; nil: nobody asks.
	Leaves func([]executors.Left)
	// Hook observes durable steps, for crash tests.
	Hook sqldb.Hook
}

// System is the whole program of one home, built and not yet running.
type System struct {
	sweep  func(context.Context) error // of what is overdue, before anybody is heard
	parts  []named                     // in the order in which they start
	socket daemon.Config
	ready  func()         // called when the socket answers
	open   []func() error // closed in reverse
}

type named struct {
	name string
	service.Part
}

// New builds the graph, each part from those above it. What it opens, Close closes;
// nothing runs before Run.
func New(ctx context.Context, o Options) (_ *System, err error) {
	cfg, log, s := o.Config, o.Log, &System{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	box := isolation(context.WithoutCancel(ctx), cfg.Executor, log)
	spans, err := tracing.Start(ctx)
	if err != nil {
		return nil, err
	}
	s.closes(func() error { // the end does not wait long for a collector that is away
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = spans.Stop(ctx)
		return nil
	})
	meter := newMeter(spans)

	// The home and its store.
	owner, err := own(ctx, o)
	if err != nil {
		return nil, err
	}
	s.closes(owner.Release)
	db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(cfg.Home, "thole.db"), Log: log, Took: meter.commit, Hook: o.Hook})
	if err != nil {
		return nil, err
	}
	s.closes(db.Close)

	// Machines.
	books, err := openBooks(cfg, db, meter, log)
	if err != nil {
		return nil, err
	}
	threads, err := thread.New(thread.Config{Store: db.Threads(), Policies: policies(cfg.Asks), Admit: books.admit, KeepEvents: cfg.Threads.KeepEvents, Slow: meter.slow, Spent: meter.spent, Log: log})
	if err != nil {
		return nil, err
	}
	results, err := newDeliveries(cfg, db, meter, log)
	if err != nil {
		return nil, err
	}
	sessions := session.New(db.LoginSessions(), nil)
	secrets, err := newVault(cfg, db)
	if err != nil {
		return nil, err
	}

	// Ports.
	agents := registry.New(Providers(cfg.Providers), registry.OpenProbes(filepath.Join(cfg.Home, "probes.json")), log)
	records := calls.New(filepath.Join(cfg.Home, "calls"), func(gateway.Claim) bool { return cfg.Gateway.Record })
	var dispatcher *dispatch.Dispatcher // the tools of agents ask it
	models, creds, pays, err := s.models(o, db, books.ledger, secrets, records, agentTools(cfg, db, threads, results.machine, agents, func() *dispatch.Dispatcher { return dispatcher }, log))
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	runner := newGit(self, box)
	sample, err := newSample(ctx, o.Sample, runner, log)
	if err != nil {
		return nil, err
	}
	branches, states := newBranches(cfg, db, runner, forgeTokens(secrets), log), newShelf(cfg, runner, forgeTokens(secrets), log)
	files, manifests, err := s.openFiles(cfg, db, self, branches, log)
	if err != nil {
		return nil, err
	}
	sources, err := newSources(cfg, db, files, manifests, branches, sample, log)
	if err != nil {
		return nil, err
	}
	shell := ownShell(cfg)
	driver, err := localDriver(cfg, self, agents, box, shell, o.Sample != "", log)
	if err != nil {
		return nil, err
	}

	// What moves turns and results.
	dispatcher = dispatch.New(dispatch.Config{
		Alone: true, // this process owns the home, and the store is the home's
		Owner: fmt.Sprintf("pid-%d", os.Getpid()), Queue: db.Queue(), Threads: threads, Rows: db.Executors(), Driver: driver,
		Workspaces: files, Changes: states, Credentials: creds, Budgets: books.ledger, Info: agents.Info,
		Scope: executor.Scope(cfg.Executor.Scope), Room: room(cfg.Executor), Limits: queue.Limits{Total: cfg.Turns.MaxRunning, PerUser: cfg.Turns.MaxPerUser},
		TurnTimeout: cfg.Turns.Timeout, IdleStop: cfg.Executor.IdleStop, MaxLive: cfg.Executor.MaxLive, SyncTimeout: cfg.Executor.SyncTimeout, RemoveAfter: cfg.Executor.RemoveAfter,
		SweepEvery: cfg.Executor.SweepEvery, StartsPerSec: cfg.Executor.StartsPerSec, Meter: meter, Log: log,
	})
	threads.Attach(dispatcher)
	channels := newChannels(cfg, db, results, threads, log)
	deliver := results.newDriver(channels.byTarget())

	// Servers.
	contract, err := appserver.New(appserver.Config{
		Threads: threads, Providers: offered(agents, o.Demo), Settle: agents.Settle, Defaults: db.Defaults(), Sources: sources, Home: cfg.Home, Version: version.Version, Log: log,
	})
	if err != nil {
		return nil, err
	}
	asked := executors.New(executors.Config{Threads: threads, Dispatcher: dispatcher, Rows: db.Executors(), Queue: db.Queue(), Driver: driver, Files: files, Home: cfg.Home,
		Egress: egress.Config{Policy: egress.Policy(cfg.Egress.Policy), Names: cfg.Egress.Names, Private: cfg.Egress.Private},
		Calls:  records, Recording: cfg.Gateway.Record, Shell: shell, Log: log})
	changed := newChanges(cfg, states, threads, db, driver, files, forgeTokens(secrets), log)
	if err := results.runInside(cfg.Home, threads, dispatcher, driver, asked); err != nil {
		return nil, err
	}
	methods := results.methods(deliver, secrets)
	people := books.service(threads)
	var page *web
	if o.Web != nil {
		if page, err = s.openWeb(ctx, o, db, sessions, threads, agents, results, methods, asked, changed, people, meter, secrets, pays.connections, sources); err != nil {
			return nil, err
		}
	}
	others := http.NewServeMux()
	others.HandleFunc("GET "+executors.TerminalPath("{thread}"), asked.Terminal)
	remote := ws.NewServer(ws.Options{}, func(ctx context.Context, s jsonrpc.Stream) { _ = contract.Serve(ctx, s, thole.ListenerActor) })
	s.closes(func() error { remote.Stop(); return nil })
	others.Handle("GET "+daemon.ListenerPath, remote)
	others.HandleFunc("GET "+changes.PatchPath("{thread}"), changed.ServePatch)
	methods = maps.Clone(methods)
	for _, more := range []map[string]daemon.Method{asked.Methods(), changed.Methods(), channels.methods(), daemon.TokenMethods(sessions), daemon.SecretMethods(secrets, time.Now), daemon.SpendMethods(people), daemon.Credentials{Threads: threads, Routes: pays.routes, Shells: pays.shells}.Methods(), page.methods()} {
		maps.Copy(methods, more)
	}

	s.sweep = func(ctx context.Context) error {
		if err := provider.SweepLoginRooms(filepath.Join(cfg.Home, config.LoginRooms)); err != nil {
			log.Warn("what a login left could not be removed", "err", err)
		}
		if err := os.RemoveAll(storedFiles(cfg.Home)); err != nil {
			log.Warn("files that were looked at could not be removed", "err", err)
		}
		return startAll(results.sweep, books.reconcile)(ctx)
	}
	s.runs("providers", agents)
	s.runs("model gateway", models) // before the first turn, and after the last
	s.runs("collection", background(files.Collect))
	s.runs("sweep of repositories", background(branches.SweepAlways))
	gone := func(ctx context.Context, id thole.ThreadID) bool {
		_, err := db.Threads().Thread(ctx, id)
		return errors.Is(err, thread.ErrNone)
	}
	s.runs("collection of records", background(func(ctx context.Context) { records.Collect(ctx, gone) }))
	s.runs("collection of shelves", background(func(ctx context.Context) { states.Collect(ctx, gone) }))
	s.runs("threads", &part{start: startAll(threads.Start, dispatcher.Start), stop: stopThreads(threads, dispatcher, asked, o.Leaves, log)})
	s.runs("object store", background(func(ctx context.Context) {
		files.Watch(ctx, func(ctx context.Context) {
			if err := dispatcher.Resync(ctx); err != nil {
				log.Warn("sync what waited for the object store", "err", err)
			}
		})
	}))
	s.runs("contract", &part{stop: contract.Close})
	s.runs("channels", &part{start: channels.start, stop: channels.stop})
	if page != nil {
		s.runs("http", &part{start: page.start, stop: page.stop})
	}
	s.runs("deliveries", background(func(ctx context.Context) { _ = deliver.Run(ctx) }))
	s.runs("jobs in threads", background(results.inside.Run))
	s.runs("sweep of results", background(results.sweepAlways))
	s.runs("key of secrets", background(func(ctx context.Context) {
		if err := secrets.Resume(ctx); err != nil && ctx.Err() == nil {
			log.Error("the change of the vault's key was not finished", "err", err)
		}
	}))
	s.runs("sweep of logins", background(func(ctx context.Context) { sweepLogins(ctx, sessions, log) }))
	s.ready = func() { page.announce(o.Web) }
	s.socket = daemon.Config{
		Owner: owner, Role: o.Role, Methods: methods, OtherPaths: others, Idle: o.Idle, Log: log,
		Waiting: map[string]bool{wire.JobWait: true, executors.MethodSaved: true, executors.MethodStopped: true, changes.MethodUndone: true},
		Attach:  func(ctx context.Context, s jsonrpc.Stream) { _ = contract.Serve(ctx, s, thole.LocalActor) },
		Staying: func(ctx context.Context, idle time.Duration) (string, error) {
			if why := asked.Staying(); why != "" {
				return why, nil
			}
			if contract.Connections() > 0 {
				return "a client is attached", nil
			}
			if why := channels.keeper.Staying(ctx); why != "" {
				return why, nil
			}
			return results.staying(ctx, deliver, idle)
		},
	}
	return s, nil
}

// closes has something closed at the end, before what was opened earlier.
func (s *System) closes(f func() error) { s.open = append(s.open, f) }

// runs has a part run, from after the start of the parts before it until before they end.
func (s *System) runs(name string, p service.Part) { s.parts = append(s.parts, named{name, p}) }

// Run does what is overdue, starts the parts in order, and serves the home until it
// is idle, stopped or handed over. Then it stops them in reverse.
func (s *System) Run(ctx context.Context, ready func()) (reason daemon.StopReason, err error) {
	if err := s.sweep(ctx); err != nil {
		return "", err
	}
	alive := context.WithoutCancel(ctx) // parts end by being stopped
	g := service.New(alive)
	defer func() { err = errors.Join(err, g.Stop(alive)) }()
	for _, p := range s.parts {
		if err := g.Start(p.name, p); err != nil {
			return "", err
		}
	}
	socket := s.socket
	socket.Ready = func() { s.ready(); ready() }
	return daemon.Serve(ctx, socket)
}

// Close closes what New opened.
func (s *System) Close() error {
	var err error
	for i := len(s.open) - 1; i >= 0; i-- {
		err = errors.Join(err, s.open[i]())
	}
	s.open = nil
	return err
}

// Run builds a system and runs it to its end.
func Run(ctx context.Context, o Options) (reason daemon.StopReason, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ready := sync.OnceFunc(func() {
		if o.Ready != nil {
			o.Ready(err)
		}
	})
	defer ready()
	s, err := New(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Run(ctx, ready)
}
