package tholetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// files is the object store, in a directory that is served on loopback.
type files struct {
	objects *dir.Store
	client  *http.Client
}

func newFiles(t testing.TB, at string) *files {
	t.Helper()
	f := &files{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true, IdleConnTimeout: 30 * time.Second}}}
	var handler http.Handler
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		web.Close()
	})
	var err error
	if f.objects, err = dir.Open(at, web.URL); err != nil {
		t.Fatal(err)
	}
	handler = f.objects.Handler()
	t.Cleanup(func() { _ = f.objects.Close() })
	return f
}

// of is what the dispatcher of one store restores from and syncs to.
func (f *files) of(db *store.DB) dispatch.Workspaces {
	return depot{manager.New(manager.Config{Rows: db.Workspaces(), Objects: f.objects, Client: f.client})}
}

// depot is a manager as the dispatcher sees it.
type depot struct{ *manager.Manager }

func target(t dispatch.ExecutorWorkspace) manager.Target {
	out := manager.Target{Thread: t.Thread.ID, Owner: t.Thread.Owner, Executor: t.Executor, Dir: t.Dir, Lease: t.Turn, Token: t.Token}
	if t.Client != nil {
		out.Side = workspace.Remote(t.Client)
	}
	return out
}

func (d depot) Restore(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	return d.Manager.Restore(ctx, target(t))
}

func (d depot) Link(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	return d.Manager.Link(ctx, target(t))
}

func (d depot) Validate(ctx context.Context, t dispatch.ExecutorWorkspace) error {
	return d.Manager.Validate(ctx, target(t))
}

func (d depot) Sync(ctx context.Context, t dispatch.ExecutorWorkspace, reason string) (string, error) {
	id, err := d.Manager.Sync(ctx, target(t), reason)
	return string(id), err
}

func (d depot) Verify(ctx context.Context, t dispatch.ExecutorWorkspace, snapshot string) error {
	return d.Manager.Verify(ctx, target(t), workspace.SnapshotID(snapshot))
}
