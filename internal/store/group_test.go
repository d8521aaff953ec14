package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/powerloss"
	"pgregory.net/rapid"
)

func insert(db *store.DB, id string) error {
	return db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(insertUser, id, id, 0)
		return err
	})
}

// holdWriter occupies the writer until the returned function is called.
func holdWriter(t *testing.T, db *store.DB) (release func()) {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := db.Update(context.Background(), "test.hold", func(tx *sqldb.Tx) error {
			close(held)
			<-free
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	return func() { close(free); wg.Wait() }
}

// TestGroupSharesOneCommit: callers that wait for the writer are committed
// together, in the order they came, and a failure undoes only its own.
func TestGroupSharesOneCommit(t *testing.T) {
	var mu sync.Mutex
	var commits [][]string // the steps reported between two commits
	var last sqldb.Point
	db := storetest.SQLite(t, func(c *sqldb.Config) {
		c.Hook = func(p sqldb.Point, step string) {
			mu.Lock()
			defer mu.Unlock()
			if p == sqldb.BeforeCommit {
				if last != p {
					commits = append(commits, nil)
				}
				commits[len(commits)-1] = append(commits[len(commits)-1], step)
			}
			last = p
		}
	})
	release := holdWriter(t, db)
	const callers = 10
	errs := make([]error, callers)
	var wg sync.WaitGroup
	queued := make(chan struct{}, callers)
	for i := range callers {
		wg.Go(func() {
			ctx := signalWhenWaiting{context.Background(), queued}
			errs[i] = db.Update(ctx, "test.update", func(tx *sqldb.Tx) error {
				_, err := tx.Exec(insertUser, fmt.Sprint("u", i), "x", 0)
				if i == 3 {
					return errors.New("no")
				}
				return err
			})
		})
	}
	for range callers {
		<-queued
	}
	release()
	wg.Wait()
	for i, err := range errs {
		if (err != nil) != (i == 3) || (name(t, db, fmt.Sprint("u", i)) == "") != (i == 3) {
			t.Errorf("caller %d: %v", i, err)
		}
	}
	// The held one was alone when it began, but those who came while it ran
	// still share its commit.
	if len(commits) != 1 || len(commits[0]) != callers {
		t.Fatalf("commits %v, want one of the holder and %d others", commits, callers-1)
	}
}

// signalWhenWaiting signals that a caller looks for cancellation, which Update does
// only once it is in the queue.
type signalWhenWaiting struct {
	context.Context
	queued chan<- struct{}
}

func (c signalWhenWaiting) Done() <-chan struct{} {
	select {
	case c.queued <- struct{}{}:
	default:
	}
	return c.Context.Done()
}

func TestWaitingCallerCanGiveUp(t *testing.T) {
	db := storetest.SQLite(t)
	release := holdWriter(t, db)
	ctx, cancel := context.WithCancel(context.Background())
	queued := make(chan struct{}, 1)
	result := make(chan error, 1)
	go func() {
		result <- db.Update(signalWhenWaiting{ctx, queued}, "test.update", func(tx *sqldb.Tx) error {
			t.Error("a caller that gave up was served")
			return nil
		})
	}()
	<-queued
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	release()
	if err := insert(db, "next"); err != nil {
		t.Fatal(err)
	}
}

func TestFunctionThatLeavesItsGoroutine(t *testing.T) {
	db := storetest.SQLite(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
			_, _ = tx.Exec(insertUser, "u1", "x", 0)
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	if name(t, db, "u1") != "" {
		t.Error("an abandoned transaction was committed")
	}
	if err := insert(db, "u2"); err != nil {
		t.Fatal(err)
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	db := storetest.SQLite(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := insert(db, "u1"); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Errorf("update: %v", err)
	}
	if err := db.View(context.Background(), func(*sqldb.Tx) error { return nil }); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Errorf("view: %v", err)
	}
}

// TestFullDisk: a full disk is a certain no, and passes.
func TestFullDisk(t *testing.T) {
	d := powerloss.NewDisk(t)
	db := storetest.SQLite(t, func(c *sqldb.Config) { c.Path, c.VFS = filepath.Join(d.Dir, "s.db"), d.VFS })
	if err := insert(db, "before"); err != nil {
		t.Fatal(err)
	}
	d.Full(true)
	err := insert(db, "during")
	if thole.CodeOf(err) != thole.CodeUnavailable || sqldb.OutcomeUnknown(err) || !strings.Contains(err.Error(), "full") {
		t.Fatalf("on a full disk: %v", err)
	}
	d.Full(false)
	if err := insert(db, "after"); err != nil {
		t.Fatal(err)
	}
	if name(t, db, "before") == "" || name(t, db, "during") != "" || name(t, db, "after") == "" {
		t.Fatal("wrong rows")
	}
}

// TestFailedSync: a commit whose sync failed is neither done nor undone, and
// nothing more is written: a later sync that succeeds proves nothing about it.
func TestFailedSync(t *testing.T) {
	d := powerloss.NewDisk(t)
	db := storetest.SQLite(t, func(c *sqldb.Config) { c.Path, c.VFS = filepath.Join(d.Dir, "s.db"), d.VFS })
	if err := insert(db, "before"); err != nil {
		t.Fatal(err)
	}
	d.Broken(true)
	if err := insert(db, "during"); !sqldb.OutcomeUnknown(err) {
		t.Fatalf("failed sync: %v", err)
	}
	d.Broken(false)
	err := insert(db, "after")
	if thole.CodeOf(err) != thole.CodeUnavailable || thole.HintOf(err) == "" {
		t.Fatalf("after a failed sync: %v", err)
	}
	if name(t, db, "before") == "" || name(t, db, "after") != "" {
		t.Fatal("wrong rows")
	}
}

// TestModel runs random transactions against a map.
func TestModel(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		round := 0
		rapid.Check(t, func(t *rapid.T) {
			round++
			model := map[string]string{}
			key := func(t *rapid.T) string {
				return fmt.Sprintf("%d-%s", round, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"))
			}
			for range rapid.IntRange(1, 4).Draw(t, "transactions") {
				fail := rapid.Bool().Draw(t, "fail")
				next := map[string]string{}
				for k, v := range model {
					next[k] = v
				}
				err := db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
					for range rapid.IntRange(1, 4).Draw(t, "statements") {
						k, v := key(t), rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "value")
						if old, ok := next[k]; ok {
							if changed, err := tx.ExecOne(renameFrom, k, old, v); err != nil || !changed {
								return fmt.Errorf("swap of what is there: %v, %w", changed, err)
							}
							next[k] = v
						} else if n, err := tx.Exec(insertUser+" on conflict do nothing", k, v, 0); err != nil || n != 1 {
							return fmt.Errorf("insert of what is not: %d, %w", n, err)
						} else {
							next[k] = v
						}
						if changed, err := tx.ExecOne(renameFrom, k, "not this", "x"); err != nil || changed {
							return fmt.Errorf("swap of what is not: %v, %w", changed, err)
						}
					}
					if fail {
						return errFail
					}
					return nil
				})
				switch {
				case fail && !errors.Is(err, errFail), !fail && err != nil:
					t.Fatal(err)
				case !fail:
					model = next
				}
				if got := names(t, db, fmt.Sprintf("%d-%%", round)); !maps.Equal(got, model) {
					t.Fatalf("stored %v, want %v", got, model)
				}
			}
		})
	})
}

var errFail = errors.New("fail")

func names(t *rapid.T, db *store.DB, like string) map[string]string {
	all := map[string]string{}
	err := db.View(context.Background(), func(tx *sqldb.Tx) error {
		_, err := sqldb.All(tx, func(rows *sql.Rows) (struct{}, error) {
			var id, name string
			err := rows.Scan(&id, &name)
			all[id] = name
			return struct{}{}, err
		}, "select id, name from users where id like $1", like)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
