//go:build linux

package redteam

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
	"golang.org/x/sys/unix"
)

// canary is a tree of the host's that nothing may change and nobody may open a
// socket of.
type canary struct {
	testing.TB
	dir     string
	before  string
	knocked atomic.Int64
}

func newCanary(t testing.TB) *canary {
	t.Helper()
	c := &canary{TB: t, dir: lab.Open(t)}
	for name, text := range map[string]string{"precious": "of the host", "folder/inside": "too", "folder/deep/er": "too"} {
		path := filepath.Join(c.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("unix", filepath.Join(c.dir, "door"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.knocked.Add(1)
			conn.Close()
		}
	}()
	c.before = c.state()
	return c
}

// state is all that a change of the canary shows in. Times of change and counts of
// links are not: a second name changes them.
func (c *canary) state() string {
	c.Helper()
	var b strings.Builder
	err := filepath.WalkDir(c.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		sys := st.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&b, "%s %s %d:%d %s", strings.TrimPrefix(path, c.dir), st.Mode(), sys.Uid, sys.Gid, st.ModTime().Format(time.RFC3339Nano))
		if st.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(text))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		c.Error(err)
	}
	return b.String()
}

// plants are what stands at a name instead of what belongs there.
func (c *canary) plants() map[string]func(at string) error {
	link := func(to string) func(string) error {
		return func(at string) error { return os.Symlink(filepath.Join(c.dir, to), at) }
	}
	out := map[string]func(string) error{
		"link": link("precious"), "link to a directory": link("folder"), "link to a door": link("door"),
		"pipe":      func(at string) error { return unix.Mkfifo(at, 0o666) },
		"socket":    func(at string) error { return unix.Mknod(at, unix.S_IFSOCK|0o666, 0) },
		"hard link": func(at string) error { return os.Link(filepath.Join(c.dir, "precious"), at) },
	}
	if os.Getuid() == 0 { // one that never ends
		out["device"] = func(at string) error { return unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) }
	}
	return out
}

// shared are the directories that both the agent and the server use.
var shared = []string{"workspace", "data", "auth", "home", "tmp"}

// patience is how long one call may take. A machine that runs all tests at once is
// no judge of seconds: there it only has to end.
func patience() time.Duration {
	if soak() {
		return 5 * time.Second
	}
	return 2 * time.Minute
}

func soak() bool { return os.Getenv("THOLE_SOAK") == "1" }

// place is one executor with what the server does to it.
type place struct {
	*testing.T
	canary  *canary
	driver  *local.Driver
	manager *manager.Manager
	at      string // its directory
	target  manager.Target
	info    executor.Info
	client  *executorclient.Client
}

func newPlace(t *testing.T, c *canary) *place {
	t.Helper()
	root, err := os.MkdirTemp("", "ex") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(context.Background(), sqldb.Config{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	objects, err := dir.Open(t.TempDir(), web.URL)
	if err != nil {
		t.Fatal(err)
	}
	handler = objects.Handler()
	id := thole.NewID[thole.ExecutorID](time.Now())
	p := &place{
		T: t, canary: c, at: filepath.Join(root, string(id)), driver: local.New(local.Config{Root: root, Binary: lab.Thole(t), Bwrap: lab.Bwrap(t), StartTimeout: time.Minute}),
		manager: manager.New(manager.Config{Rows: db.Workspaces(), Objects: objects}),
		target:  manager.Target{Thread: thole.NewID[thole.ThreadID](time.Now()), Owner: thole.DefaultOwner, Executor: id},
	}
	t.Cleanup(func() {
		p.hangUp()
		if err := p.driver.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
		web.Close()
		_ = errors.Join(objects.Close(), db.Close(), os.RemoveAll(root))
	})
	if err := p.driver.Create(t.Context(), executor.Spec{ID: id, Thread: p.target.Thread, Scope: executor.ScopeThread}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) hangUp() {
	if p.client != nil {
		p.client.Close()
	}
	p.client, p.target.Side = nil, nil
}

// call does one thing to the executor, in time and with the canary as it was.
func (p *place) call(name string, do func(context.Context) error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), patience())
	defer cancel()
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			p.Errorf("%s: %v", name, err)
		}
	case <-time.After(patience() + time.Second):
		p.Fatalf("%s is stuck", name)
	}
	if took := time.Since(began); took > patience() {
		p.Errorf("%s took %s", name, took)
	}
	if now := p.canary.state(); now != p.canary.before {
		p.Fatalf("%s changed the host:\n%s\nit was\n%s", name, now, p.canary.before)
	}
	if p.canary.knocked.Load() > 0 {
		p.Fatalf("%s spoke to a socket of the host", name)
	}
}

func (p *place) start(ctx context.Context) (err error) {
	if p.info, err = p.driver.Start(ctx, p.target.Executor); err != nil {
		return err
	}
	p.hangUp()
	p.client = executorclient.Dial(p.info.Endpoint, p.info.Token)
	p.target.Side = workspace.Remote(p.client)
	return p.manager.Link(ctx, p.target)
}

func (p *place) stop(ctx context.Context) error {
	p.hangUp()
	return p.driver.Stop(ctx, p.target.Executor)
}

func (p *place) sync(ctx context.Context) error {
	t := p.target
	if t.Side == nil {
		var err error
		if t.Dir, err = p.driver.WorkspaceDir(t.Executor); err != nil {
			return err
		}
		if t.Data, err = p.driver.DataDir(t.Executor); err != nil {
			return err
		}
	}
	_, err := p.manager.Sync(ctx, t, "test")
	return err
}

// names are those that are in the shared directories once an agent has worked, and
// those that the server looks for.
func (p *place) names() (out []string) {
	p.Helper()
	for _, sub := range shared {
		err := filepath.WalkDir(filepath.Join(p.at, sub), func(path string, _ fs.DirEntry, err error) error {
			if rel, _ := filepath.Rel(p.at, path); rel != sub && err == nil {
				out = append(out, rel)
			}
			return err
		})
		if err != nil {
			p.Fatal(err)
		}
		for _, name := range []string{"token", "executord.log", "d.sock", "spec.json", "passwd", "codex", "claude", "opencode", "codex/auth.json", "claude/.credentials.json", "index", "stage"} {
			out = append(out, filepath.Join(sub, name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// work is a turn in which the agent makes files and the platform lays its own.
func (p *place) work() {
	p.Helper()
	if err := p.start(p.Context()); err != nil {
		p.Fatal(err)
	}
	if err := p.manager.Restore(p.Context(), p.target); err != nil {
		p.Fatal(err)
	}
	id := thole.NewID[thole.TurnID](time.Now())
	settings := event.Settings{Profile: thole.ProfileFull}
	if _, err := p.client.Run(p.Context(), wire.RunRequest{
		Turn: provider.Turn{ID: id, Input: thole.Text("sim: run mkdir -p a/b && echo x > a/b/c && echo y > /tmp/t && mkdir -p ~/.cache && echo z > ~/.cache/z"), Settings: settings},
		For:  thole.NewID[thole.TurnID](time.Now()), Thread: p.target.Thread, Provider: "test", Session: wire.SessionSettings{Settings: settings},
	}); err != nil {
		p.Fatal(err)
	}
	if err := p.client.Events(p.Context(), id, 0, func([]wire.LogEvent) error { return nil }); err != nil {
		p.Fatal(err)
	}
	if err := errors.Join(p.sync(p.Context()), p.stop(p.Context())); err != nil {
		p.Fatal(err)
	}
}

// plant puts things at names of the executor, as its agent could that has the run of
// its directories.
func (p *place) plant(kind string, names []string) {
	p.Helper()
	for _, name := range names {
		path := filepath.Join(p.at, name)
		if st, err := os.Lstat(filepath.Dir(path)); err != nil || !st.IsDir() {
			continue // of a name above, which has a cell of its own
		}
		if err := errors.Join(os.RemoveAll(path), p.canary.plants()[kind](path)); err != nil {
			p.Fatal(err)
		}
		if kind == "hard link" {
			continue // its owner is the canary's
		}
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Dir(path), &st); err != nil {
			p.Fatal(err)
		}
		if err := os.Lchown(path, int(st.Uid), int(st.Gid)); err != nil {
			p.Fatal(err)
		}
		if strings.HasPrefix(kind, "link") {
			if _, err := os.Stat(path); err != nil {
				p.Fatalf("%s leads nowhere: nothing is proven: %v", name, err)
			}
		}
	}
}

// life is all that the server does to an executor.
func (p *place) life() {
	p.Helper()
	id := p.target.Executor
	inspect := func(ctx context.Context) error { _, err := p.driver.Inspect(ctx, id); return err }
	p.call("inspect", inspect)
	p.call("start", p.start)
	p.call("inspect", inspect)
	if p.client != nil {
		p.call("sync", p.sync)
	}
	p.call("stop for a restart", p.stop)
	p.call("restart", p.start)
	p.call("stop", p.stop)
	p.call("sync of a stopped one", p.sync)
	p.call("export", func(ctx context.Context) error {
		_, _, err := p.manager.ExportDir(ctx, p.target.Thread, filepath.Join(p.TempDir(), "out"), true)
		return err
	})
	p.call("remove", func(ctx context.Context) error { return p.driver.Remove(ctx, id) })
}

// Whatever an agent puts at whatever name of a directory that it shares with the
// server, nothing that the server does to the executor changes the host, opens a
// socket of it or does not end. One kind of thing, at many names at once, runs
// always; the whole, name by name, with THOLE_SOAK=1.
func TestTheHostIsNotChangedThroughAnExecutor(t *testing.T) {
	t.Parallel()
	lab.EveryUser(t, func(t *testing.T) {
		c := newCanary(t)
		scout := newPlace(t, c)
		scout.work()
		cells := map[string][]string{}
		names := scout.names()
		for i, name := range names {
			cell := "names in the middle"
			switch {
			case soak():
				cell = name
			case i+1 == len(names) || !strings.HasPrefix(names[i+1], name+"/"):
				cell = "all files"
			case strings.Count(name, "/") == 1:
				cell = "all directories"
			}
			cells[cell] = append(cells[cell], name)
		}
		delete(cells, "names in the middle") // they have cells of their own in the whole
		kinds := []string{"link"}
		if soak() {
			kinds = nil
			for kind := range c.plants() {
				kinds = append(kinds, kind)
			}
		}
		slices.Sort(kinds)
		for _, kind := range kinds {
			for cell, names := range cells {
				t.Run(kind+" at "+cell, func(t *testing.T) {
					t.Parallel()
					p := newPlace(t, c)
					p.work()
					p.plant(kind, names)
					p.life()
				})
			}
		}
	})
}
