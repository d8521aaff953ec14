package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
)

// Queue is the durable turn queue.
type Queue struct{ db *DB }

var _ queue.Store = (*Queue)(nil)

// Queue returns the turn queue of this store.
func (db *DB) Queue() *Queue { return &Queue{db} }

const queueTopic = "turn_queue"

// Enqueue implements queue.Store.
func (q *Queue) Enqueue(ctx context.Context, items ...queue.Item) error {
	return q.db.Update(ctx, "queue.enqueue", func(tx *Tx) error {
		for _, it := range items {
			if q.db.Engine() == enginePostgres { // SQLite has one writer anyway
				if _, err := tx.Exec(`select pg_advisory_xact_lock(hashtext($1))`, string(it.Thread)); err != nil {
					return err
				}
			}
			if err := enqueueTurn(tx, it); err != nil {
				return err
			}
		}
		return nil
	})
}

// enqueueTurn adds a row; a repeat changes nothing. The caller holds the thread's
// lock, under which head and seq are decided.
func enqueueTurn(tx *Tx, it queue.Item) error {
	if it.Kind == "" {
		it.Kind = queue.Turn
	}
	_, err := tx.Exec(`
		insert into turn_queue (turn_id, kind, thread_id, user_id, seq, priority, state, head, waiting, cancel, attempt,
			available_at, lease_token, lease_owner, lease_until, last_error, created_at, done_at)
		select $1, $6, $2, $3, coalesce((select max(seq) from turn_queue where thread_id = $2), 0) + 1, $4, 'ready',
			not exists (select 1 from turn_queue where thread_id = $2 and head and state <> 'done'),
			false, false, 0, $5, '', '', 0, '', $5, 0
		where not exists (select 1 from turn_queue where turn_id = $1
			or ($6 <> 'turn' and thread_id = $2 and kind = $6 and state <> 'done'))`,
		it.Turn, it.Thread, it.User, it.Priority, thole.Millis(tx.Now()), it.Kind)
	if err != nil {
		return err
	}
	tx.Notify(queueTopic, "")
	return nil
}

// Claim implements queue.Store.
func (q *Queue) Claim(ctx context.Context, c queue.Claim) (leases []queue.Lease, err error) {
	err = q.db.Update(ctx, "queue.claim", func(tx *Tx) error {
		leases = nil
		if err := q.lockClaims(tx); err != nil {
			return err
		}
		now := tx.Now()
		var err error
		if c.Care {
			leases, err = claimCare(tx, c, now)
			return err
		}
		free, err := freeSlots(tx, c.Limits, len(c.Tokens))
		if err != nil {
			return err
		}
		for len(leases) < free.total {
			batch, err := claimBest(tx, c, now, free, c.Tokens[len(leases):])
			if err != nil {
				return err
			}
			leases = append(leases, batch...)
			if len(batch) == 0 {
				break
			}
		}
		return nil
	})
	return leases, err
}

// lockClaims makes claims follow one another, because the limits are counts over
// all rows. SQLite has one writer anyway.
func (q *Queue) lockClaims(tx *Tx) error {
	if q.db.Engine() != enginePostgres {
		return nil
	}
	_, err := tx.Exec(`select pg_advisory_xact_lock(7741094326)`)
	return err
}

// slots is how much room the limits leave.
type slots struct {
	total   int
	perUser int
	running map[thole.UserID]int
}

func freeSlots(tx *Tx, l queue.Limits, want int) (slots, error) {
	s := slots{total: want, perUser: l.PerUser, running: map[thole.UserID]int{}}
	used := 0
	_, err := All(tx, func(rows *sql.Rows) (struct{}, error) {
		var user thole.UserID
		var n int
		err := rows.Scan(&user, &n)
		s.running[user] = n
		used += n
		return struct{}{}, err
	}, `select user_id, count(*) from turn_queue where state = 'leased' and not waiting and kind = 'turn' group by user_id`)
	if l.Total > 0 {
		s.total = min(want, max(0, l.Total-used))
	}
	return s, err
}

// full lists the users who may not start another turn.
func (s slots) full() (users []string) {
	for user, n := range s.running {
		if s.perUser > 0 && n >= s.perUser {
			users = append(users, string(user))
		}
	}
	return users
}

// claimBest leases the best ready turns, as many as fit without looking again:
// one if a user's limit might be reached by it, all wanted otherwise.
func claimBest(tx *Tx, c queue.Claim, now time.Time, free slots, tokens []string) ([]queue.Lease, error) {
	want := min(len(tokens), free.total)
	if free.perUser > 0 {
		want = 1
	}
	args := []any{thole.Millis(now), want}
	skip := ""
	if full := free.full(); len(full) > 0 {
		marks := make([]string, len(full))
		for i, user := range full {
			args = append(args, user)
			marks[i] = "$" + strconv.Itoa(len(args))
		}
		skip = ` and user_id not in (` + strings.Join(marks, ", ") + `)`
	}
	picked, err := All(tx, scanLease, `
		select kind, turn_id, thread_id, user_id, priority, attempt, cancel, last_error from turn_queue
		where state = 'ready' and head and kind = 'turn' and available_at <= $1`+skip+`
		order by priority desc, created_at, turn_id limit $2 for update skip locked`, args...)
	if err != nil {
		return nil, err
	}
	for _, l := range picked {
		free.running[l.User]++
	}
	return picked, lease(tx, c, now, picked, tokens)
}

func claimCare(tx *Tx, c queue.Claim, now time.Time) ([]queue.Lease, error) {
	picked, err := All(tx, scanLease, `
		select kind, turn_id, thread_id, user_id, priority, attempt, cancel, last_error from turn_queue
		where state = 'ready' and head and kind <> 'turn' and available_at <= $1
		order by created_at, turn_id limit $2 for update skip locked`, thole.Millis(now), len(c.Tokens))
	if err != nil {
		return nil, err
	}
	return picked, lease(tx, c, now, picked, c.Tokens)
}

// lease marks what was picked, in the transaction that picked it.
func lease(tx *Tx, c queue.Claim, now time.Time, picked []queue.Lease, tokens []string) error {
	for i := range picked {
		l := &picked[i]
		l.Token, l.Until, l.Attempt = tokens[i], now.Add(c.Lease), l.Attempt+1
		if err := tx.Must("turn is ready", `
			update turn_queue set state = 'leased', attempt = attempt + 1, lease_token = $2, lease_owner = $3, lease_until = $4
			where turn_id = $1 and state = 'ready' and head`, l.Turn, l.Token, c.Owner, thole.Millis(l.Until)); err != nil {
			return err
		}
	}
	return nil
}

func scanLease(rows *sql.Rows) (l queue.Lease, err error) {
	err = rows.Scan(&l.Kind, &l.Turn, &l.Thread, &l.User, &l.Priority, &l.Attempt, &l.Cancel, &l.LastError)
	return l, err
}

// Subscribe implements queue.Store.
func (q *Queue) Subscribe(wake func()) (stop func()) {
	return q.db.Subscribe(queueTopic, func(string) { wake() })
}
