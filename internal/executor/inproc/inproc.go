// Package inproc runs executors inside this process: a directory per executor and
// the real executord on a socket in it, with the providers it is given. It exists
// for tests, so that they run the shipped queue, dispatcher, wire and event log
// without a process per thread. There is no box, no user of its own and no limit, and
// nothing outlives the process.
package inproc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/workspace/side"
)

// Config makes a Driver.
type Config struct {
	// Root holds the executors. It is short, because it holds their sockets.
	Root      string
	Providers []provider.Provider
	// Network is the meter of every executor; nil: none.
	Network executord.Network
	// Gateway is the socket of the model gateway, "" for none.
	Gateway string
}

// Driver implements executor.Driver and executor.Files. Close ends what runs.
type Driver struct {
	cfg Config

	mu   sync.Mutex // guards what follows
	runs map[thole.ExecutorID]*daemon
}

var (
	_ executor.Driver = (*Driver)(nil)
	_ executor.Files  = (*Driver)(nil)
)

// New makes a driver.
func New(cfg Config) *Driver { return &Driver{cfg: cfg, runs: map[thole.ExecutorID]*daemon{}} }

// daemon is one start of an executord.
type daemon struct {
	server   *executord.Server
	commands *ws.Server
	programs *execserver.Server
	files    *side.Local
	http     *http.Server
	served   chan struct{}
	info     executor.Info
}

// label is what spec.json holds.
type label struct {
	Spec    executor.Spec
	Created time.Time
}

func (d *Driver) dir(id thole.ExecutorID, elem ...string) string {
	return filepath.Join(append([]string{d.cfg.Root, string(id)}, elem...)...)
}

// Name implements executor.Driver.
func (d *Driver) Name() string { return "inproc" }

// Check implements executor.Driver.
func (d *Driver) Check(context.Context) error { return os.MkdirAll(d.cfg.Root, 0o700) }

// Create implements executor.Driver.
func (d *Driver) Create(_ context.Context, spec executor.Spec) error {
	if !thole.ValidUUID(string(spec.ID)) {
		return thole.Errorf(thole.CodeInvalid, "executor id %q is not a UUID", spec.ID)
	}
	if _, err := d.label(spec.ID); !errors.Is(err, executor.ErrNotFound) {
		return err
	}
	data, err := json.Marshal(label{Spec: spec, Created: time.Now()})
	if err == nil {
		err = errors.Join(os.MkdirAll(d.dir(spec.ID, "workspace"), 0o700), os.MkdirAll(d.dir(spec.ID, "data"), 0o700))
	}
	if err == nil {
		err = atomicfile.Write(d.dir(spec.ID, "spec.json"), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("create executor: %w", err)
	}
	return nil
}

func (d *Driver) label(id thole.ExecutorID) (l label, err error) {
	data, err := os.ReadFile(d.dir(id, "spec.json"))
	if errors.Is(err, os.ErrNotExist) {
		return l, executor.ErrNotFound
	}
	if err != nil {
		return l, err
	}
	return l, strictjson.Unmarshal(data, &l)
}

// Start implements executor.Driver.
func (d *Driver) Start(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	info, err := d.Inspect(ctx, id)
	switch {
	case err != nil || info.State == executor.Running:
		return info, err
	case info.State == executor.Missing:
		return info, executor.ErrNotFound
	}
	run, err := d.boot(ctx, info)
	if err != nil {
		return info, thole.Errorf(thole.CodeUnavailable, "start executor: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[id] = run
	return run.info, nil
}

// boot starts an executord and asks it who it is.
func (d *Driver) boot(ctx context.Context, info executor.Info) (*daemon, error) {
	dirs := executord.Dirs{}
	for name, dir := range map[string]*string{"workspace": &dirs.Workspace, "data": &dirs.Data, "state": &dirs.State, "auth": &dirs.Auth, "home": &dirs.Home, "tmp": &dirs.Tmp} {
		*dir = d.dir(info.ID, name)
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return nil, err
		}
	}
	synced := dirs.Workspace
	l, err := d.label(info.ID)
	if err != nil {
		return nil, err
	}
	if l.Spec.Files.InPlace() {
		synced, dirs.Workspace = "", l.Spec.Files.Dir
	}
	run := &daemon{info: info, served: make(chan struct{})}
	run.files = side.New(side.Config{Dir: synced, Data: dirs.Data, State: filepath.Join(dirs.State, "workspace"), Home: dirs.Home})
	run.info.Token = rand.Text()
	proxy, _ := d.cfg.Network.(*egress.Proxy) // it decides too, where it is one
	run.programs = execserver.New(execserver.Config{Environ: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dirs.Home}})
	run.commands = ws.NewServer(ws.Options{}, func(ctx context.Context, s jsonrpc.Stream) { _ = run.programs.Serve(ctx, s) })
	run.server, err = executord.New(executord.Config{Dirs: dirs, Token: run.info.Token, Providers: d.cfg.Providers, Workspace: side.Handler(run.files), Exec: run.commands, Commands: run.programs.Running, Version: "inproc", Network: d.cfg.Network, Proxy: proxy, Gateway: d.cfg.Gateway})
	if err != nil {
		return nil, err
	}
	sock := d.dir(info.ID, "d.sock")
	run.info.Endpoint = "unix:" + sock
	ln, err := net.Listen("unix", sock)
	if err != nil {
		return nil, errors.Join(err, run.server.Close())
	}
	run.http = &http.Server{Handler: run.server.Handler(), ReadHeaderTimeout: 10 * time.Second, ConnContext: ws.ConnContext}
	go func() {
		defer close(run.served)
		_ = run.http.Serve(ln)
	}()
	client := executorclient.Dial(run.info.Endpoint, run.info.Token)
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return nil, errors.Join(err, run.end())
	}
	run.info.State, run.info.Boot, run.info.Gateway, run.info.Old = executor.Running, status.Boot, status.Gateway, status.Revision < wire.Revision
	return run, nil
}

// end stops the turns and their agents, then the server.
func (r *daemon) end() error {
	r.commands.Stop()
	r.programs.Close()
	err := r.server.Close()
	err = errors.Join(err, r.http.Close())
	<-r.served
	r.files.Close()
	return err
}

// Stop implements executor.Driver.
func (d *Driver) Stop(_ context.Context, id thole.ExecutorID) error {
	d.mu.Lock()
	run := d.runs[id]
	delete(d.runs, id)
	d.mu.Unlock()
	if run == nil {
		return nil
	}
	return run.end()
}

// Close stops every executor.
func (d *Driver) Close() error {
	d.mu.Lock()
	ids := make([]thole.ExecutorID, 0, len(d.runs))
	for id := range d.runs {
		ids = append(ids, id)
	}
	d.mu.Unlock()
	var err error
	for _, id := range ids {
		err = errors.Join(err, d.Stop(context.Background(), id))
	}
	return err
}

// Remove implements executor.Driver.
func (d *Driver) Remove(ctx context.Context, id thole.ExecutorID) error {
	if err := d.Stop(ctx, id); err != nil {
		return err
	}
	return os.RemoveAll(d.dir(id))
}

// Inspect implements executor.Driver.
func (d *Driver) Inspect(_ context.Context, id thole.ExecutorID) (executor.Info, error) {
	l, err := d.label(id)
	if errors.Is(err, executor.ErrNotFound) {
		return executor.Info{ID: id, State: executor.Missing}, nil
	}
	if err != nil {
		return executor.Info{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if run := d.runs[id]; run != nil {
		return run.info, nil
	}
	return executor.Info{ID: id, Thread: l.Spec.Thread, Created: l.Created, State: executor.Stopped}, nil
}

// List implements executor.Driver.
func (d *Driver) List(ctx context.Context) ([]executor.Info, error) {
	entries, err := os.ReadDir(d.cfg.Root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list executors: %w", err)
	}
	var out []executor.Info
	for _, e := range entries {
		info, err := d.Inspect(ctx, thole.ExecutorID(e.Name()))
		if err != nil {
			return nil, err
		}
		if info.State != executor.Missing {
			out = append(out, info)
		}
	}
	return out, nil
}

// WorkspaceDir implements executor.Files.
func (d *Driver) WorkspaceDir(id thole.ExecutorID) (string, error) {
	l, err := d.label(id)
	if err != nil || l.Spec.Files.InPlace() {
		return "", err
	}
	return d.dir(id, "workspace"), nil
}

// CheckFiles implements executor.InPlace.
func (d *Driver) CheckFiles(_ context.Context, id thole.ExecutorID) error {
	l, err := d.label(id)
	if err == nil && l.Spec.Files.InPlace() {
		_, err = os.Stat(l.Spec.Files.Dir)
	}
	if errors.Is(err, executor.ErrNotFound) {
		err = nil
	}
	return err
}

// DataDir implements executor.Files.
func (d *Driver) DataDir(id thole.ExecutorID) (string, error) {
	if _, err := d.label(id); err != nil {
		return "", err
	}
	return d.dir(id, "data"), nil
}
