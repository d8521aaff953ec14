package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// fill puts a row with odd values into every table that takes one without a parent.
func fillOdd(t *testing.T, db *store.DB, rows int) {
	t.Helper()
	mustUpdate(t, db, func(tx *sqldb.Tx) error {
		for i := range rows {
			if _, err := tx.Exec(`insert into users (id, login, name, state, created_at) values ($1, $1, $2, 'active', $3)`,
				uuid(100+i), "näme\n\t'\"\\ \u2028 😀", int64(-i)<<33); err != nil {
				return err
			}
			if _, err := tx.Exec(`insert into executors (id, thread_id, turn_id, scope, driver, state, restored, last_active_at, stopped_at, sync_started_at, last_sync_at, sync_status, sync_reason, sync_error, snapshot, created_at, updated_at)
				values ($1, $1, '', 'thread', 'local', 'running', $2, 1, 0, 0, 0, 'idle', '', '', '', 1, 1)`, uuid(500+i), i%2 == 0); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestMove(t *testing.T) {
	dsn := lab.Postgres(t)
	ctx := t.Context()
	from := storetest.SQLite(t)
	fillOdd(t, from, 1203) // more than one statement takes
	before, err := sqldb.Sums(ctx, from.DB)
	if err != nil {
		t.Fatal(err)
	}
	to := opened(t, dsn)
	moved, err := store.Move(ctx, from, to, "home", "local:a")
	if err != nil {
		t.Fatal(err)
	}
	after, err := sqldb.Sums(ctx, from.DB)
	if err != nil || !equalTables(before, after) || !equalTables(before, moved.Tables) {
		t.Errorf("the source changed, or its sums: %v", err)
	}
	got := map[string]int64{}
	for _, table := range moved.Tables {
		got[table.Name] = table.Rows
	}
	if len(got) < 40 || got["users"] != 1205 || got["executors"] != 1203 || got["apps"] != 1 {
		t.Errorf("moved %d tables: %v", len(got), got)
	}
	var users, engines int
	err = to.View(ctx, func(tx *sqldb.Tx) error {
		return errors.Join(tx.QueryRow(`select count(*) from users where name like '%😀'`).Scan(&users), tx.QueryRow(`select count(*) from executors where engine = 'local:a'`).Scan(&engines))
	})
	if err != nil || users != 1203 || engines != 1203 {
		t.Errorf("in PostgreSQL: %d users, %d executors of the engine, %v", users, engines, err)
	}
	// The same move is found again; the home as it is later, or another, is refused.
	if again, err := store.Move(ctx, from, to, "home", "local:a"); err != nil || !equalTables(again.Tables, before) {
		t.Errorf("again: %v", err)
	}
	mustUpdate(t, from, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`update users set name = 'other' where id = $1`, uuid(100))
		return err
	})
	if _, err := store.Move(ctx, from, to, "home", "local:a"); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("a home that changed since: %v", err)
	}
}

// TestMoveRefuses: a database that is not empty, and a copy that is not the same.
func TestMoveRefuses(t *testing.T) {
	ctx, from, to := t.Context(), storetest.SQLite(t), storetest.Postgres(t)
	fillOdd(t, from, 3)
	fillOdd(t, to, 1)
	if _, err := store.Move(ctx, from, to, "home", "local:a"); thole.CodeOf(err) != thole.CodeConflict || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a used database: %v", err)
	}
	to = storetest.Postgres(t)
	mustUpdate(t, to, func(tx *sqldb.Tx) error { // a database that changes what it is given
		_, err := tx.Exec(`create function spoil() returns trigger language plpgsql as 'begin new.name := trim(new.name) || ''!''; return new; end'`)
		if err == nil {
			_, err = tx.Exec(`create trigger spoil before insert on users for each row execute function spoil()`)
		}
		return err
	})
	if _, err := store.Move(ctx, from, to, "home", "local:a"); err == nil || !strings.Contains(err.Error(), "table users: the copy differs") {
		t.Errorf("a spoiled copy: %v", err)
	}
	var n int
	if err := to.View(ctx, func(tx *sqldb.Tx) error { return tx.QueryRow(`select count(*) from executors`).Scan(&n) }); err != nil || n != 0 {
		t.Errorf("a refused move left %d rows, %v", n, err)
	}
}

func equalTables(a, b []sqldb.Table) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func opened(t *testing.T, dsn string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), sqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestEveryColumnMoves: a column of a kind that a move does not know is found here.
func TestEveryColumnMoves(t *testing.T) {
	db, err := storetest.OpenAt(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(tx *sqldb.Tx) error {
		var odd string
		err := tx.QueryRow(`select coalesce(group_concat(m.name || '.' || c.name || ' ' || c.type), '') from sqlite_master m, pragma_table_info(m.name) c
			where m.type = 'table' and lower(c.type) not in ('text', 'bigint', 'boolean')`).Scan(&odd)
		if odd != "" {
			t.Errorf("columns that a move does not know: %s", odd)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
