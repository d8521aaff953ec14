package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
)

const (
	insertUser = "insert into users (id, login, name, state, created_at) values ($1, $1, $2, 'active', $3)"
	renameFrom = "update users set name = $3 where id = $1 and name = $2"
	nameOf     = "select name from users where id = $1"
)

func TestTransactions(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		t.Run("commit, roll back, compare-and-set", func(t *testing.T) { commitAndRollBack(t, open(t)) })
		t.Run("a failed statement dooms the transaction", func(t *testing.T) { doomed(t, open(t)) })
		t.Run("a panic rolls back and reaches its caller", func(t *testing.T) { panicking(t, open(t)) })
		t.Run("concurrent callers each get their own result", func(t *testing.T) { concurrent(t, open(t)) })
		t.Run("after-commit hooks and notes", func(t *testing.T) { afterCommit(t, open(t)) })
		t.Run("row locks", func(t *testing.T) { rowLocks(t, open(t)) })
		t.Run("a canceled caller changes nothing", func(t *testing.T) { canceled(t, open(t)) })
		t.Run("views are read-only snapshots", func(t *testing.T) { views(t, open(t)) })
		t.Run("default rows", func(t *testing.T) { defaultRows(t, open(t)) })
	})
}

func mustUpdate(t testing.TB, db *store.DB, fn func(tx *sqldb.Tx) error) {
	t.Helper()
	if err := db.Update(context.Background(), "test.update", fn); err != nil {
		t.Fatal(err)
	}
}

func name(t testing.TB, db *store.DB, id string) (name string) {
	t.Helper()
	err := db.View(context.Background(), func(tx *sqldb.Tx) error {
		err := tx.QueryRow(nameOf, id).Scan(&name)
		if sqldb.NoRows(err) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func commitAndRollBack(t *testing.T, db *store.DB) {
	mustUpdate(t, db, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(insertUser, "u1", "first", thole.Millis(tx.Now()))
		return err
	})
	boom := errors.New("boom")
	err := db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		if ok, err := tx.ExecOne(renameFrom, "u1", "first", "second"); err != nil || !ok {
			t.Errorf("compare-and-set: %v, %v", ok, err)
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v, want the function's own error", err)
	}
	if got := name(t, db, "u1"); got != "first" {
		t.Fatalf("rolled-back change is visible: %q", got)
	}
	mustUpdate(t, db, func(tx *sqldb.Tx) error {
		if ok, err := tx.ExecOne(renameFrom, "u1", "other", "second"); err != nil || ok {
			t.Errorf("stale compare-and-set: %v, %v", ok, err)
		}
		return nil
	})
	err = db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		_ = tx.Must("name is other", renameFrom, "u1", "other", "second")
		return nil
	})
	if thole.CodeOf(err) != thole.CodeConflict {
		t.Fatalf("unmet expectation: %v", err)
	}
	err = db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		_, err := tx.ExecOne("update users set name = 'x'")
		return err
	})
	if err == nil || name(t, db, "u1") != "first" {
		t.Fatalf("a compare-and-set over several rows went through: %v", err)
	}
}

func doomed(t *testing.T, db *store.DB) {
	err := db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(insertUser, "u1", "one", 0); err != nil {
			return err
		}
		if _, err := tx.Exec(insertUser, "u1", "again", 0); !errors.Is(err, sqldb.ErrDuplicate) {
			t.Errorf("duplicate: %v", err)
		}
		if _, err := tx.Exec(insertUser, "u2", "two", 0); err == nil {
			t.Error("a statement ran in a doomed transaction")
		}
		return nil // swallowing the error does not help
	})
	if thole.CodeOf(err) != thole.CodeConflict || name(t, db, "u1") != "" {
		t.Fatalf("doomed transaction: %v", err)
	}
}

func panicking(t *testing.T, db *store.DB) {
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
			_, _ = tx.Exec(insertUser, "u1", "one", 0)
			panic("boom")
		})
	}()
	if name(t, db, "u1") != "" {
		t.Fatal("a panicking transaction was committed")
	}
	mustUpdate(t, db, func(tx *sqldb.Tx) error { _, err := tx.Exec(insertUser, "u1", "one", 0); return err })
}

// concurrent mixes successes, failures and panics, so that every kind of
// neighbour shares a commit with every other.
func concurrent(t *testing.T, db *store.DB) {
	const callers, rounds = 16, 12
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for r := range rounds {
				id := fmt.Sprintf("u-%d-%d", c, r)
				fail := (c+r)%3 == 0
				err := func() (err error) {
					defer func() {
						if p := recover(); p != nil {
							err = fmt.Errorf("panic: %v", p)
						}
					}()
					return db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
						if _, err := tx.Exec(insertUser, id, id, 0); err != nil {
							return err
						}
						switch {
						case fail && c%2 == 0:
							return errors.New("no")
						case fail:
							panic("no")
						}
						return nil
					})
				}()
				if (err != nil) != fail {
					t.Errorf("%s: got %v, want failure %v", id, err, fail)
				}
				if got := name(t, db, id); (got == "") != fail {
					t.Errorf("%s: stored %q, want failure %v", id, got, fail)
				}
			}
		})
	}
	wg.Wait()
}

func afterCommit(t *testing.T, db *store.DB) {
	type got struct{ topic, key string }
	notes := make(chan got, 16)
	for _, topic := range []string{"thread", "job"} {
		cancel := db.Subscribe(topic, func(key string) { notes <- got{topic, key} })
		defer cancel()
	}
	if db.Engine() == "postgres" { // live once each topic was signalled to read again
		for range 2 {
			if n := <-notes; n.key != "" {
				t.Fatalf("first note %v", n)
			}
		}
	}
	var ran atomic.Int32
	_ = db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		tx.AfterCommit(func() { ran.Add(100) })
		tx.Notify("thread", "never")
		return errors.New("no")
	})
	mustUpdate(t, db, func(tx *sqldb.Tx) error {
		tx.AfterCommit(func() { ran.Add(1) })
		tx.AfterCommit(func() { // the commit is visible and another write is allowed
			if name(t, db, "u1") != "one" {
				t.Error("hook ran before the commit was visible")
			}
			mustUpdate(t, db, func(tx *sqldb.Tx) error { tx.Notify("job", "b"); return nil })
		})
		tx.Notify("thread", "a")
		tx.Notify("thread", "a")
		_, err := tx.Exec(insertUser, "u1", "one", 0)
		return err
	})
	if ran.Load() != 1 {
		t.Fatalf("hooks ran to %d", ran.Load())
	}
	if a, b := <-notes, <-notes; a != (got{"thread", "a"}) || b != (got{"job", "b"}) {
		t.Fatalf("notes %v, %v", a, b)
	}
}

func rowLocks(t *testing.T, db *store.DB) {
	mustUpdate(t, db, func(tx *sqldb.Tx) error { _, err := tx.Exec(insertUser, "u1", "0", 0); return err })
	var wg sync.WaitGroup
	const callers = 8
	for range callers {
		wg.Go(func() {
			mustUpdate(t, db, func(tx *sqldb.Tx) error {
				var n int
				if err := tx.QueryRow("select cast(name as bigint) from users where id = $1"+tx.ForUpdate(), "u1").Scan(&n); err != nil {
					return err
				}
				return tx.Must("user is there", "update users set name = $2 where id = $1", "u1", fmt.Sprint(n+1))
			})
		})
	}
	wg.Wait()
	if got := name(t, db, "u1"); got != fmt.Sprint(callers) {
		t.Fatalf("lost updates: %s of %d", got, callers)
	}
	mustUpdate(t, db, func(tx *sqldb.Tx) error {
		ids, err := sqldb.All(tx, func(rows *sql.Rows) (id string, err error) { return id, rows.Scan(&id) },
			"select id from users order by id limit 5"+tx.ForUpdate())
		if len(ids) != 3 { // with the local user and the program
			t.Errorf("ids %v", ids)
		}
		return err
	})
}

func canceled(t *testing.T, db *store.DB) {
	ctx, cancel := context.WithCancel(context.Background())
	err := db.Update(ctx, "test.update", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(insertUser, "u1", "one", 0)
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) || name(t, db, "u1") != "" {
		t.Fatalf("canceled update: %v", err)
	}
	if err := db.View(ctx, func(*sqldb.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Fatalf("canceled view: %v", err)
	}
}

func views(t *testing.T, db *store.DB) {
	err := db.View(context.Background(), func(tx *sqldb.Tx) error {
		var before, after int
		const count = "select count(*) from users"
		if err := tx.QueryRow(count).Scan(&before); err != nil {
			return err
		}
		mustUpdate(t, db, func(tx *sqldb.Tx) error { _, err := tx.Exec(insertUser, "u1", "one", 0); return err })
		if err := tx.QueryRow(count).Scan(&after); err != nil {
			return err
		}
		if before != after {
			t.Errorf("a view saw %d, then %d rows", before, after)
		}
		_, err := tx.Exec(insertUser, "u2", "two", 0)
		return err
	})
	if err == nil {
		t.Fatal("a view wrote")
	}
	err = db.View(context.Background(), func(tx *sqldb.Tx) error {
		return tx.QueryRow("insert into users (id, login, name, state, created_at) values ('x','x','x','active',0) returning id").Scan(new(string))
	})
	if err == nil || name(t, db, "x") != "" {
		t.Fatalf("a view wrote through a query: %v", err)
	}
}

func defaultRows(t *testing.T, db *store.DB) {
	err := db.View(context.Background(), func(tx *sqldb.Tx) error {
		var app, project, user string
		err := tx.QueryRow("select p.app_id, p.id, u.id from projects p, users u where u.login = 'local'").Scan(&app, &project, &user)
		got := thole.Owner{App: thole.AppID(app), Project: thole.ProjectID(project), User: thole.UserID(user)}
		if got != thole.DefaultOwner {
			t.Errorf("default owner %+v", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
