package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
)

// Tx is a running transaction. It belongs to the function it was given to and
// is not safe for concurrent use.
type Tx struct {
	ctx      context.Context // of the caller
	q        querier
	clock    func(*Tx) time.Time
	readOnly bool

	now    time.Time
	failed error // the first failed statement; dooms the transaction
	after  []func()
	notes  []note
}

// querier runs statements on one connection.
type querier interface {
	exec(ctx context.Context, query string, args []any) (int64, error)
	query(ctx context.Context, query string, args []any) (*sql.Rows, error)
}

// Context is the context of the Update or View call.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if tx.readOnly {
		return 0, tx.fail(thole.Errorf(thole.CodeInternal, "exec: the transaction is read-only"))
	}
	if err := tx.usable(); err != nil {
		return 0, err
	}
	n, err := tx.q.exec(tx.ctx, query, args)
	if err != nil {
		return 0, tx.fail(err)
	}
	return n, nil
}

// ExecOne runs a compare-and-set and reports whether it changed its row. More
// than one changed row is an error: the statement's condition is too wide.
func (tx *Tx) ExecOne(query string, args ...any) (bool, error) {
	n, err := tx.Exec(query, args...)
	if err != nil {
		return false, err
	}
	if n > 1 {
		return false, tx.fail(thole.Errorf(thole.CodeInternal, "compare-and-set changed %d rows", n))
	}
	return n == 1, nil
}

// Must runs a compare-and-set that the caller has already decided must hold; no
// changed row is a conflict that dooms the transaction. what names the
// expectation, e.g. "turn is running".
func (tx *Tx) Must(what, query string, args ...any) error {
	ok, err := tx.ExecOne(query, args...)
	if err == nil && !ok {
		err = tx.fail(thole.Errorf(thole.CodeConflict, "expected state was not met: %s", what))
	}
	return err
}

// Query runs a query. Close the rows before the next statement; All does both.
func (tx *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	rows, err := tx.q.query(tx.ctx, query, args)
	if err != nil {
		return nil, tx.fail(err)
	}
	return rows, nil
}

// QueryRow runs a query of which only the first row matters.
func (tx *Tx) QueryRow(query string, args ...any) *Row {
	rows, err := tx.Query(query, args...) //nolint:rowserrcheck // Row does
	return &Row{tx: tx, rows: rows, err: err}
}

// Row is the first row of a query.
type Row struct {
	tx   *Tx
	rows *sql.Rows
	err  error
}

// Scan copies the columns into dest; without a row it returns sql.ErrNoRows,
// which does not doom the transaction.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return r.tx.fail(err)
		}
		return sql.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	if err := r.rows.Close(); err != nil {
		return r.tx.fail(err)
	}
	return nil
}

// All runs a query and collects what scan makes of each row.
func All[T any](tx *Tx, scan func(rows *sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		return nil, tx.fail(err)
	}
	return all, nil
}

// Now is the store's time, the same for the whole transaction: database time
// on PostgreSQL, the configured clock on SQLite. Milliseconds, UTC. Take it
// after the locks that a decision by it needs. Failing to ask the database dooms
// the transaction.
func (tx *Tx) Now() time.Time {
	if tx.now.IsZero() && tx.usable() == nil {
		tx.now = tx.clock(tx).UTC().Truncate(time.Millisecond)
	}
	return tx.now
}

// ForUpdate is the clause that locks the rows a query reads. SQLite needs none: every
// write transaction is immediate and goes through one connection.
func (tx *Tx) ForUpdate() string {
	if _, shared := tx.q.(pgQuerier); shared {
		return " for update"
	}
	return ""
}

// AfterCommit runs f on the caller's goroutine once the commit is durable and
// before Update returns. Hooks of different transactions run in any order.
func (tx *Tx) AfterCommit(f func()) { tx.after = append(tx.after, f) }

// Notify wakes the subscribers of topic with key once the commit is durable.
func (tx *Tx) Notify(topic, key string) {
	n := note{Topic: topic, Key: key}
	for _, have := range tx.notes {
		if have == n {
			return
		}
	}
	tx.notes = append(tx.notes, n)
}

func (tx *Tx) usable() error {
	if tx.failed != nil {
		return tx.failed
	}
	return tx.ctx.Err()
}

func (tx *Tx) fail(err error) error {
	err = classify(err)
	if tx.failed == nil {
		tx.failed = err
	}
	return err
}

// outcome is the verdict on a transaction function: its own error, else the
// statement error it swallowed, else a context that died meanwhile.
func (tx *Tx) outcome(err error) error {
	if err != nil {
		return err
	}
	if tx.failed != nil {
		return tx.failed
	}
	return tx.ctx.Err()
}

// NoRows reports whether err says that a QueryRow found nothing.
func NoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
