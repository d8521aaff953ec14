package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
)

// holdsLease is the fence in front of every write under a lease: the token is the
// row's and its time is not over.
const holdsLease = ` where turn_id = $1 and state = 'leased' and lease_token = $2 and lease_until > {now}`

// underLease runs one compare-and-set that is fenced by a lease. $1 and $2 are
// turn and token.
func (q *Queue) underLease(ctx context.Context, step, topic string, turn thole.TurnID, token, set string, args ...any) (cancel bool, err error) {
	held := false
	err = q.db.Batch(ctx, step, topic, func() []sqldb.Statement {
		held = false
		change := sqldb.Statement{
			Text: `update turn_queue set ` + set + holdsLease + ` returning cancel`, Args: append([]any{string(turn), token}, args...),
			Row: func(scan func(...any) error) error {
				held = true
				return scan(&cancel)
			},
		}
		if topic == "" { // a renewal
			return []sqldb.Statement{{Text: `select ` + hasty, Postgres: true}, change}
		}
		return []sqldb.Statement{change}
	})
	if err == nil && !held {
		err = queue.ErrLeaseLost
	}
	return cancel, err
}

// fenceTurn refuses a writer whose lease on a turn is over. A caller that changes a
// turn under a lease calls it in the same transaction. Without a turn there is nothing
// to be fenced: a user's wish, or a thread that is only being stored.
func fenceTurn(tx *sqldb.Tx, turn thole.TurnID, token string) error {
	if turn == "" {
		return nil
	}
	held := false
	err := tx.Run(sqldb.Statement{Text: `select 1 from turn_queue` + holdsLease, Args: []any{string(turn), token}, Row: func(func(...any) error) error {
		held = true
		return nil
	}})
	if err == nil && !held {
		err = queue.ErrLeaseLost
	}
	return err
}

// Renew implements queue.Store.
func (q *Queue) Renew(ctx context.Context, turn thole.TurnID, token string, lease time.Duration) (cancel bool, err error) {
	return q.underLease(ctx, "queue.renew", "", turn, token, `lease_until = {now} + $3`, lease.Milliseconds())
}

// Wait implements queue.Store.
func (q *Queue) Wait(ctx context.Context, turn thole.TurnID, token string, waiting bool) error {
	_, err := q.underLease(ctx, "queue.wait", queueTopic, turn, token, `waiting = $3`, waiting)
	return err
}

// Park implements queue.Store.
func (q *Queue) Park(ctx context.Context, turn thole.TurnID, token string) error {
	_, err := q.underLease(ctx, "queue.park", queueTopic, turn, token,
		`state = 'parked', lease_token = '', lease_until = 0, waiting = false, attempt = 0`)
	return err
}

// Release implements queue.Store.
func (q *Queue) Release(ctx context.Context, turn thole.TurnID, token string, delay time.Duration, why string) error {
	return q.back(ctx, "queue.release", `attempt = attempt + 1, `, turn, token, delay, why)
}

// PutBack implements queue.Store.
func (q *Queue) PutBack(ctx context.Context, turn thole.TurnID, token string, delay time.Duration, why string) error {
	return q.back(ctx, "queue.put_back", "", turn, token, delay, why)
}

func (q *Queue) back(ctx context.Context, step, count string, turn thole.TurnID, token string, delay time.Duration, why string) error {
	set, args := count+`state = 'ready', lease_token = '', lease_until = 0, waiting = false, last_error = $3, available_at = `, []any{plain(why)}
	if delay > 0 {
		set, args = set+`{now} + $4`, append(args, delay.Milliseconds())
	} else {
		set += `0`
	}
	_, err := q.underLease(ctx, step, queueTopic, turn, token, set, args...)
	return err
}

// Hasten implements queue.Store.
func (q *Queue) Hasten(ctx context.Context, turn thole.TurnID) error {
	return q.db.Update(ctx, "queue.hasten", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`update turn_queue set available_at = 0 where turn_id = $1 and state = 'ready' and available_at > 0`, turn)
		if ok {
			tx.Notify(queueTopic, "")
		}
		return err
	})
}

// Unpark implements queue.Store.
func (q *Queue) Unpark(ctx context.Context, turn thole.TurnID) (ok bool, err error) {
	err = q.db.Update(ctx, "queue.unpark", func(tx *sqldb.Tx) error {
		ok, err = unparkTurn(tx, turn)
		return err
	})
	return ok, err
}

// unparkTurn makes a parked turn ready, in the transaction that recorded why.
func unparkTurn(tx *sqldb.Tx, turn thole.TurnID) (bool, error) {
	ok, err := tx.ExecOne(`update turn_queue set state = 'ready', available_at = 0 where turn_id = $1 and state = 'parked'`, turn)
	if ok {
		tx.Notify(queueTopic, "")
	}
	return ok, err
}

// Cancel implements queue.Store.
func (q *Queue) Cancel(ctx context.Context, turn thole.TurnID) (ok bool, err error) {
	err = q.db.Update(ctx, "queue.cancel", func(tx *sqldb.Tx) error {
		ok, err = cancelTurn(tx, turn)
		return err
	})
	return ok, err
}

// cancelTurn marks a turn to be stopped. One that waits becomes ready at once: a
// worker must claim it to record it in the thread.
func cancelTurn(tx *sqldb.Tx, turn thole.TurnID) (bool, error) {
	ok, err := tx.ExecOne(`update turn_queue set cancel = true, available_at = 0, state = case when state = 'parked' then 'ready' else state end
		where turn_id = $1 and state <> 'done'`, turn)
	tx.Notify(queueTopic, "")
	return ok, err
}

// Reap implements queue.Store. It is asked every second and rarely finds anything,
// so it looks before it writes.
func (q *Queue) Reap(ctx context.Context, alone bool, limit int) (turns []thole.TurnID, err error) {
	const over = ` turn_queue where state = 'leased' and lease_until <= $1`
	until := func(tx *sqldb.Tx) int64 {
		if alone {
			return math.MaxInt64
		}
		return thole.Millis(tx.Now())
	}
	found := false
	err = q.db.View(ctx, func(tx *sqldb.Tx) error {
		return tx.QueryRow(`select exists (select 1 from`+over+`)`, until(tx)).Scan(&found)
	})
	if err != nil || !found {
		return nil, err
	}
	err = q.db.Update(ctx, "queue.reap", func(tx *sqldb.Tx) error {
		turns, err = sqldb.All(tx, scanID[thole.TurnID], `
			update turn_queue set state = 'ready', lease_token = '', lease_until = 0, waiting = false,
				available_at = 0, last_error = 'the worker that had it did not come back'
			where turn_id in (select turn_id from`+over+` order by lease_until limit $2 + 0) and state = 'leased' and lease_until <= $1
			returning turn_id`, until(tx), limit)
		if len(turns) > 0 {
			tx.Notify(queueTopic, "")
		}
		return err
	})
	return turns, err
}

// Abandon implements queue.Store.
func (q *Queue) Abandon(ctx context.Context, owner string) (turns []thole.TurnID, err error) {
	err = q.db.Update(ctx, "queue.abandon", func(tx *sqldb.Tx) error {
		turns, err = sqldb.All(tx, scanID[thole.TurnID], `
			update turn_queue set state = 'ready', lease_token = '', lease_until = 0, waiting = false, available_at = 0, last_error = 'the worker that had it is gone'
			where state = 'leased' and lease_owner = $1 returning turn_id`, owner)
		if len(turns) > 0 {
			tx.Notify(queueTopic, "")
		}
		return err
	})
	return turns, err
}

// Prune implements queue.Store.
func (q *Queue) Prune(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = q.db.Update(ctx, "queue.prune", func(tx *sqldb.Tx) error {
		rows, err := tx.Exec(`delete from turn_queue where turn_id in
			(select turn_id from turn_queue where state = 'done' and done_at < $1 limit $2 + 0)`, thole.Millis(before), limit)
		n = int(rows)
		return err
	})
	return n, err
}

// Get implements queue.Store.
func (q *Queue) Get(ctx context.Context, turn thole.TurnID) (queue.Row, error) {
	return q.row(ctx, thole.Errorf(thole.CodeNotFound, "turn %s is not in the queue", turn), `where turn_id = $1`, turn)
}

// Newest is a thread's newest row of a kind, done or not; CodeNotFound without one.
func (q *Queue) Newest(ctx context.Context, id thole.ThreadID, kind queue.Kind) (queue.Row, error) {
	return q.row(ctx, thole.Errorf(thole.CodeNotFound, "nothing of kind %s is queued for thread %s", kind, id),
		`where thread_id = $1 and kind = $2 order by created_at desc, turn_id desc limit 1`, id, kind)
}

func (q *Queue) row(ctx context.Context, none error, where string, args ...any) (r queue.Row, err error) {
	err = q.db.View(ctx, func(tx *sqldb.Tx) error {
		var available, until, created, done int64
		err := tx.QueryRow(`select kind, turn_id, thread_id, user_id, priority, state, head, waiting, cancel, attempt,
			available_at, lease_owner, lease_until, last_error, created_at, done_at from turn_queue `+where, args...).
			Scan(&r.Kind, &r.Turn, &r.Thread, &r.User, &r.Priority, &r.State, &r.Head, &r.Waiting, &r.Cancel, &r.Attempt,
				&available, &r.Owner, &until, &r.LastError, &created, &done)
		if sqldb.NoRows(err) {
			return none
		}
		r.Available, r.Until, r.Created, r.Done = thole.FromMillis(available), thole.FromMillis(until), thole.FromMillis(created), thole.FromMillis(done)
		return err
	})
	return r, err
}

func scanID[T ~string](rows *sql.Rows) (id T, err error) {
	err = rows.Scan(&id)
	return id, err
}
