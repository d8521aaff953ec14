package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/testkit/lab"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func reopen(t *testing.T, cfg sqldb.Config) *DB {
	t.Helper()
	db, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestFilesAreOursFromCreation(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	home := filepath.Join(t.TempDir(), "home")
	db := reopen(t, sqldb.Config{Path: filepath.Join(home, "thole.db")})
	err := db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("update users set name = 'x'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), want)
		}
		names = append(names, d.Name())
		return nil
	})
	if err != nil || len(names) != 5 { // home, db, lock, wal, shm
		t.Fatalf("files %v, %v", names, err)
	}
}

func TestRefusedFiles(t *testing.T) {
	ready := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "home", "thole.db")
		if err := reopen(t, sqldb.Config{Path: path}).Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name   string
		break_ func(t *testing.T, path string)
		code   thole.Code
		says   string
	}{
		{"readable by others", func(t *testing.T, p string) { must(t, os.Chmod(p, 0o644)) }, thole.CodeForbidden, "open to others"},
		{"directory writable by others", func(t *testing.T, p string) { must(t, os.Chmod(filepath.Dir(p), 0o777)) }, thole.CodeForbidden, "written by others"},
		{"symbolic link", func(t *testing.T, p string) {
			must(t, os.Rename(p, p+".real"))
			must(t, os.Symlink(p+".real", p))
		}, thole.CodeInvalid, "not a regular file"},
		{"garbage", func(t *testing.T, p string) {
			must(t, os.WriteFile(p, []byte(strings.Repeat("not a database ", 1000)), 0o600))
		}, thole.CodeUnavailable, "damaged"},
		{"damaged schema page", func(t *testing.T, p string) {
			f, err := os.OpenFile(p, os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt([]byte(strings.Repeat("\xff", 3000)), 100)
			must(t, errors.Join(err, f.Close()))
		}, thole.CodeUnavailable, "damaged"},
		{"owned by a running process", func(t *testing.T, p string) { reopen(t, sqldb.Config{Path: p}) }, thole.CodeBusy, "running process"},
		{"newer than the binary", func(t *testing.T, p string) {
			execSQLite(t, p, "insert into schema_migrations values (9999, 'future', 'x', 0)")
		},
			thole.CodeUnsupported, "newer than this binary"},
		{"migration applied in another form", func(t *testing.T, p string) {
			execSQLite(t, p, "update schema_migrations set sum = 'x' where version = 1")
		}, thole.CodeUnsupported, "another form"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := ready(t)
			c.break_(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(context.Background(), sqldb.Config{Path: path})
			if thole.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || c.code != thole.CodeInvalid && thole.HintOf(err) == "" {
				t.Fatalf("error %v (code %s, hint %q)", err, thole.CodeOf(err), thole.HintOf(err))
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the refused file was changed")
			}
		})
	}
}

func execSQLite(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// TestReadOnlyHome needs a real read-only file system, because modes do not
// stop root.
func TestReadOnlyHome(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Skipf("no private mount here: %v: %s", err, out)
		}
		defer exec.Command("umount", dir).Run()
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := Open(context.Background(), sqldb.Config{Path: filepath.Join(dir, "thole.db")})
	if thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(thole.HintOf(err), "--home") {
		t.Fatalf("error %v, hint %q", err, thole.HintOf(err))
	}
}

func TestPostgresRefusals(t *testing.T) {
	dsn := lab.Postgres(t)
	db := reopen(t, sqldb.Config{DSN: dsn})
	err := db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("insert into schema_migrations values (9999, 'future', 'x', 0)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), sqldb.Config{DSN: dsn}); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("newer database: %v", err)
	}
	if _, err := Open(context.Background(), sqldb.Config{DSN: "postgres://nobody:secret@127.0.0.1:1/x"}); thole.CodeOf(err) != thole.CodeUnavailable || strings.Contains(err.Error(), "secret") {
		t.Errorf("no server: %v", err)
	}
	if _, err := Open(context.Background(), sqldb.Config{DSN: strings.Replace(dsn, "///", "///no", 1)}); thole.CodeOf(err) != thole.CodeUnavailable || thole.HintOf(err) == "" {
		t.Errorf("no such database: %v", err)
	}
	if _, err := Open(context.Background(), sqldb.Config{DSN: "postgres://u:secret@h:port/x"}); thole.CodeOf(err) != thole.CodeInvalid || strings.Contains(err.Error(), "secret") {
		t.Errorf("bad DSN: %v", err)
	}
	if _, err := Open(context.Background(), sqldb.Config{}); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("no engine: %v", err)
	}
}

func TestConcurrentMigration(t *testing.T) {
	dsn := lab.Postgres(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			db, err := Open(context.Background(), sqldb.Config{DSN: dsn, Conns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			db.Close()
		})
	}
	wg.Wait()

	path := filepath.Join(t.TempDir(), "thole.db")
	var opened, busy int
	var mu sync.Mutex
	for range 6 {
		wg.Go(func() {
			db, err := Open(context.Background(), sqldb.Config{Path: path})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				opened++
				t.Cleanup(func() { db.Close() })
			case thole.CodeOf(err) == thole.CodeBusy:
				busy++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if opened != 1 || busy != 5 {
		t.Fatalf("%d opened, %d were refused", opened, busy)
	}
}

// TestMigrationsKeepToTheCommonSubset guards what the engines would not: a
// deferrable constraint would fail a whole group at its commit.
func TestMigrationsKeepToTheCommonSubset(t *testing.T) {
	all, err := Schema().Migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		body := strings.ToLower(strings.Join(m.Statements(sqldb.Postgres), ";\n"))
		for _, word := range []string{"deferrable", "autoincrement", "serial", "jsonb", "timestamp", "trigger", "now("} {
			if strings.Contains(body, word) {
				t.Errorf("migration %04d_%s uses %q", m.Version, m.Name, word)
			}
		}
	}
}

// A store that was used and of which nothing is left is not a first start.
func TestEmptiedStoreIsRefused(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"cut":     func(p string) error { return os.Truncate(p, 0) },
		"removed": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sqldb.Config{Path: filepath.Join(t.TempDir(), "home", "thole.db")}
			for range 2 { // made, and opened again
				if err := reopen(t, cfg).Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := harm(cfg.Path); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a refusal must not make the next start look like a first
				_, err := Open(context.Background(), cfg)
				if thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(thole.HintOf(err), "thole db restore") {
					t.Fatalf("%v (%s)", err, thole.HintOf(err))
				}
			}
		})
	}
}
