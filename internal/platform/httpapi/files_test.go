package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
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
