package workspace_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/workspace/manager"
	"github.com/tholehq/thole/internal/workspace/side"
)

const (
	crashThread = thole.ThreadID("00000000-0000-7000-8000-0000000000a1")
	crashFork   = thole.ThreadID("00000000-0000-7000-8000-0000000000a2")
)

// crashWorld opens what survives a crash in a directory. Every object that is
// stored, and every one that is deleted, is a place to die as well.
func crashWorld(root string, hook sqldb.Hook, now func() time.Time) (*store.DB, *manager.Manager, func(), error) {
	db, err := storetest.OpenAt(context.Background(), sqldb.Config{Path: filepath.Join(root, "db"), Hook: hook, Now: now})
	if err != nil {
		return nil, nil, nil, err
	}
	var objs *dir.Store
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := func(p sqldb.Point) {
			if hook != nil && r.Method == http.MethodPut {
				hook(p, "objects.put")
			}
		}
		at(sqldb.BeforeCommit)
		objs.Handler().ServeHTTP(w, r)
		at(sqldb.AfterCommit)
	}))
	if objs, err = dir.Open(filepath.Join(root, "objects"), srv.URL); err != nil {
		return nil, nil, nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	m := manager.New(manager.Config{Rows: db.Workspaces(), Objects: objs, Client: client})
	return db, m, func() {
		srv.Close()
		objs.Close()
		db.Close()
	}, nil
}

func crashTarget(root string, thread thole.ThreadID, name string) (manager.Target, string, error) {
	var dirs [3]string
	for i, sub := range []string{"workspace", "home", "state"} {
		dirs[i] = filepath.Join(root, name, sub)
		if err := os.MkdirAll(dirs[i], 0o700); err != nil {
			return manager.Target{}, "", err
		}
	}
	l := side.New(side.Config{Dir: dirs[0], Home: dirs[1], State: dirs[2], Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	return manager.Target{Thread: thread, Owner: thole.DefaultOwner, Executor: thole.ExecutorID(name), Side: l}, dirs[0], nil
}

// Killed anywhere, a thread is at the last snapshot that was acknowledged or at
// the one that was being made, whole; and the work can be done again.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	state := func(n int) map[string]string {
		files := map[string]string{"same": "same"}
		for i := range n {
			files[fmt.Sprintf("f%d", i)] = fmt.Sprintf("%d of %d", i, n)
		}
		return files
	}
	work := func(w *crash.Work) error {
		skew := time.Duration(0)
		db, m, _, err := crashWorld(w.Dir, w.Hook, func() time.Time { return time.Now().Add(skew) })
		if err != nil {
			return err
		}
		ctx := context.Background()
		target, ws, err := crashTarget(w.Dir, crashThread, "one")
		if err != nil {
			return err
		}
		if _, err := db.Workspaces().Publish(ctx, thole.DefaultApp, "v1", "recipe"); err != nil {
			return err
		}
		w.Ack("published")
		if err := m.Restore(ctx, target); err != nil {
			return err
		}
		for n := 1; n <= 3; n++ {
			for name, body := range state(n) {
				if err := os.WriteFile(filepath.Join(ws, name), []byte(body), 0o600); err != nil {
					return err
				}
			}
			if _, err := m.Sync(ctx, target, "test"); err != nil {
				return err
			}
			w.Ack(fmt.Sprintf("synced %d", n))
		}
		forked, _, err := crashTarget(w.Dir, crashFork, "two")
		if err != nil {
			return err
		}
		if err := forkHead(db, crashThread, crashFork); err != nil {
			return err
		}
		if err := m.Restore(ctx, forked); err != nil {
			return err
		}
		w.Ack("forked")
		for i, id := range []thole.ThreadID{crashThread, crashFork} { // whose threads are not deleted
			if _, err := db.Executors().Ensure(ctx, executor.Row{ID: thole.ExecutorID(fmt.Sprint(i)), Thread: id, Scope: executor.ScopeThread, Driver: "d"}); err != nil {
				return err
			}
		}
		skew = 48 * time.Hour
		_, err = m.Collect(ctx, 24*time.Hour)
		w.Ack("collected")
		return err
	}
	crash.Enumerate(t, work, func(t *testing.T, root string, acked []string, killed string) {
		db, m, done, err := crashWorld(root, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		ctx := context.Background()
		if body, err := db.Workspaces().Published(ctx, thole.DefaultApp, "v1"); slices.Contains(acked, "published") && (err != nil || body != "recipe") {
			t.Errorf("published manifest is %q, %v", body, err)
		}
		last := 0
		for _, a := range acked {
			fmt.Sscanf(a, "synced %d", &last)
		}
		restored := func(thread thole.ThreadID, name string) map[string]string {
			t.Helper()
			target, ws, err := crashTarget(root, thread, name)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Restore(ctx, target); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			entries, err := os.ReadDir(ws)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Type().IsRegular() {
					data, err := os.ReadFile(filepath.Join(ws, e.Name()))
					if err != nil {
						t.Fatal(err)
					}
					got[e.Name()] = string(data)
				}
			}
			return got
		}
		got := fmt.Sprint(restored(crashThread, "check"))
		none := fmt.Sprint(map[string]string{})
		allowed := []string{fmt.Sprint(state(last)), fmt.Sprint(state(last + 1))}
		if last == 0 {
			allowed[0] = none
		}
		if !slices.Contains(allowed, got) {
			t.Fatalf("after %q the thread restores as %s", acked, got)
		}
		if slices.Contains(acked, "forked") && fmt.Sprint(restored(crashFork, "check-fork")) != got {
			t.Fatal("the fork restores as something else")
		}
		// The executor that was there goes on, whatever its index says.
		target, ws, err := crashTarget(root, crashThread, "one")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, "again"), []byte("again"), 0o600); err != nil {
			t.Fatal(err)
		}
		snap, err := m.Sync(ctx, target, "test")
		if err != nil {
			t.Fatal(err)
		}
		stopped := target
		stopped.Side, stopped.Dir = nil, ws
		if err := m.Verify(ctx, stopped, snap); err != nil {
			t.Fatal(err)
		}
		if head, _, err := db.Workspaces().Head(ctx, crashThread); err != nil || head.ID != snap {
			t.Fatalf("head %s, synced %s, %v", head.ID, snap, err)
		}
		if killed == "" && !strings.Contains(strings.Join(acked, " "), "collected") {
			t.Fatal("the work did not get to its end")
		}
	})
}
