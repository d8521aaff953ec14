package sqldb

import (
	"context"
	"log/slog"
	"time"

	thole "github.com/tholehq/thole"
)

// Config says which engine to open. Exactly one of Path and DSN is set.
type Config struct {
	Path string // SQLite file; its directory is created 0700, the file 0600
	DSN  string // PostgreSQL connection string

	// Schema is what the database has to look like.
	Schema Schema
	// Now is the clock of Tx.Now on SQLite; PostgreSQL uses database time,
	// because several machines share its leases. Default time.Now.
	Now func() time.Time
	// Conns bounds concurrent readers on SQLite (default 4) and all connections
	// on PostgreSQL (default 16: more are slower on the machines we measured), of
	// which a quarter is for batches.
	Conns int
	Log   *slog.Logger

	// Took receives how long each durable change took, the wait for others included.
	Took func(time.Duration)
	// Hook is called at every durable step, for crash tests.
	Hook Hook
	// VFS names a registered SQLite file system, for power-loss tests.
	VFS string
}

// Hook observes durable steps. It is called with the transaction open
// (BeforeCommit) and again once the commit is durable but before the caller knows
// (AfterCommit).
type Hook func(p Point, step string)

// Point is a place in the life of a durable step.
type Point string

const (
	BeforeCommit Point = "before-commit"
	AfterCommit  Point = "after-commit"
)

// DB is an open store. All methods are safe for concurrent use.
type DB struct {
	cfg Config
	eng engine
	bus *bus
}

type engine interface {
	name() string
	update(ctx context.Context, step string, fn func(*Tx) error) (*Tx, error)
	view(ctx context.Context, fn func(*Tx) error) error
	close() error
}

// Open opens the store and brings its schema up to this binary's.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if (cfg.Path == "") == (cfg.DSN == "") {
		return nil, thole.Errorf(thole.CodeInvalid, "open store: set either a SQLite path or a PostgreSQL DSN")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Took == nil {
		cfg.Took = func(time.Duration) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	db := &DB{cfg: cfg}
	var err error
	if cfg.Path != "" {
		db.bus = newBus(nil)
		db.eng, err = openSQLite(ctx, cfg)
	} else {
		var pg *postgres
		if pg, err = openPostgres(ctx, cfg); err == nil {
			db.eng, db.bus = pg, newBus(pg.listen)
		}
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Close waits for running transactions and closes the store.
func (db *DB) Close() error {
	db.bus.close()
	return db.eng.close()
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	return db.View(ctx, func(tx *Tx) error {
		var one int
		return tx.QueryRow("select 1").Scan(&one)
	})
}

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return db.eng.name() }

// Update runs fn in one durable transaction. step names the durable step, a
// string literal such as "thread.start_turn": the crash harness kills the
// process before and after each one.
//
// A nil result means committed and durable. Any error means nothing was
// changed, except one for which OutcomeUnknown is true: then the commit may or
// may not have happened. Once the commit has begun, ctx no longer matters.
func (db *DB) Update(ctx context.Context, step string, fn func(tx *Tx) error) error {
	if step == "" {
		return thole.Errorf(thole.CodeInternal, "update: a durable step needs a name")
	}
	began := time.Now()
	tx, err := db.eng.update(ctx, step, fn)
	if err != nil {
		return err
	}
	db.cfg.Took(time.Since(began))
	if db.Engine() == SQLite {
		db.bus.publish(tx.notes)
	}
	for _, f := range tx.after {
		f()
	}
	return nil
}

// View runs fn on one consistent read-only snapshot.
func (db *DB) View(ctx context.Context, fn func(tx *Tx) error) error {
	return db.eng.view(ctx, fn)
}

// Subscribe calls fn after each committed Tx.Notify of topic, by any process
// that shares the store. An empty key means notes may have been missed: read
// again whatever depends on the topic. fn must not block. Notes of different
// transactions may arrive in any order.
func (db *DB) Subscribe(topic string, fn func(key string)) (cancel func()) {
	return db.bus.subscribe(topic, fn)
}
