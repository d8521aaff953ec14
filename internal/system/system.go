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
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/audit/anchor"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/daemon/executors"
	listed "github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/calls"
	people "github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/transcript"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/registry"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/service"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/tracing"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
)

// Options say which parts of the graph run.
type Options struct {
	Config *config.Config
	Role   string // "daemon", started on demand, "up" or "serve"
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
	ready  func()                // called when the socket answers
	open   []func() error        // closed in reverse
	lost   chan struct{}         // closed when another server has the store
	drain  func(context.Context) // gives back at once what other servers can take; nil: there is none
}

type named struct {
	name string
	service.Part
}

// New builds the graph, each part from those above it. What it opens, Close closes;
// nothing runs before Run.
func New(ctx context.Context, o Options) (_ *System, err error) {
	cfg, log, s := o.Config, o.Log, &System{lost: make(chan struct{})}
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
	db, self, err := openStore(ctx, cfg, sqldb.Config{Log: log, Took: meter.commit, Hook: o.Hook})
	if err != nil {
		return nil, err
	}
	s.closes(db.Close)

	// Machines.
	trail := audit.New(db.Audit(), anchor.Dir(filepath.Join(cfg.Home, anchor.DirName)), nil, log)
	if err := endRevived(ctx, db, trail, log); err != nil {
		return nil, err
	}
	member, err := s.newMember(self, cfg, db, log)
	if err != nil {
		return nil, err
	}
	books, err := openBooks(cfg, db, meter, log)
	if err != nil {
		return nil, err
	}
	sessions := session.New(db.LoginSessions(), nil)
	var threads *thread.Machine // which asks accounts for rights
	accounts := people.New(people.Config{Store: db.Identities(), Ended: sessions.Ended, Disabled: func(ctx context.Context, user thole.UserID) error { return threads.StopAll(ctx, user) }})
	s.closes(func() error { accounts.Close(); return nil })
	threads, err = thread.New(thread.Config{Store: db.Threads(), Access: accounts.Access, Hidden: trail.Hidden, Policies: policies(cfg.Asks), Admit: books.admit, KeepEvents: cfg.Threads.KeepEvents, Slow: meter.slow, Spent: meter.spent, Log: log})
	if err != nil {
		return nil, err
	}
	results, err := newDeliveries(cfg, db, accounts.Access, meter, log)
	if err != nil {
		return nil, err
	}
	secrets, err := newVault(cfg, db, accounts.Can)
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
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	runner := newGit(program, box)
	sample, err := newSample(ctx, o.Sample, runner, log)
	if err != nil {
		return nil, err
	}
	branches, states := newBranches(cfg, db, runner, forgeTokens(secrets), log), newShelf(cfg, runner, forgeTokens(secrets), log)
	files, manifests, err := s.openFiles(cfg, db, program, branches, log)
	if err != nil {
		return nil, err
	}
	sources, err := newSources(cfg, db, files, manifests, branches, sample, log)
	if err != nil {
		return nil, err
	}
	shell := ownShell(cfg)
	driver, err := localDriver(cfg, program, self.shared(), agents, box, shell, o.Sample != "", log)
	if err != nil {
		return nil, err
	}

	// What moves turns and results.
	rows := db.ExecutorsOn(self.engine())
	dispatcher = dispatch.New(dispatch.Config{
		Alone: self.engine() == "", // this process owns the home, and the store is the home's
		Owner: self.owner(), Engine: self.engine(), Queue: db.Queue(), Threads: threads, Rows: rows, Driver: driver,
		Workspaces: files, Changes: states, Credentials: creds, Budgets: books.ledger, Info: agents.Info,
		Scope: executor.Scope(cfg.Executor.Scope), Room: room(cfg.Executor), Limits: queue.Limits{Total: cfg.Turns.MaxRunning, PerUser: cfg.Turns.MaxPerUser},
		TurnTimeout: cfg.Turns.Timeout, IdleStop: cfg.Executor.IdleStop, MaxLive: cfg.Executor.MaxLive, SyncTimeout: cfg.Executor.SyncTimeout, RemoveAfter: cfg.Executor.RemoveAfter,
		SweepEvery: cfg.Executor.SweepEvery, StartsPerSec: cfg.Executor.StartsPerSec, Meter: meter, Log: log,
	})
	threads.Attach(dispatcher)
	channels := newChannels(cfg, db, results, threads, log)
	desktop := newDesktop(cfg, results, member == nil)
	deliver := results.newDriver(channels.byTarget(), heartbeats(desktop), member)

	// Servers.
	near, err := s.openPeers(ctx, cfg, member, rows, log)
	if err != nil {
		return nil, err
	}
	asked := executors.New(executors.Config{Threads: threads, Dispatcher: dispatcher, Rows: rows, Queue: db.Queue(), Driver: driver, Elsewhere: near.executor, Files: files, Home: cfg.Home,
		Egress: egress.Config{Policy: egress.Policy(cfg.Egress.Policy), Names: cfg.Egress.Names, Private: cfg.Egress.Private},
		Calls:  records, Recording: cfg.Gateway.Record, Jobs: results.machine.Commands, Shell: shell, Audit: trail, Log: log})
	contract, err := appserver.New(appserver.Config{
		Threads: threads, Providers: offered(agents, o.Demo), Settle: agents.Settle, Defaults: db.Defaults(), Inventory: newInventory(cfg, o.Demo, asked), Sources: sources, Executors: asked, Audit: trail, Account: pays.account, Home: cfg.Home, Version: version.Version, Log: log,
	})
	if err != nil {
		return nil, err
	}
	changed := newChanges(cfg, states, threads, db, driver, files, forgeTokens(secrets), trail, log)
	if err := results.runInside(cfg.Home, self.engine(), threads, dispatcher, rows, driver, asked); err != nil {
		return nil, err
	}
	api := results.service(deliver, secrets, trail)
	methods := api.Methods()
	hosts := newPlugins(db, channels, results, deliver, api, member == nil)
	people := books.service(threads, accounts)
	var page *web
	if o.Web != nil {
		if page, err = s.openWeb(ctx, o, db, self, near, sessions, accounts, threads, contract, agents, results, methods, asked, changed, people, meter, secrets, trail, pays.connections, sources, dispatcher.Alive); err != nil {
			return nil, err
		}
	}
	if err := join(ctx, member, page); err != nil {
		return nil, err
	}
	others := http.NewServeMux()
	others.HandleFunc("GET "+executors.TerminalPath("{thread}"), near.orElsewhere(asked.Terminal))
	remote := ws.NewServer(ws.Options{}, func(ctx context.Context, s jsonrpc.Stream) { _ = contract.Serve(ctx, s, thole.ListenerActor) })
	s.closes(func() error { remote.Stop(); return nil })
	others.Handle("GET "+daemon.ListenerPath, remote)
	others.HandleFunc("GET "+changes.PatchPath("{thread}"), near.orElsewhere(changed.ServePatch))
	others.HandleFunc("GET "+transcript.Path("{thread}"), func(w http.ResponseWriter, r *http.Request) {
		transcript.Serve(w, r, threads, thole.LocalActor, thole.ThreadID(r.PathValue("thread")), func(err error) { jsonhttp.Error(w, err) })
	})
	methods = maps.Clone(methods)
	for _, more := range []map[string]daemon.Method{near.wherever(asked.Methods(), changed.Methods()), listed.Service{Threads: threads}.Methods(), channels.methods(), hosts.Methods(), desktop.Methods(), daemon.TokenMethods(sessions, accounts), daemon.IdentityMethods(accounts, page.base), daemon.AuditMethods(trail, accounts.Require), daemon.ShareMethods(sessions, threads, page.base), daemon.SecretMethods(secrets, time.Now), daemon.SpendMethods(people), daemon.Credentials{Threads: threads, Routes: pays.routes, Shells: pays.shells}.Methods(), page.methods()} {
		maps.Copy(methods, more)
	}
	if err := daemon.Undecided(methods); err != nil {
		return nil, err
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
	s.runs("audit head", background(trail.Run)) // before anything is recorded, and after the last of it
	if member != nil {
		s.runs("server", member) // before anything is claimed, and after everything was given back
	}
	s.runs("providers", agents)
	s.runs("model gateway", models) // before the first turn, and after the last
	roles := cfg.Server
	if roles.Has(roster.Sweeper) {
		s.runs("collection", duty(member, "collection", files.Collect))
	}
	if member != nil {
		s.runs("logins that ended", background(func(ctx context.Context) { endGone(ctx, db, sessions, log) }))
		if roles.Has(roster.Sweeper) {
			s.runs("calls of dead servers", duty(member, "calls", books.reconcileDead))
		}
	}
	s.runs("sweep of repositories", background(branches.SweepAlways))
	gone := func(ctx context.Context, id thole.ThreadID) bool {
		_, err := db.Threads().Thread(ctx, id)
		return errors.Is(err, thread.ErrNone)
	}
	s.runs("collection of records", background(func(ctx context.Context) { records.Collect(ctx, gone) }))
	s.runs("collection of shelves", background(func(ctx context.Context) { states.Collect(ctx, gone) }))
	if n := newNotifier(cfg, db, self, threads, page, log); n != nil {
		s.runs("notifications", n) // before the first turn can end, and after the last one
	}
	start := startAll(threads.Start, dispatcher.Start)
	if !roles.Has(roster.Dispatcher) {
		start = threads.Start
	}
	s.runs("threads", &part{start: start, stop: stopThreads(threads, dispatcher, asked, o.Leaves, log)})
	s.runs("object store", background(func(ctx context.Context) {
		files.Watch(ctx, func(ctx context.Context) {
			if err := dispatcher.Resync(ctx); err != nil {
				log.Warn("sync what waited for the object store", "err", err)
			}
		})
	}))
	s.runs("contract", &part{stop: contract.Close})
	s.runs("channels", &part{start: channels.start, stop: channels.stop})
	s.runs("plugins", background(func(ctx context.Context) { sweepPlugins(ctx, hosts, log) }))
	if page != nil {
		s.runs("http", &part{start: page.start, stop: page.stop})
	}
	if near != nil {
		s.runs("other servers", near.serve(page, others, driver))
		s.drain = func(ctx context.Context) {
			if err := member.Drain(ctx); err != nil {
				log.Warn("say that this server drains", "err", err)
			}
			_ = dispatcher.Stop(ctx) // runs go on; their leases are for the others now
		}
	}
	if roles.Has(roster.Delivery) {
		s.runs("deliveries", background(func(ctx context.Context) { _ = deliver.Run(ctx) }))
	}
	if roles.Has(roster.Dispatcher) {
		s.runs("jobs in threads", background(results.inside.Run))
	}
	s.runs("changes of jobs", &part{start: results.watch, stop: results.unwatch})
	s.runs("sweep of results", background(results.sweepAlways))
	s.runs("key of secrets", background(func(ctx context.Context) {
		if err := secrets.Resume(ctx); err != nil && ctx.Err() == nil {
			log.Error("the change of the vault's key was not finished", "err", err)
		}
	}))
	if roles.Has(roster.Sweeper) {
		s.runs("sweep of logins", duty(member, "logins", func(ctx context.Context) { sweepLogins(ctx, sessions, log) }))
	}
	s.ready = func() { page.announce(o.Web) }
	s.socket = daemon.Config{
		Audit: trail,
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
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-s.lost:
			end()
		case <-ctx.Done():
		}
	}()
	reason, err = daemon.Serve(ctx, socket)
	if s.drain != nil {
		s.drain(alive)
	}
	select {
	case <-s.lost:
		return reason, errors.Join(errLost(), err)
	default:
		return reason, err
	}
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
