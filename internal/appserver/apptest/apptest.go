// Package apptest runs a whole contract server inside a test: a real store, the
// thread machine, the in-process runner on the scripted agent, and listeners. It
// exists for tests and is imported by nothing else.
package apptest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/runner"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/internal/transport/ws"
)

// Rig is one server process, as far as its clients can tell.
type Rig struct {
	t    testing.TB
	Home string
	// Server and Threads are those of the present life; Restart replaces them.
	Server  *appserver.Server
	Threads *thread.Machine

	db     *store.DB
	run    *runner.Runner
	cancel context.CancelFunc // of the listeners
	serves sync.WaitGroup
	opts   Options
	down   bool
}

// Options change a rig.
type Options struct {
	// DB is used instead of an own SQLite file; its owner closes it.
	DB *store.DB
	// Home keeps the rig's files; default a temporary directory.
	Home string
	// Instance tells processes on one store apart.
	Instance string
	// Dir is the directory of threads that name none.
	Dir string
}

// New starts a rig that ends with the test.
func New(t testing.TB, o Options) *Rig {
	t.Helper()
	if o.Home == "" {
		o.Home = t.TempDir()
	}
	if o.Instance == "" {
		o.Instance = "here"
	}
	if o.Dir == "" {
		o.Dir = o.Home
	}
	r := &Rig{t: t, Home: o.Home, opts: o}
	r.start()
	t.Cleanup(r.Stop)
	return r
}

func (r *Rig) start() {
	r.t.Helper()
	var err error
	if r.db = r.opts.DB; r.db == nil {
		if r.db, err = store.Open(context.Background(), sqldb.Config{Path: filepath.Join(r.Home, "thole.db")}); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.Threads, err = thread.New(thread.Config{Store: r.db.Threads()}); err != nil {
		r.t.Fatal(err)
	}
	agent := testprovider.New()
	r.run = runner.New(r.Threads, r.Home, thole.ExecutorID(r.opts.Instance))
	r.Threads.Attach(r.run)
	if err := r.Threads.Start(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	infos := []provider.Info{agent.Probe(context.Background())}
	r.Server, err = appserver.New(appserver.Config{
		Threads: r.Threads, Providers: func() []provider.Info { return infos }, DefaultProvider: testprovider.Name, Defaults: r.db.Defaults(),
		Home: r.Home, Dir: r.opts.Dir,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.down = false
}

// Store is the rig's store.
func (r *Rig) Store() *store.DB { return r.db }

// Stream connects a client inside the process.
func (r *Rig) Stream() jsonrpc.Stream {
	a, b := inproc.Pipe()
	r.serves.Go(func() { _ = r.Server.Serve(context.Background(), b, thole.LocalActor) })
	return a
}

// Listen serves a ws or unix address and returns the one that clients dial.
func (r *Rig) Listen(addr, token string) string {
	r.t.Helper()
	a, err := transport.ParseListen(addr)
	if err != nil {
		r.t.Fatal(err)
	}
	ao := transport.AuthOptions{}
	if a.Scheme == transport.WS {
		ao.Mode = transport.ModeNone
	}
	if token != "" {
		file := filepath.Join(r.Home, "token")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			r.t.Fatal(err)
		}
		ao = transport.AuthOptions{Mode: transport.ModeCapability, TokenFile: file}
	}
	auth, err := transport.NewAuth(ao)
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := transport.Listen(a, auth)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	before := r.cancel
	r.cancel = func() {
		cancel()
		if before != nil {
			before()
		}
	}
	server := r.Server
	r.serves.Go(func() {
		_ = ws.NewServer(ws.Options{Auth: auth, IgnoreBinary: true}, func(ctx context.Context, s jsonrpc.Stream) {
			_ = server.Serve(ctx, s, thole.LocalActor)
		}).Serve(ctx, l)
	})
	if a.Scheme == transport.Unix {
		return addr
	}
	return "ws://" + l.Addr().String()
}

// Stop ends the server in the order that loses nothing. It may be repeated.
func (r *Rig) Stop() {
	if r.down {
		return
	}
	r.down = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = r.run.Close(ctx)
	_ = r.Threads.Close(ctx)
	_ = r.Server.Close(ctx)
	if r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
	r.serves.Wait()
	if r.opts.DB == nil {
		if err := r.db.Close(); err != nil {
			r.t.Errorf("close store: %v", err)
		}
	}
}

// Restart ends this life of the server and begins the next on the same home.
func (r *Rig) Restart() {
	r.t.Helper()
	r.Stop()
	r.start()
}
