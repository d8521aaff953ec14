package system

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/service"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/tracing"
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
	Log  *slog.Logger
	// Ready is called once: with nil when the home's socket answers.
	Ready func(error)
	// Web is told where the page is once the home's socket answers, because it names
	// commands that ask there; nil: no HTTP. UI is the built page.
	Web func(Page)
	UI  fs.FS
	// Leaves is told at the end which executors go on; nil: nobody asks.
	Leaves func([]Left)
	// Hook observes durable steps, for crash tests.
	Hook sqldb.Hook
}

// Run owns the home and serves it until it is told to stop.
func Run(ctx context.Context, o Options) (daemon.StopReason, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	spans, err := tracing.Start(ctx)
	if err != nil {
		return "", err
	}
	defer func() { // the end does not wait long for a collector that is away
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = spans.Stop(ctx)
	}()
	m := newMeter(spans)
	box := isolation(context.WithoutCancel(ctx), o.Config.Executor)
	return RunDaemon(ctx, DaemonConfig{
		Home: o.Config.Home, Role: o.Role, Idle: o.Idle, Takeover: o.Takeover, Log: o.Log, Ready: o.Ready, Hook: o.Hook, meter: m,
		Limits: limits(o.Config.Delivery), Template: o.Config.Delivery.Template, MessageBytes: o.Config.Delivery.MessageBytes,
		Build: func(ctx context.Context, db *store.DB, d *deliveries) (*rest, error) {
			return build(ctx, o, db, d, m, box)
		},
	})
}

// build makes everything that is not delivery, in the order in which the parts
// need one another, and starts it. What was started is stopped in reverse.
func build(ctx context.Context, o Options, db *store.DB, d *deliveries, m *meter, box func(context.Context) (string, error)) (_ *rest, err error) {
	ctx = context.WithoutCancel(ctx) // parts end by being stopped
	g := service.New(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Stop(ctx))
		}
	}()
	creds, err := credentials(g, o)
	if err != nil {
		return nil, err
	}
	providers := newRegistry(Providers(o.Config.Providers), openProbes(filepath.Join(o.Config.Home, "probes.json")), o.Log)
	if err := g.Start("providers", providers); err != nil {
		return nil, err
	}
	ws, err := newWorkspaces(o.Config, db, o.Log)
	if err != nil {
		return nil, err
	}
	if err := g.Start("workspaces", &part{stop: func(context.Context) error { return ws.Close() }}); err != nil {
		return nil, err
	}
	if err := g.Start("collection", background(func(ctx context.Context) { ws.collect(ctx, o.Log) })); err != nil {
		return nil, err
	}
	t, err := newThreads(o.Config, db, providers, creds, ws, m, box, o.Log)
	if err != nil {
		return nil, err
	}
	stop := func(ctx context.Context) error {
		err := t.dispatcher.Stop(ctx)
		if o.Leaves != nil {
			left, unknown := t.left(ctx)
			if unknown != nil {
				o.Log.Warn("list what goes on", "err", unknown)
			}
			o.Leaves(left)
		}
		return errors.Join(err, t.stop(ctx))
	}
	if err := g.Start("threads", &part{start: t.start, stop: stop}); err != nil {
		return nil, err
	}
	ws.depot.back = func(ctx context.Context) {
		if err := t.dispatcher.Resync(ctx); err != nil {
			o.Log.Warn("sync what waited for the object store", "err", err)
		}
	}
	if err := g.Start("object store", background(ws.depot.run)); err != nil {
		return nil, err
	}
	contract, err := appserver.New(appserver.Config{
		Threads: t.machine, Providers: providers.offered(o.Demo), Settle: providers.settle, Defaults: db.Defaults(), Home: o.Config.Home, Version: version.Version, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	if err := g.Start("contract", &part{stop: contract.Close}); err != nil {
		return nil, err
	}
	ch := newChannels(o.Config, db, d, t.machine, o.Log)
	if err := g.Start("channels", &part{start: ch.start, stop: ch.stop}); err != nil {
		return nil, err
	}
	methods := t.careMethods()
	maps.Copy(methods, ch.methods())
	sessions := session.New(db.Sessions(), nil)
	maps.Copy(methods, tokenMethods(sessions))
	ready := func() {}
	if o.Web != nil {
		page, login, err := startWeb(ctx, g, o, db, sessions, t, d, m)
		if err != nil {
			return nil, err
		}
		methods[MethodLogin] = login
		ready = func() { o.Web(page) }
	}
	beside := http.NewServeMux()
	beside.HandleFunc("GET "+TerminalPath("{thread}"), t.terminal)
	return &rest{
		ready:    ready,
		beside:   beside,
		methods:  methods,
		channels: ch.byTarget(),
		attach:   func(ctx context.Context, s jsonrpc.Stream) { _ = contract.Serve(ctx, s, thole.LocalActor) },
		staying: func() string {
			if why := t.staying(); why != "" {
				return why
			}
			if contract.Connections() > 0 {
				return "a client is attached"
			}
			return ch.keeper.Staying(ctx)
		},
		stop: g.Stop,
	}, nil
}

// credentials are the user's own logins, or the scripted model's.
func credentials(g *service.Group, o Options) (provider.Credentials, error) {
	if !o.Demo {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "find the agents' logins: %w", err)
		}
		return provider.Login{Home: home, Getenv: os.Getenv, Kept: noteLogins(o.Config.Home, o.Log)}, nil
	}
	d, err := startDemo(o.Config.Home)
	if err != nil {
		return nil, err
	}
	return d, g.Start("scripted model", &part{stop: func(context.Context) error { return d.stop() }})
}

// offered lists what a user may choose: the agents, and in a demo the scripted
// one. The models that codex names are not there in a demo.
func (r *registry) offered(demo bool) func() []provider.Info {
	return func() []provider.Info {
		var out []provider.Info
		for _, info := range r.all() {
			if info.Name != testprovider.Name || demo {
				if info.Name == codex.Name && demo {
					info.Models = nil
				}
				out = append(out, info)
			}
		}
		return out
	}
}

// part makes a service.Part of two functions.
type part struct {
	start, stop func(context.Context) error
}

func (p *part) Start(ctx context.Context) error {
	if p.start == nil {
		return nil
	}
	return p.start(ctx)
}

func (p *part) Stop(ctx context.Context) error { return p.stop(ctx) }

// background is a part that runs until it is stopped.
func background(run func(context.Context)) *part {
	var stop context.CancelFunc
	done := make(chan struct{})
	return &part{
		start: func(ctx context.Context) error {
			ctx, stop = context.WithCancel(ctx)
			go func() {
				defer close(done)
				run(ctx)
			}()
			return nil
		},
		stop: func(context.Context) error {
			stop()
			<-done
			return nil
		},
	}
}
