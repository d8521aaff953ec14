package sqldb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	thole "github.com/tholehq/thole"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrDuplicate is a violated unique or primary key.
var ErrDuplicate = errors.New("already exists")

// unknownOutcome marks a commit that may or may not have happened.
type unknownOutcome struct{ err error }

func (e *unknownOutcome) Error() string { return "commit outcome unknown: " + e.err.Error() }
func (e *unknownOutcome) Unwrap() error { return e.err }

// OutcomeUnknown reports whether err left it open if an Update was committed.
// Such an update must be looked up, never treated as not done.
func OutcomeUnknown(err error) bool {
	var u *unknownOutcome
	return errors.As(err, &u)
}

// classify gives driver errors a class that callers can act on.
func classify(err error) error {
	var known *thole.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
			return thole.Errorf(thole.CodeConflict, "%w: %w", ErrDuplicate, err)
		}
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return thole.Errorf(thole.CodeBusy, "the database is locked by another process: %w", err)
		case sqlite3.SQLITE_FULL:
			return thole.Errorf(thole.CodeUnavailable, "the disk is full: %w", err).WithHint("free space on the disk of the home directory")
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
			return thole.Errorf(thole.CodeUnavailable, "the database cannot be written: %w", err).WithHint("check owner, mode and mount of the home directory")
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return thole.Errorf(thole.CodeUnavailable, "the database file is damaged: %w", err).WithHint("thole db check, then thole db restore <backup>")
		case sqlite3.SQLITE_IOERR:
			return thole.Errorf(thole.CodeUnavailable, "the disk reported an error: %w", err).WithHint("check the disk, then restart thole")
		}
		return err
	}
	return classifyPostgres(err)
}

// classifyPostgres says what to do about the refusals that a first connection meets.
func classifyPostgres(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "23505":
			return thole.Errorf(thole.CodeConflict, "%w: %w", ErrDuplicate, err)
		case "3D000":
			return thole.Errorf(thole.CodeUnavailable, "the database does not exist: %w", err).WithHint("make it: create database NAME owner USER encoding 'UTF8' template template0")
		case "28P01", "28000":
			return thole.Errorf(thole.CodeUnavailable, "PostgreSQL refused the login: %w", err).WithHint("check the user in store.url and the password in store.password_file or PGPASSFILE")
		case "42501":
			return thole.Errorf(thole.CodeForbidden, "the user of the store may not do that: %w", err).WithHint("make it the owner of the database: alter database NAME owner to USER; or grant create, usage on schema public to USER")
		case "25006":
			return thole.Errorf(thole.CodeUnavailable, "the database can only be read: %w", err).WithHint("it is a standby, or set to read-only: name the primary in store.url")
		case "53300":
			return thole.Errorf(thole.CodeBusy, "PostgreSQL has no connection left: %w", err).WithHint("raise max_connections; each server takes up to 17")
		}
	}
	var dial *pgconn.ConnectError
	if errors.As(err, &dial) {
		return thole.Errorf(thole.CodeUnavailable, "PostgreSQL gives no connection: %w", err).WithHint("check that the server runs and that host, port, database, user and password are right")
	}
	return err
}

// serialization reports whether PostgreSQL undid the transaction because of a
// concurrent one, so that running it again is safe and sensible.
func serialization(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
