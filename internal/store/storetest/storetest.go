// Package storetest runs a machine's store conformance suite on both engines:
// SQLite always, PostgreSQL through the lab. A suite that passes on one only is a
// bug in the store, never an accepted difference.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Open opens a fresh, migrated store that is closed with the test. Options
// change the configuration before it is opened.
type Open func(t testing.TB, opts ...func(*sqldb.Config)) *store.DB

// Exercise runs suite once per engine, as subtests "sqlite" and "postgres".
// Every call of open gives a store of its own.
func Exercise(t *testing.T, suite func(t *testing.T, open Open)) {
	t.Run("sqlite", func(t *testing.T) { suite(t, SQLite) })
	t.Run("postgres", func(t *testing.T) {
		lab.Postgres(t) // skip the whole suite, not its parts
		suite(t, Postgres)
	})
}

// Postgres is the Open of a fresh PostgreSQL database, a copy of one that was
// migrated.
func Postgres(t testing.TB, opts ...func(*sqldb.Config)) *store.DB {
	t.Helper()
	return open(t, sqldb.Config{DSN: lab.PostgresLike(t, migrate)}, opts)
}

func migrate(dsn string) error {
	db, err := store.Open(context.Background(), sqldb.Config{DSN: dsn})
	if err != nil {
		return err
	}
	return db.Close()
}

// Clock sets the SQLite clock; PostgreSQL keeps database time.
func Clock(now func() time.Time) func(*sqldb.Config) {
	return func(c *sqldb.Config) { c.Now = now }
}

func open(t testing.TB, cfg sqldb.Config, opts []func(*sqldb.Config)) *store.DB {
	t.Helper()
	for _, o := range opts {
		o(&cfg)
	}
	db, err := OpenAt(context.Background(), cfg)
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return db
}
