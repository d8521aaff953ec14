package workspace_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/side"
	_ "modernc.org/sqlite"
)

// A database in use is stored with what its log holds, and opens whole.
func TestDatabasesInUse(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	first := r.box(thread)
	if err := os.MkdirAll(first.at(".agent_data/codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := first.at(".agent_data/codex/state.sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("create table t (n integer primary key, body text)"); err != nil {
		t.Fatal(err)
	}
	var last atomic.Int64
	insert := func() {
		n := last.Load() + 1
		if _, err := db.Exec("insert into t values (?, ?)", n, strings.Repeat("x", 1000)); err != nil {
			t.Error(err)
		}
		last.Store(n)
	}
	for range 50 {
		insert()
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				insert()
			}
		}
	})
	for range 3 {
		before := last.Load()
		r.sync(first)
		out := r.box(thread)
		r.restore(out)
		copied, err := sql.Open("sqlite", "file:"+out.at(".agent_data/codex/state.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		var rows, top int64
		var check string
		err = errors.Join(copied.QueryRow("select count(*), max(n) from t").Scan(&rows, &top), copied.QueryRow("pragma integrity_check").Scan(&check))
		copied.Close()
		if err != nil || check != "ok" || rows != top || rows < before {
			t.Fatalf("%d rows up to %d, at least %d were there; check %q, %v", rows, top, before, check, err)
		}
	}
	close(stop)
	wg.Wait()
	// Stopped, the files are taken as they are, log included.
	snap, err := r.manager.Sync(context.Background(), first.stopped(), "pre.remove")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.manager.Verify(context.Background(), first.stopped(), snap); err != nil {
		t.Fatal(err)
	}
}

// A directory that becomes a link, after the scan looked into it, does not lead the copy
// of a database to files that the agent does not see.
func TestADatabaseThatIsExchanged(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	if err := os.MkdirAll(filepath.Join(filepath.Dir(b.dir), "outside/sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(b.dir), "outside/sub/secret"), []byte("of executord"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside, d := trap(t, b), filepath.Join(b.dir, "d")
	path := filepath.Join(d, "sub/secret")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("create table t (n integer)")
	if err = errors.Join(err, db.Close(), os.WriteFile(path+"-wal", []byte("log"), 0o600)); err != nil {
		t.Fatal(err)
	}
	exchanged := false
	files := side.New(side.Config{Dir: b.dir, Now: func() time.Time { // which the scan asks just before it copies
		if !exchanged {
			exchanged = true
			if err := errors.Join(os.Rename(d, d+"-was"), os.Symlink(outside, d)); err != nil {
				t.Error(err)
			}
		}
		return time.Now().Add(time.Hour)
	}})
	defer files.Close()
	res, err := files.Scan(t.Context(), workspace.ScanRequest{})
	if err != nil || !exchanged {
		t.Fatalf("exchanged: %v, %v", exchanged, err)
	}
	if res.Bytes == int64(len("of executord")) {
		t.Error("the snapshot has a file from outside of the workspace")
	}
}
