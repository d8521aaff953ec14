package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
)

// TestSerializationFailuresAreRetried: with a bound, and only those.
func TestSerializationFailuresAreRetried(t *testing.T) {
	db := storetest.Postgres(t)
	raise := func(code string) string {
		return fmt.Sprintf("do $$ begin raise exception using errcode = '%s'; end $$", code)
	}
	for _, c := range []struct {
		code        string
		fails, want int
		ok          bool
	}{
		{"40001", 2, 3, true},
		{"40P01", 1, 2, true},
		{"40001", 1000, 9, false},
		{"22012", 1, 1, false},
	} {
		tries, hooks := 0, 0
		err := db.Update(context.Background(), "test.update", func(tx *sqldb.Tx) error {
			tries++
			tx.AfterCommit(func() { hooks++ })
			if tries <= c.fails {
				_, err := tx.Exec(raise(c.code))
				return err
			}
			return nil
		})
		if tries != c.want || (err == nil) != c.ok || (hooks == 1) != c.ok {
			t.Errorf("%s failing %d times: %d tries, %d hooks, %v", c.code, c.fails, tries, hooks, err)
		}
	}
}

// TestBusComesBack: a listener that lost its connection makes every subscriber read
// again, and hears what follows.
func TestBusComesBack(t *testing.T) {
	db := storetest.Postgres(t)
	notes := make(chan string, 16)
	defer db.Subscribe("thread", func(key string) { notes <- key })()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-notes:
			if got != want {
				t.Fatalf("note %q, want %q", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no note, want %q", want)
		}
	}
	next("") // live
	mustUpdate(t, db, func(tx *sqldb.Tx) error {
		_, err := tx.Exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike 'listen%'")
		return err
	})
	next("")
	mustUpdate(t, db, func(tx *sqldb.Tx) error { tx.Notify("thread", "a"); return nil })
	next("a")
	mustUpdate(t, db, func(tx *sqldb.Tx) error { // more than one payload holds
		for i := range 100 {
			tx.Notify("thread", strings.Repeat("x", 100)+fmt.Sprint(i))
		}
		return nil
	})
	next("")
}
