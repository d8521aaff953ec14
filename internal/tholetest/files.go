package tholetest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/store"
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

// of is what the dispatcher of one store restores from and syncs to. The directory
// is always there.
func (f *files) of(db *store.DB) *depot.Depot {
	m := manager.New(manager.Config{Rows: db.Workspaces(), Objects: f.objects, Client: f.client})
	there := func(context.Context) error { return nil }
	return depot.New(depot.Config{Manager: m, Rows: db.Workspaces(), Objects: f.objects, Check: there, Log: slog.New(slog.DiscardHandler)})
}
