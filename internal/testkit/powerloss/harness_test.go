package powerloss

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/tholehq/thole/internal/testkit/scratch"
)

// TestHarnessSeesWhatPragmasLose: the harness is worth nothing unless it shows
// that NORMAL loses acknowledged commits, that OFF damages files, and that FULL
// does neither.
func TestHarnessSeesWhatPragmasLose(t *testing.T) {
	run := func(t *testing.T, synchronous string) []error {
		d := newDisk(t.TempDir())
		defer d.release()
		dsn := func(path string) string {
			return "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=synchronous(" + synchronous + ")"
		}
		db, err := sql.Open("sqlite", dsn(filepath.Join(d.Dir, "s.db"))+"&_pragma=wal_autocheckpoint(4)&vfs="+d.VFS)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		must := func(query string, args ...any) {
			if _, err := db.Exec(query, args...); err != nil {
				t.Fatal(err)
			}
		}
		must("create table t (id integer primary key, body text)")
		for i := range 8 {
			must("insert into t (id, body) values ($1, $2)", i, strings.Repeat("x", 6000))
			d.Ack(fmt.Sprint(i))
		}
		db.Close()
		_, failures := explore(scratch.Dir(t), d, 2, func(dir string, acked []string) error {
			db, err := sql.Open("sqlite", dsn(filepath.Join(dir, "s.db")))
			if err != nil {
				return err
			}
			defer db.Close()
			var verdict string
			if err := db.QueryRow("pragma integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
				return fmt.Errorf("%w: %s %v", errDamaged, verdict, err)
			}
			if len(acked) == 0 {
				return nil
			}
			var n int
			if err := db.QueryRow("select count(*) from t").Scan(&n); err != nil || n < len(acked) {
				return fmt.Errorf("%w: %d of %d, %v", errLost, n, len(acked), err)
			}
			return nil
		})
		return failures
	}
	if failures := run(t, "FULL"); len(failures) > 0 {
		t.Errorf("FULL: %v", failures[0])
	}
	if failures := run(t, "NORMAL"); !has(failures, errLost) || has(failures, errDamaged) {
		t.Errorf("NORMAL: %v", failures)
	}
	if failures := run(t, "OFF"); !has(failures, errDamaged) {
		t.Errorf("OFF: %v", failures)
	}
}

var errDamaged, errLost = errors.New("damaged"), errors.New("acknowledged commits lost")

func has(failures []error, target error) bool {
	for _, f := range failures {
		if errors.Is(f, target) {
			return true
		}
	}
	return false
}

// TestReplacingAFile: temp, sync, rename, directory sync keeps the old or the new
// file and, once acknowledged, the new one; leaving out either sync is caught.
func TestReplacingAFile(t *testing.T) {
	before, after := bytes.Repeat([]byte("old "), 300), bytes.Repeat([]byte("new! "), 400)
	run := func(t *testing.T, syncFile, syncDir bool) []error {
		d := newDisk(t.TempDir())
		defer d.release()
		path := filepath.Join(d.Dir, "f")
		write := func(name string, content []byte, sync bool) {
			f, err := d.Create(name, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(content); err != nil {
				t.Fatal(err)
			}
			if sync {
				err = f.Sync()
			}
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		write(path, before, true)
		d.Ack("old")
		write(path+".tmp", after, syncFile)
		if err := d.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
		if syncDir {
			if err := d.SyncDir(d.Dir); err != nil {
				t.Fatal(err)
			}
		}
		d.Ack("new")
		_, failures := explore(scratch.Dir(t), d, 8, func(dir string, acked []string) error {
			got, err := os.ReadFile(filepath.Join(dir, "f"))
			switch {
			case len(acked) == 0:
				return nil
			case err != nil:
				return err
			case !bytes.Equal(got, after) && (len(acked) == 2 || !bytes.Equal(got, before)):
				return fmt.Errorf("found %d bytes after %v", len(got), acked)
			}
			return nil
		})
		return failures
	}
	if failures := run(t, true, true); len(failures) > 0 {
		t.Error(failures[0])
	}
	if len(run(t, false, true)) == 0 {
		t.Error("a missing file sync was not noticed")
	}
	if len(run(t, true, false)) == 0 {
		t.Error("a missing directory sync was not noticed")
	}
}
