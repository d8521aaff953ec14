package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
)

func addUser(t testing.TB, db *DB, id string) {
	t.Helper()
	err := db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("insert into users (id, login, name, state, created_at) values ($1, $1, $1, 'active', 0)", id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func countUsers(t testing.TB, db *DB) (n int) {
	t.Helper()
	err := db.View(context.Background(), func(tx *sqldb.Tx) error { return tx.QueryRow("select count(*) from users").Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestBackupBesideAWriter: the copy holds at least what was there when it began,
// is whole, and a restore brings exactly it back.
func TestBackupBesideAWriter(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "thole.db"), filepath.Join(dir, "copy.db")
	db := reopen(t, sqldb.Config{Path: path})
	for i := range 200 {
		addUser(t, db, fmt.Sprint("before-", i))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				addUser(t, db, fmt.Sprint("during-", i))
			}
		}
	})
	report, err := Backup(ctx, path, copied)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if report.Schema == 0 || report.Path != copied || len(report.Problems) > 0 {
		t.Fatalf("report %+v", report)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the copy: %v, %v", info.Mode(), err)
	}
	if _, err := Backup(ctx, path, copied); thole.CodeOf(err) != thole.CodeConflict {
		t.Fatalf("a backup over a file: %v", err)
	}
	if _, err := Restore(ctx, path, copied, time.Now()); thole.CodeOf(err) != thole.CodeBusy {
		t.Fatalf("restore under a live owner: %v", err)
	}
	if r, err := Check(ctx, path); err != nil || len(r.Problems) > 0 {
		t.Fatalf("check beside the owner: %+v, %v", r, err)
	}
	addUser(t, db, "after")
	live := countUsers(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	kept, err := Restore(ctx, path, copied, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	back := reopen(t, sqldb.Config{Path: path})
	if n := countUsers(t, back); n < 201 || n >= live {
		t.Fatalf("restored %d users, want at least the 201 before the backup and fewer than the %d of the end", n, live)
	}
	if n := countUsers(t, reopen(t, sqldb.Config{Path: kept})); n != live {
		t.Fatalf("the kept store has %d users, want %d", n, live)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*tmp*")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

// backedUp is a closed store with one user more than a new one, and its backup.
func backedUp(t *testing.T) (dir, path, backup string) {
	t.Helper()
	dir = t.TempDir()
	path, backup = filepath.Join(dir, "thole.db"), filepath.Join(dir, "good.db")
	db := reopen(t, sqldb.Config{Path: path})
	addUser(t, db, "kept")
	if _, err := Backup(context.Background(), path, backup); err != nil {
		t.Fatal(err)
	}
	db.Close()
	return dir, path, backup
}

func TestRestoreRefusesBadBackups(t *testing.T) {
	ctx := context.Background()
	dir, path, good := backedUp(t)
	bytes, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	newer := write("newer.db", bytes)
	execSQLite(t, newer, "insert into schema_migrations values (9999, 'future', 'x', 0)")
	foreign := filepath.Join(dir, "foreign.db")
	write("foreign.db", nil)
	execSQLite(t, foreign, "create table x (id bigint)")
	for backup, code := range map[string]thole.Code{
		write("cut.db", bytes[:len(bytes)/2]):                         thole.CodeUnavailable,
		write("text.db", []byte(strings.Repeat("hello ", 2000))):      thole.CodeUnavailable,
		write("torn.db", append(make([]byte, 5000), bytes[5000:]...)): thole.CodeUnavailable,
		newer:                            thole.CodeUnsupported,
		foreign:                          thole.CodeUnavailable,
		dir:                              thole.CodeInvalid,
		filepath.Join(dir, "nowhere.db"): thole.CodeNotFound,
	} {
		if _, err := Restore(ctx, path, backup, time.Now()); thole.CodeOf(err) != code {
			t.Errorf("%s: %v (code %s, want %s)", filepath.Base(backup), err, thole.CodeOf(err), code)
		}
	}
	if n := countUsers(t, reopen(t, sqldb.Config{Path: path})); n != 3 { // with the local user and the program
		t.Fatalf("a refused restore changed the store: %d users", n)
	}
}

// TestRestoreOverADamagedStore: the case a restore is for.
func TestRestoreOverADamagedStore(t *testing.T) {
	ctx := context.Background()
	_, path, good := backedUp(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("rubbish", 999)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Check(ctx, path)
	if err != nil || len(r.Problems) == 0 {
		t.Fatalf("check of a damaged store: %+v, %v", r, err)
	}
	kept, err := Restore(ctx, path, good, time.Now())
	if err != nil || kept == "" {
		t.Fatalf("restore: %q, %v", kept, err)
	}
	if n := countUsers(t, reopen(t, sqldb.Config{Path: path})); n != 3 { // with the local user and the program
		t.Fatalf("%d users", n)
	}
}
