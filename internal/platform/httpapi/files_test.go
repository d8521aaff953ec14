package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

// fullDisk is a depot whose store takes nothing while it is full.
type fullDisk struct {
	dispatch.Workspaces
	full *atomic.Bool
}

func (f fullDisk) Sync(ctx context.Context, t dispatch.ExecutorWorkspace, reason string) (string, error) {
	if f.full.Load() {
		return "", errors.New("no space left in the store")
	}
	return f.Workspaces.Sync(ctx, t, reason)
}

// A session says whether its files are saved, and why not, and saves them when asked.
func TestFilesOfASession(t *testing.T) {
	var full atomic.Bool
	kit := tholetest.New(t, tholetest.Dispatch(func(c *dispatch.Config) { c.Workspaces = fullDisk{c.Workspaces, &full} }))
	log := slog.New(slog.DiscardHandler)
	asked := executors.New(executors.Config{
		Threads: kit.Threads, Dispatcher: kit.Dispatcher, Rows: kit.Store().Executors(), Queue: kit.Store().Queue(), Driver: kit.Executors, Files: depot.New(depot.Config{Log: log}), Log: log,
	})
	g := rigOn(t, kit, func(c *httpapi.Config) { c.Files = asked })
	id := g.me.session(obj{})
	path := "/sessions/" + id + "/files"
	files := func() (f obj) {
		t.Helper()
		g.me.call(200, "GET", path, nil, &f)
		return f
	}
	if f := files(); f["state"] != "none" {
		t.Errorf("before the first run: %v", f)
	}
	g.me.call(404, "POST", path+"/save", obj{}, nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "say hello"}, nil)
	poll.Until(t, "the first save", func() bool { return files()["state"] == "saved" })
	first := files()
	if first["saved_at"] == nil || first["executor_id"] == "" || first["error"] != nil {
		t.Errorf("saved: %v", first)
	}
	full.Store(true)
	var f obj
	g.me.call(200, "POST", path+"/save", obj{}, &f)
	if f["state"] != "unsaved" || f["error"] != "no space left in the store" || f["saved_at"] != first["saved_at"] {
		t.Errorf("a save that failed: %v", f)
	}
	if f := files(); f["state"] != "unsaved" || f["error"] != "no space left in the store" {
		t.Errorf("afterwards: %v", f)
	}
	full.Store(false)
	f = nil
	g.me.call(200, "POST", path+"/save", obj{}, &f)
	if f["state"] != "saved" || f["saved_at"] == first["saved_at"] || f["error"] != nil {
		t.Errorf("a save that succeeded: %v", f)
	}
	g.you.call(404, "GET", path, nil, nil)
	g.you.call(404, "POST", path+"/save", obj{}, nil)
}

// Files of the workspace are found by a part of their path. Names outside of it are not,
// whatever the query or a link in the workspace says.
func TestFilesAreFound(t *testing.T) {
	kit := tholetest.New(t)
	log := slog.New(slog.DiscardHandler)
	asked := executors.New(executors.Config{
		Threads: kit.Threads, Dispatcher: kit.Dispatcher, Rows: kit.Store().Executors(), Queue: kit.Store().Queue(), Driver: kit.Executors, Files: depot.New(depot.Config{Log: log}), Log: log,
	})
	g := rigOn(t, kit, func(c *httpapi.Config) { c.Files = asked })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src/main.go", "src/deep/domain.go", "a b/c d"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/etc", filepath.Join(dir, "outside")), os.Symlink("/", filepath.Join(dir, "src/root"))); err != nil {
		t.Fatal(err)
	}
	made, err := kit.Threads.Create(t.Context(), thole.LocalActor, thread.Create{Files: thole.Source{Kind: thole.SourceHere, Dir: dir}, Settings: event.Settings{Provider: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	id := string(made.ID)
	path := "/sessions/" + id + "/files/search"
	found := func(q string) (out []string) {
		t.Helper()
		var got struct{ Items []struct{ Path, Kind string } }
		g.me.call(200, "GET", path+"?q="+url.QueryEscape(q), nil, &got)
		if got.Items == nil {
			t.Errorf("%q: items are null", q)
		}
		for _, f := range got.Items {
			if f.Kind == "directory" {
				f.Path += "/"
			}
			out = append(out, f.Path)
		}
		return out
	}
	if got := found("main"); !slices.Equal(got, []string{"src/main.go", "src/deep/domain.go"}) {
		t.Errorf("main: %v", got)
	}
	if got := found("c d"); !slices.Contains(got, "a b/c d") {
		t.Errorf("a name with a space: %v", got)
	}
	if got := found(""); len(got) == 0 || strings.Contains(strings.TrimSuffix(got[0], "/"), "/") {
		t.Errorf("without a query: %v", got)
	}
	for _, q := range []string{"passwd", "../../etc/passwd", "/etc/passwd", "outside/passwd", "root/etc", "\x00", "$(id)"} {
		if got := found(q); len(got) != 0 {
			t.Errorf("%q finds %v", q, got)
		}
	}
	g.me.call(422, "GET", path+"?q="+strings.Repeat("x", 201), nil, nil)
	g.you.call(404, "GET", path+"?q=main", nil, nil)
	var token obj
	g.me.call(201, "POST", "/auth/tokens", obj{"name": "r", "scope": "read"}, &token)
	(&caller{g: g, header: http.Header{"Authorization": {"Bearer " + token["token"].(string)}}}).call(403, "GET", path+"?q=main", nil, nil)
	g.me.call(200, "PATCH", "/sessions/"+id, obj{"archived": true}, nil)
	g.me.call(409, "GET", path+"?q=main", nil, nil)
}

// A compaction is a turn of its own; only the session's owner asks for one.
func TestCompact(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "say hello"}, nil)
	s.until(ofType("run.ended"))
	g.you.call(404, "POST", "/sessions/"+id+"/compact", nil, nil)
	g.me.call(202, "POST", "/sessions/"+id+"/compact", nil, nil)
	s.until(ofType("run.ended"))
	var runs struct{ Items []obj }
	g.me.call(200, "GET", "/sessions/"+id+"/runs?order=desc", nil, &runs)
	if len(runs.Items) != 2 {
		t.Errorf("runs: %v", runs.Items)
	}
}
