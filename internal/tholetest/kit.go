// Package tholetest runs all of thole inside a test: a real store, the thread
// machine, queue and dispatcher, executords in this process, the object store, the
// contract server and the HTTP server, and listeners for real clients. Turns take the
// way they take at a user's; only the agent is the scripted one. It is imported by
// tests alone.
package tholetest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/audit/anchor"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor/inproc"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/transport"
	pipe "github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/internal/transport/ws"
)

// Kit is one server process, as far as its clients can see.
type Kit struct {
	t    testing.TB
	Home string
	// Server, Threads, Ledger, Dispatcher and Files are those of the present life; Restart
	// replaces them. Executors and objects outlive it, as they do at a user's.
	Server     *appserver.Server
	Threads    *thread.Machine
	Ledger     *budget.Ledger
	Dispatcher *dispatch.Dispatcher
	Files      *depot.Depot
	Executors  *inproc.Driver
	People     *identity.Machine // with the option
	Trail      *audit.Log

	db      *store.DB
	own     bool // the store is ours to open and to close
	files   *files
	change  []func(*dispatch.Config)
	network executord.Network
	cancel  context.CancelFunc // of the listeners
	serves  sync.WaitGroup
	down    bool
	has     appserver.Inventory
	people  bool
}

// uncounted keeps no metrics.
type uncounted struct{}

func (uncounted) Refused() {}
func (uncounted) Unknown() {}
func (uncounted) Differs() {}

// Option changes a kit.
type Option func(*Kit)

// DB uses a store instead of an SQLite file in the home; its owner closes it.
func DB(db *store.DB) Option { return func(k *Kit) { k.db, k.own = db, false } }

// Home keeps the kit's files there instead of in a temporary directory.
func Home(dir string) Option { return func(k *Kit) { k.Home = dir } }

// Peer is another process of the same deployment: it shares the other's executors
// and objects, and its store if both were given one database.
func Peer(other *Kit) Option {
	return func(k *Kit) { k.Executors, k.files = other.Executors, other.files }
}

// Dispatch changes how turns are dispatched.
func Dispatch(change func(*dispatch.Config)) Option {
	return func(k *Kit) { k.change = append(k.change, change) }
}

// Network makes a meter that of the kit's executors.
func Network(n executord.Network) Option { return func(k *Kit) { k.network = n } }

// Has makes what the kit's agents have.
func Has(i appserver.Inventory) Option { return func(k *Kit) { k.has = i } }

// People decides by users, departments and grants of the store who may do what; without it
// everybody has what is their own.
func People() Option { return func(k *Kit) { k.people = true } }

// New starts a kit that ends with the test.
func New(t testing.TB, options ...Option) *Kit {
	t.Helper()
	k := &Kit{t: t, own: true}
	for _, o := range options {
		o(k)
	}
	if k.Home == "" {
		k.Home = t.TempDir()
	}
	if k.Executors == nil {
		root, err := os.MkdirTemp("", "tt") // short: it holds sockets
		if err != nil {
			t.Fatal(err)
		}
		k.Executors, k.files = inproc.New(inproc.Config{Root: root, Providers: []provider.Provider{testprovider.New()}, Network: k.network}), newFiles(t, filepath.Join(k.Home, "objects"))
		t.Cleanup(func() {
			if err := errors.Join(k.Executors.Close(), os.RemoveAll(root)); err != nil {
				t.Error(err)
			}
		})
	}
	k.start()
	t.Cleanup(k.Stop)
	return k
}

func (k *Kit) start() {
	k.t.Helper()
	ctx := context.Background()
	var err error
	if k.own {
		if k.db, err = store.Open(ctx, sqldb.Config{Path: filepath.Join(k.Home, "thole.db")}); err != nil {
			k.t.Fatal(err)
		}
	}
	k.Trail = audit.New(k.db.Audit(), anchor.Dir(filepath.Join(k.Home, anchor.DirName)), nil, nil)
	k.Ledger = budget.NewLedger(k.db.Budgets(), price.Default, thole.NewID[string], uncounted{}, slog.New(slog.DiscardHandler))
	admit := func(ctx context.Context, o thole.Owner, id thole.ThreadID) error {
		return k.Ledger.Admit(ctx, budget.Place{Owner: o, Thread: id}, time.Now())
	}
	var access thread.Access // nil: to each their own
	if k.people {
		k.People = identity.New(identity.Config{Store: k.db.Identities()})
		k.t.Cleanup(k.People.Close)
		access = k.People.Access
	}
	if k.Threads, err = thread.New(thread.Config{Store: k.db.Threads(), Access: access, Hidden: k.Trail.Hidden, Admit: admit}); err != nil {
		k.t.Fatal(err)
	}
	k.Files = k.files.of(k.db)
	agent := testprovider.New().Probe(ctx)
	cfg := dispatch.Config{
		Alone: k.db.Engine() == sqldb.SQLite, Owner: k.t.Name(), Queue: k.db.Queue(), Threads: k.Threads, Rows: k.db.Executors(), Driver: k.Executors,
		Workspaces: k.Files, Credentials: nobody{}, Budgets: k.Ledger, Limits: queue.Limits{Total: 64}, StartsPerSec: 1000,
		Info: func(_ context.Context, name string) provider.Info {
			if name != agent.Name {
				return provider.Info{}
			}
			return agent
		},
	}
	if testing.Verbose() {
		cfg.Log = slog.New(slog.NewTextHandler(k.t.Output(), nil))
	}
	for _, change := range k.change {
		change(&cfg)
	}
	k.Dispatcher = dispatch.New(cfg)
	k.Threads.Attach(k.Dispatcher)
	if err := errors.Join(k.Threads.Start(ctx), k.Dispatcher.Start(ctx)); err != nil {
		k.t.Fatal(err)
	}
	reach := executors.New(executors.Config{Threads: k.Threads, Dispatcher: k.Dispatcher, Rows: k.db.Executors(), Queue: k.db.Queue(), Driver: k.Executors, Home: k.Home, Audit: k.Trail, Log: slog.New(slog.DiscardHandler)})
	k.Server, err = appserver.New(appserver.Config{
		Threads: k.Threads, Providers: func() []provider.Info { return []provider.Info{agent} }, DefaultProvider: testprovider.Name, Defaults: k.db.Defaults(),
		Home: k.Home, Sources: named{}, Executors: reach, Audit: k.Trail, Inventory: k.has,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.down = false
}

// named takes every source for what it says: nothing is laid in an executor of the kit.
type named struct{}

func (named) Resolve(_ context.Context, _ thole.ThreadID, r source.Request) (thole.Source, error) {
	return thole.Source{Kind: cmp.Or(r.Kind, thole.SourceEmpty), Repo: r.Repo, Ref: r.Ref, Dir: r.Dir, Upload: r.Upload}, nil
}

// nobody has no credentials to give; the scripted agent needs none.
type nobody struct{}

func (nobody) For(context.Context, provider.For) (provider.Grant, error) {
	return provider.Grant{}, nil
}

// Store is the kit's store.
func (k *Kit) Store() *store.DB { return k.db }

// Stream connects a client of the contract inside the process.
func (k *Kit) Stream() jsonrpc.Stream { return k.StreamOf(thole.LocalActor) }

// StreamOf connects a client of another actor.
func (k *Kit) StreamOf(actor thole.Actor) jsonrpc.Stream {
	a, b := pipe.Pipe()
	k.serves.Go(func() { _ = k.Server.Serve(context.Background(), b, actor) })
	return a
}

// Listen serves the contract on a ws or unix address and returns the one that clients
// dial.
func (k *Kit) Listen(addr, token string) string {
	k.t.Helper()
	a, err := transport.ParseListen(addr)
	if err != nil {
		k.t.Fatal(err)
	}
	ao := transport.AuthOptions{}
	if a.Scheme == transport.WS {
		ao.Mode = transport.ModeNone
	}
	if token != "" {
		file := filepath.Join(k.Home, "token")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			k.t.Fatal(err)
		}
		ao = transport.AuthOptions{Mode: transport.ModeCapability, TokenFile: file}
	}
	auth, err := transport.NewAuth(ao)
	if err != nil {
		k.t.Fatal(err)
	}
	l, err := transport.Listen(a, auth)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	before := k.cancel
	k.cancel = func() {
		cancel()
		if before != nil {
			before()
		}
	}
	server := k.Server
	k.serves.Go(func() {
		_ = ws.NewServer(ws.Options{Auth: auth, IgnoreBinary: true}, func(ctx context.Context, s jsonrpc.Stream) {
			_ = server.Serve(ctx, s, thole.LocalActor)
		}).Serve(ctx, l)
	})
	if a.Scheme == transport.Unix {
		return addr
	}
	return "ws://" + l.Addr().String()
}

// Stop ends the server in the order of the program. Turns go on in their executors.
// It may be repeated.
func (k *Kit) Stop() {
	if k.down {
		return
	}
	k.down = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = k.Server.Close(ctx)
	_ = k.Dispatcher.Stop(ctx)
	_ = k.Threads.Close(ctx)
	if k.cancel != nil {
		k.cancel()
		k.cancel = nil
	}
	k.serves.Wait()
	if k.own {
		if err := k.db.Close(); err != nil {
			k.t.Errorf("close store: %v", err)
		}
	}
}

// Restart ends this life of the server and begins the next on the same home.
func (k *Kit) Restart() {
	k.t.Helper()
	k.Stop()
	k.start()
}
