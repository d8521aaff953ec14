package store

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
)

// Executors is the durable record of executors. What sweeps it, and what ends rows whose
// executor is gone, sees those of one engine alone: nobody else can know.
type Executors struct {
	db     *DB
	engine string
}

var _ executor.Rows = (*Executors)(nil)

// Executors returns the executor rows of this store, with the engine of the home that has it.
func (db *DB) Executors() *Executors { return &Executors{db: db} }

// ExecutorsOn returns the executor rows of this store for whom reaches one engine.
func (db *DB) ExecutorsOn(engine string) *Executors { return &Executors{db, engine} }

const executorColumns = `id, thread_id, turn_id, scope, driver, engine, state, restored, last_active_at, stopped_at,
	sync_started_at, last_sync_at, sync_status, sync_reason, sync_error, snapshot, created_at, updated_at`

func scanExecutor(rows *sql.Rows) (r executor.Row, err error) {
	var active, stopped, started, synced, created, updated int64
	err = rows.Scan(&r.ID, &r.Thread, &r.Turn, &r.Scope, &r.Driver, &r.Engine, &r.State, &r.Restored, &active, &stopped,
		&started, &synced, &r.SyncStatus, &r.SyncReason, &r.SyncError, &r.Snapshot, &created, &updated)
	r.LastActive, r.Stopped, r.SyncStarted = thole.FromMillis(active), thole.FromMillis(stopped), thole.FromMillis(started)
	r.LastSync, r.Created, r.Updated = thole.FromMillis(synced), thole.FromMillis(created), thole.FromMillis(updated)
	return r, err
}

// Ensure implements executor.Rows.
func (e *Executors) Ensure(ctx context.Context, want executor.Row) (row executor.Row, err error) {
	// The scope stands in the text: SQLite would plan the statement again with every
	// call to see whether an index of one scope serves.
	scope := `scope = 'thread'`
	if want.Scope == executor.ScopeTurn {
		scope = `scope = 'turn'`
	}
	look := func(tx *sqldb.Tx) (bool, error) {
		found, err := sqldb.All(tx, scanExecutor, `select `+executorColumns+` from executors
			where thread_id = $1 and turn_id = $2 and state <> 'deleted' and `+scope, want.Thread, want.Turn)
		if err == nil && len(found) > 0 {
			row = found[0]
		}
		return len(found) > 0, err
	}
	there := false // usually, and then nothing is written
	if err = e.db.View(ctx, func(tx *sqldb.Tx) error { there, err = look(tx); return err }); err != nil || there && row.Engine == e.engine {
		return row, err
	}
	err = e.db.Update(ctx, "executor.intend", func(tx *sqldb.Tx) error {
		there, err := look(tx)
		if err != nil {
			return err
		}
		if there && row.Engine != e.engine {
			there, err = e.stays(tx, row)
		}
		if err != nil || there {
			return err
		}
		now := thole.Millis(tx.Now())
		if _, err := tx.Exec(`insert into executors (`+executorColumns+`)
			values ($1, $2, $3, $4, $5, $7, 'creating', false, $6, 0, 0, 0, 'idle', '', '', '', $6, $6)`,
			want.ID, want.Thread, want.Turn, want.Scope, want.Driver, now, e.engine); err != nil {
			return err
		}
		row, err = getExecutor(tx, want.ID)
		return err
	})
	return row, err
}

// stays reports whether an executor of another engine may still be there. One whose server
// has been gone for longer than executors outlive it has ended itself: its row ends too,
// and what it had not synced is lost.
func (e *Executors) stays(tx *sqldb.Tx, row executor.Row) (bool, error) {
	over, err := tx.ExecOne(`update executors set updated_at = $2, state = 'deleted', restored = false, sync_error = '`+serverGone+`'
		where id = $1 and state <> 'deleted' and not exists (select 1 from servers where `+mayRun+`)`, row.ID, thole.Millis(tx.Now()))
	if err != nil {
		return true, err
	}
	if over {
		return false, forgetTokens(tx, row.ID)
	}
	return true, thole.Errorf(thole.CodeUnavailable, "executor %s is on another server (%s)", row.ID, row.Engine)
}

// mayRun are the servers whose executors may still run, of those that an executor is on;
// $2 is the store's time.
var mayRun = lastsOn("$2")

// lastsOn is the condition that an executor lasts on a server at a time: as long as the
// server is alive, and if it runs, or its files are not saved, as long after that as
// executors outlive it.
func lastsOn(now string) string {
	dead := strconv.FormatInt(roster.DeadAfter.Milliseconds(), 10)
	return `'local:' || servers.id = executors.engine and heartbeat_at + orphan_ms + ` + dead + ` >= ` + now + `
		and (not departed and heartbeat_at + ` + dead + ` >= ` + now + `
			or not (executors.state = 'stopped' and executors.sync_status = 'success' and executors.last_sync_at >= executors.last_active_at))`
}

func getExecutor(tx *sqldb.Tx, id thole.ExecutorID) (executor.Row, error) {
	found, err := sqldb.All(tx, scanExecutor, `select `+executorColumns+` from executors where id = $1`, id)
	if err == nil && len(found) == 0 {
		return executor.Row{}, thole.Errorf(thole.CodeNotFound, "no executor %s", id)
	}
	if err != nil {
		return executor.Row{}, err
	}
	return found[0], nil
}

// Get implements executor.Rows.
func (e *Executors) Get(ctx context.Context, id thole.ExecutorID) (row executor.Row, err error) {
	err = e.db.View(ctx, func(tx *sqldb.Tx) error {
		row, err = getExecutor(tx, id)
		return err
	})
	return row, err
}

// Of implements executor.Rows.
func (e *Executors) Of(ctx context.Context, id thole.ThreadID) ([]executor.Row, error) {
	return e.list(ctx, `where thread_id = $1 and state <> 'deleted' order by id`, id)
}

// OfThread returns the thread's first live executor; CodeNotFound without one.
func (e *Executors) OfThread(ctx context.Context, id thole.ThreadID) (executor.Row, error) {
	rows, err := e.Of(ctx, id)
	if err == nil && len(rows) == 0 {
		err = thole.Errorf(thole.CodeNotFound, "thread %s has no executor", id)
	}
	if err != nil {
		return executor.Row{}, err
	}
	return rows[0], nil
}

// ServerOf is the id of the server that has a thread's executor, or had its last one, or on whose
// machine its files are; "" if there is no such server. live: the executor is still recorded.
func (e *Executors) ServerOf(ctx context.Context, id thole.ThreadID) (server string, live bool, err error) {
	err = e.db.View(ctx, func(tx *sqldb.Tx) error {
		rows, err := sqldb.All(tx, scanExecutor, `select `+executorColumns+` from executors where thread_id = $1 order by state = 'deleted', created_at desc limit 1`, id)
		if err != nil || len(rows) == 1 {
			if len(rows) == 1 {
				server, live = roster.OfEngine(rows[0].Engine), rows[0].State != executor.RowDeleted
			}
			return err
		}
		places, err := sqldb.All(tx, scanID[string], `select server_id from thread_places where thread_id = $1`, id)
		if len(places) == 1 {
			server = places[0]
		}
		return err
	})
	return server, live, err
}

// GivenUp returns the last executor of a thread that was given up with its server.
func (e *Executors) GivenUp(ctx context.Context, id thole.ThreadID) (row executor.Row, found bool, err error) {
	rows, err := e.list(ctx, `where thread_id = $1 and state = 'deleted' and sync_error = '`+serverGone+`' order by updated_at desc limit 1`, id)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

// serverGone is the sync error of an executor that was given up with its server.
const serverGone = "its server is gone"

// change is one compare-and-set.
func (e *Executors) change(ctx context.Context, step string, id thole.ExecutorID, to, expect string, args ...any) (ok bool, err error) {
	err = e.db.Update(ctx, step, func(tx *sqldb.Tx) error {
		ok, err = set(tx, id, thole.Millis(tx.Now()), to, expect, args...)
		return err
	})
	return ok, err
}

// end is change to a row that is over, and so are the tokens of its agents.
func (e *Executors) end(ctx context.Context, step string, id thole.ExecutorID, to, expect string, args ...any) (ok bool, err error) {
	err = e.db.Update(ctx, step, func(tx *sqldb.Tx) error {
		if ok, err = set(tx, id, thole.Millis(tx.Now()), to, expect, args...); err != nil || !ok {
			return err
		}
		return forgetTokens(tx, id)
	})
	return ok, err
}

// set changes a row that is as expected; $1 is the id, $2 the store's time.
func set(tx *sqldb.Tx, id thole.ExecutorID, now int64, to, expect string, args ...any) (bool, error) {
	return tx.ExecOne(`update executors set updated_at = $2, `+to+` where id = $1 and `+expect, append([]any{id, now}, args...)...)
}

// MarkRunning implements executor.Rows.
func (e *Executors) MarkRunning(ctx context.Context, id thole.ExecutorID) (bool, error) {
	return e.change(ctx, "executor.running", id, `state = 'running', last_active_at = $2, stopped_at = 0`, `state in ('creating', 'stopped', 'running')`)
}

// MarkRestored implements executor.Rows.
func (e *Executors) MarkRestored(ctx context.Context, id thole.ExecutorID) (bool, error) {
	return e.change(ctx, "executor.restored", id, `restored = true, last_active_at = $2`, `state = 'running'`)
}

// Touch implements executor.Rows.
func (e *Executors) Touch(ctx context.Context, id thole.ExecutorID) error {
	_, err := e.change(ctx, "executor.touch", id, `last_active_at = $2`, `state = 'running'`)
	return err
}

// BeginSync implements executor.Rows.
func (e *Executors) BeginSync(ctx context.Context, id thole.ExecutorID, reason string) (bool, error) {
	return e.change(ctx, "executor.sync_begin", id, `sync_status = 'running', sync_started_at = $2, sync_reason = $3, sync_error = ''`,
		`state in ('running', 'stopped') and restored`, reason)
}

// EndSync implements executor.Rows.
func (e *Executors) EndSync(ctx context.Context, id thole.ExecutorID, snapshot string, failure error) (bool, error) {
	if failure != nil {
		return e.change(ctx, "executor.sync_failed", id, `sync_status = 'failed', sync_error = $3`, `sync_status = 'running'`, plain(failure.Error()))
	}
	var ok bool
	err := e.db.Update(ctx, "executor.sync_done", func(tx *sqldb.Tx) (err error) {
		now := thole.Millis(tx.Now())
		ok, err = set(tx, id, now, `sync_status = 'success', last_sync_at = $2, snapshot = $3`, `sync_status = 'running'`, snapshot)
		if err == nil && ok {
			err = keepTurn(tx, id, snapshot, now)
		}
		return err
	})
	return ok, err
}

// MarkStopped implements executor.Rows.
func (e *Executors) MarkStopped(ctx context.Context, id thole.ExecutorID) (bool, error) {
	return e.change(ctx, "executor.stopped", id, `state = 'stopped', stopped_at = $2`, `state = 'running' and (sync_status = 'success' or not restored)`)
}

// MarkDeleted implements executor.Rows.
func (e *Executors) MarkDeleted(ctx context.Context, id thole.ExecutorID) (bool, error) {
	return e.end(ctx, "executor.deleted", id, `state = 'deleted'`,
		`state in ('creating', 'stopped') and (not restored or (sync_status = 'success' and sync_started_at >= stopped_at))`)
}

// MarkMissing implements executor.Rows. What was not synced is lost already; the
// row says so in its sync error and no longer claims to hold anything.
func (e *Executors) MarkMissing(ctx context.Context, id thole.ExecutorID) (bool, error) {
	return e.end(ctx, "executor.missing", id, `state = 'deleted', restored = false, sync_error = 'the executor was gone'`, `state <> 'deleted' and engine = $3`, e.engine)
}

func (e *Executors) list(ctx context.Context, where string, args ...any) (rows []executor.Row, err error) {
	err = e.db.View(ctx, func(tx *sqldb.Tx) error {
		rows, err = sqldb.All(tx, scanExecutor, `select `+executorColumns+` from executors `+where, args...)
		return err
	})
	return rows, err
}

// Idle implements executor.Rows.
func (e *Executors) Idle(ctx context.Context, before time.Time, limit int) ([]executor.Row, error) {
	return e.list(ctx, `where state = 'running' and engine = $3 and last_active_at < $1 order by last_active_at limit $2 + 0`, thole.Millis(before), limit, e.engine)
}

// Old implements executor.Rows.
func (e *Executors) Old(ctx context.Context, before time.Time, limit int) ([]executor.Row, error) {
	return e.list(ctx, `where state = 'stopped' and engine = $3 and stopped_at < $1 order by stopped_at limit $2 + 0`, thole.Millis(before), limit, e.engine)
}

// Stale implements executor.Rows. It goes by the last try, so that syncs that
// keep failing do not keep the others from their turn.
func (e *Executors) Stale(ctx context.Context, before time.Time, limit int) ([]executor.Row, error) {
	return e.list(ctx, `where state in ('running', 'stopped') and engine = $3 and restored and sync_started_at < $1
		and (last_sync_at < last_active_at or sync_status <> 'success') order by sync_started_at, id limit $2 + 0`, thole.Millis(before), limit, e.engine)
}

// Live implements executor.Rows.
func (e *Executors) Live(ctx context.Context, after thole.ExecutorID, limit int) ([]executor.Row, error) {
	return e.list(ctx, `where state <> 'deleted' and engine = $3 and id > $1 order by id limit $2 + 0`, after, limit, e.engine)
}

// Now implements executor.Rows.
func (e *Executors) Now(ctx context.Context) (now time.Time, err error) {
	err = e.db.View(ctx, func(tx *sqldb.Tx) error {
		now = tx.Now()
		return nil
	})
	return now, err
}
