package depot_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// A store that is away is the reason of what fails, and of nothing else: a thread
// with no files starts without it, a sync waits for it, and the watch reports when it
// is there again.
func TestTheStoreGoesAwayAndComesBack(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	db, err := storetest.OpenAt(ctx, sqldb.Config{Path: filepath.Join(t.TempDir(), "home", store.FileName)})
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	var kept *dir.Store
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		kept.Handler().ServeHTTP(w, r)
	}))
	if kept, err = dir.Open(t.TempDir(), web.URL); err != nil {
		t.Fatal(err)
	}
	down := errors.New("no route to the store")
	d := depot.New(depot.Config{
		Manager: manager.New(manager.Config{Rows: db.Workspaces(), Objects: kept}), Rows: db.Workspaces(), Objects: kept, Log: slog.New(slog.DiscardHandler),
		Check: func(context.Context) error {
			if away.Load() {
				return down
			}
			return nil
		},
	})
	back, over := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		d.Watch(ctx, func(context.Context) { back <- struct{}{} })
	}()
	t.Cleanup(func() { stop(); <-over; web.Close(); _ = kept.Close(); _ = db.Close() })

	target := func() dispatch.ExecutorWorkspace {
		return dispatch.ExecutorWorkspace{
			Thread: fold.Thread{ID: thole.NewID[thole.ThreadID](time.Now()), Owner: thole.DefaultOwner}, Executor: thole.NewID[thole.ExecutorID](time.Now()), Dir: t.TempDir(),
		}
	}
	at, fresh := target(), target()
	if err := os.WriteFile(filepath.Join(at.Dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := d.Sync(ctx, at, "test"); err != nil || id == "" {
		t.Fatalf("sync: %q, %v", id, err)
	}
	elsewhere := at
	elsewhere.Dir = "" // its files are on another machine: that is not the store's doing
	if _, err := d.Sync(ctx, elsewhere, "test"); err == nil || errors.Is(err, objects.ErrAway) || d.Away() != nil {
		t.Fatalf("sync of files that are not here: %v; away: %v", err, d.Away())
	}
	if err := os.WriteFile(filepath.Join(at.Dir, "file"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	if _, err := d.Sync(ctx, at, "test"); !errors.Is(err, objects.ErrAway) || !errors.Is(err, down) {
		t.Fatalf("sync with the store away: %v", err)
	}
	if err := d.Away(); !errors.Is(err, objects.ErrAway) || thole.CodeOf(err) != thole.CodeUnavailable || thole.HintOf(err) == "" {
		t.Fatalf("away: %v", err)
	}
	if err := d.Restore(ctx, at); !errors.Is(err, objects.ErrAway) {
		t.Fatalf("restore of stored files: %v", err)
	}
	if err := d.Restore(ctx, fresh); err != nil {
		t.Fatalf("a thread with no files needs no store: %v", err)
	}
	away.Store(false)
	poll.Until(t, "the store's return", func() bool { return d.Away() == nil })
	select {
	case <-back:
	case <-time.After(time.Minute):
		t.Fatal("nobody was asked to go on")
	}
}
