package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
)

// holdsLease is the fence in front of every write under a lease: the token is the
// row's and its time is not over.
const holdsLease = ` where turn_id = $1 and state = 'leased' and lease_token = $2 and lease_until > $3`

// underLease runs one compare-and-set that is fenced by a lease. $1 to $3 are
// turn, token and now.
func (q *Queue) underLease(ctx context.Context, step string, turn thole.TurnID, token string, set string, args ...func(now time.Time) any) error {
	return q.db.Update(ctx, step, func(tx *Tx) error {
		now := tx.Now()
		all := []any{turn, token, thole.Millis(now)}
		for _, a := range args {
			all = append(all, a(now))
		}
		ok, err := tx.ExecOne(`update turn_queue set `+set+holdsLease, all...)
		if err == nil && !ok {
			err = queue.ErrLeaseLost
		}
		if err == nil && step != "queue.renew" {
			tx.Notify(queueTopic, "")
		}
		return err
	})
}

// fenceTurn refuses a writer whose lease on a turn is over. Whoever changes a
// turn under a lease calls it in the same transaction. An empty token is a
// writer outside the queue.
func fenceTurn(tx *Tx, turn thole.TurnID, token string) error {
	if token == "" {
		return nil
	}
	now := tx.Now()
	var one int
	err := tx.QueryRow(`select 1 from turn_queue`+holdsLease, turn, token, thole.Millis(now)).Scan(&one)
	if NoRows(err) {
		return queue.ErrLeaseLost
	}
	return err
}

func value(v any) func(time.Time) any { return func(time.Time) any { return v } }

func after(d time.Duration) func(time.Time) any {
	return func(now time.Time) any { return thole.Millis(now.Add(d)) }
}

// Renew implements queue.Store.
func (q *Queue) Renew(ctx context.Context, turn thole.TurnID, token string, lease time.Duration) (cancel bool, err error) {
	err = q.db.Update(ctx, "queue.renew", func(tx *Tx) error {
		now := tx.Now()
		err = tx.QueryRow(`update turn_queue set lease_until = $4`+holdsLease+` returning cancel`,
			turn, token, thole.Millis(now), thole.Millis(now.Add(lease))).Scan(&cancel)
		if NoRows(err) {
			return queue.ErrLeaseLost
		}
		return err
	})
	return cancel, err
}

// Wait implements queue.Store.
func (q *Queue) Wait(ctx context.Context, turn thole.TurnID, token string, waiting bool) error {
	return q.underLease(ctx, "queue.wait", turn, token, `waiting = $4`, value(waiting))
}

// Park implements queue.Store.
func (q *Queue) Park(ctx context.Context, turn thole.TurnID, token string) error {
	return q.underLease(ctx, "queue.park", turn, token, `state = 'parked', lease_token = '', lease_until = 0, waiting = false, attempt = 0`)
}

// Release implements queue.Store.
func (q *Queue) Release(ctx context.Context, turn thole.TurnID, token string, delay time.Duration, why string) error {
	return q.underLease(ctx, "queue.release", turn, token,
		`state = 'ready', lease_token = '', lease_until = 0, waiting = false, available_at = $4, last_error = $5`, after(delay), value(why))
}

// Complete implements queue.Store.
func (q *Queue) Complete(ctx context.Context, turn thole.TurnID, token string) error {
	return q.db.Update(ctx, "queue.complete", func(tx *Tx) error {
		// Who adds to the thread meanwhile must see this row done, or we must see
		// theirs: else neither makes the next row the head, and it waits for ever.
		if err := q.lockThreadOf(tx, turn); err != nil {
			return err
		}
		now := tx.Now()
		var thread thole.ThreadID
		err := tx.QueryRow(`update turn_queue set state = 'done', head = false, lease_token = '', lease_until = 0, waiting = false, done_at = $3`+
			holdsLease+` returning thread_id`, turn, token, thole.Millis(now)).Scan(&thread)
		if NoRows(err) {
			return queue.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		// At most one row of the thread is the head, and this was it.
		_, err = tx.Exec(`update turn_queue set head = true where turn_id =
			(select turn_id from turn_queue where thread_id = $1 and state <> 'done' order by seq limit 1)`, thread)
		tx.Notify(queueTopic, "")
		return err
	})
}

// lockThreadOf takes the lock under which head and seq of the turn's thread are
// decided. SQLite has one writer anyway.
func (q *Queue) lockThreadOf(tx *Tx, turn thole.TurnID) error {
	if q.db.Engine() != enginePostgres {
		return nil
	}
	_, err := tx.Exec(`select pg_advisory_xact_lock(hashtext(thread_id)) from turn_queue where turn_id = $1`, turn)
	return err
}

// Unpark implements queue.Store.
func (q *Queue) Unpark(ctx context.Context, turn thole.TurnID) (ok bool, err error) {
	err = q.db.Update(ctx, "queue.unpark", func(tx *Tx) error {
		ok, err = unparkTurn(tx, turn)
		return err
	})
	return ok, err
}

// unparkTurn makes a parked turn ready, in the transaction that recorded why.
func unparkTurn(tx *Tx, turn thole.TurnID) (bool, error) {
	now := tx.Now()
	ok, err := tx.ExecOne(`update turn_queue set state = 'ready', available_at = $2 where turn_id = $1 and state = 'parked'`, turn, thole.Millis(now))
	if ok {
		tx.Notify(queueTopic, "")
	}
	return ok, err
}

// Cancel implements queue.Store.
func (q *Queue) Cancel(ctx context.Context, turn thole.TurnID) (ok bool, err error) {
	err = q.db.Update(ctx, "queue.cancel", func(tx *Tx) error {
		ok, err = cancelTurn(tx, turn)
		return err
	})
	return ok, err
}

// cancelTurn marks a turn to be stopped. One that waits becomes ready at once: a
// worker must claim it to tell the thread.
func cancelTurn(tx *Tx, turn thole.TurnID) (bool, error) {
	now := tx.Now()
	ok, err := tx.ExecOne(`update turn_queue set cancel = true,
		state = case when state = 'parked' then 'ready' else state end,
		available_at = case when state = 'leased' then available_at else $2 end
		where turn_id = $1 and state <> 'done'`, turn, thole.Millis(now))
	tx.Notify(queueTopic, "")
	return ok, err
}

// Reap implements queue.Store.
func (q *Queue) Reap(ctx context.Context, limit int) (turns []thole.TurnID, err error) {
	err = q.db.Update(ctx, "queue.reap", func(tx *Tx) error {
		now := tx.Now()
		turns, err = All(tx, scanID[thole.TurnID], `
			update turn_queue set state = 'ready', lease_token = '', lease_until = 0, waiting = false,
				available_at = $1, last_error = 'the worker that had it did not come back'
			where turn_id in (select turn_id from turn_queue where state = 'leased' and lease_until <= $1 order by lease_until limit $2)
				and state = 'leased' and lease_until <= $1
			returning turn_id`, thole.Millis(now), limit)
		if len(turns) > 0 {
			tx.Notify(queueTopic, "")
		}
		return err
	})
	return turns, err
}

// Prune implements queue.Store.
func (q *Queue) Prune(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = q.db.Update(ctx, "queue.prune", func(tx *Tx) error {
		rows, err := tx.Exec(`delete from turn_queue where turn_id in
			(select turn_id from turn_queue where state = 'done' and done_at < $1 limit $2)`, thole.Millis(before), limit)
		n = int(rows)
		return err
	})
	return n, err
}

// Get implements queue.Store.
func (q *Queue) Get(ctx context.Context, turn thole.TurnID) (r queue.Row, err error) {
	err = q.db.View(ctx, func(tx *Tx) error {
		var available, until, created, done int64
		err := tx.QueryRow(`select kind, turn_id, thread_id, user_id, priority, state, head, waiting, cancel, attempt,
			available_at, lease_owner, lease_until, last_error, created_at, done_at from turn_queue where turn_id = $1`, turn).
			Scan(&r.Kind, &r.Turn, &r.Thread, &r.User, &r.Priority, &r.State, &r.Head, &r.Waiting, &r.Cancel, &r.Attempt,
				&available, &r.Owner, &until, &r.LastError, &created, &done)
		if NoRows(err) {
			return thole.Errorf(thole.CodeNotFound, "turn %s is not in the queue", turn)
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
