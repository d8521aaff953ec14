package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
)

// Claim implements queue.Store. A round may leave places free when one user had
// more of the best turns than the user may run; the next one passes over that
// user.
func (q *Queue) Claim(ctx context.Context, c queue.Claim) (leases []queue.Lease, err error) {
	for more := true; more && len(leases) < c.Max; {
		round := q.round(c, c.Max-len(leases))
		idle, err := q.idle(ctx, c)
		if err == nil && !idle {
			err = q.db.Batch(ctx, "queue.claim", "", round.begin)
		}
		if err != nil && len(leases) == 0 {
			return nil, err // after a round that went well the next claim meets the error
		}
		leases, more = append(leases, round.best()...), err == nil && round.more()
	}
	return leases, nil
}

// standby is who takes turns as they become ready.
type standby struct {
	ask  func() queue.Claim
	take func([]queue.Lease)
}

// Standby implements queue.Store. PostgreSQL has claims wait for one another, and a
// turn's start should not wait for its flush after them.
func (q *Queue) Standby(ask func() queue.Claim, take func([]queue.Lease)) (stop func()) {
	if q.db.Engine() == sqldb.Postgres {
		return func() {}
	}
	s := &standby{ask, take}
	q.db.standby.Store(s)
	return func() { q.db.standby.CompareAndSwap(s, nil) }
}

// serve leases what is ready to the dispatcher that stands by, in the transaction that made it
// ready. Who gets a turn so needs no note of it.
func (q *Queue) serve(tx *sqldb.Tx, turn thole.TurnID) error {
	s := q.db.standby.Load()
	if s == nil {
		tx.Notify(queueTopic, "")
		return nil
	}
	c := s.ask()
	r := q.round(c, c.Max)
	for _, st := range r.begin() {
		if err := tx.Run(st); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(r.leases, func(l queue.Lease) bool { return l.Turn == turn }) {
		tx.Notify(queueTopic, "")
	}
	tx.AfterCommit(func() { s.take(r.best()) })
	return nil
}

// round leases the best ready rows, in one statement: as many candidates as the
// total leaves room for, and of each user what is the user's. Beyond a limit claims
// follow one another, because it is a count over all rows.
type round struct {
	list       []sqldb.Statement
	leases     []queue.Lease
	came       map[thole.TurnID]int64
	candidates int
	fair       bool
}

func (q *Queue) round(c queue.Claim, want int) *round {
	total, perUser := unlimited(c.Limits.Total), unlimited(c.Limits.PerUser)
	if c.Maintenance {
		total, perUser = math.MaxInt32, math.MaxInt32
	}
	args := []any{c.Owner, c.Lease.Milliseconds(), c.Token}
	used, room, users, chosen := "", strconv.Itoa(want), "", "best"
	if total < math.MaxInt32 {
		args = append(args, total)
		room = `(select case when places < 0 then 0 when places < ` + room + ` then places else ` + room + ` end from
				(select $4 - cast(coalesce(sum(running), 0) as bigint) as places from used) free)`
	}
	r := &round{fair: perUser < total} // else the total is reached first
	if r.fair {
		args = append(args, perUser)
		limit := "$" + strconv.Itoa(len(args))
		users = ` and user_id not in (select who from used where running >= ` + limit + `)`
		if want > 1 {
			chosen = `(select own.id from (select id, who, row_number() over (partition by who order by rank desc, came, id) as mine from best) own
				left join used on used.who = own.who where own.mine + coalesce(used.running, 0) <= ` + limit + `)`
		}
	}
	limited := len(args) > 3
	there := ""
	if c.Engine != "" {
		args = append(args, c.Engine)
		there = elsewhere(len(args))
	}
	if limited {
		used = `used as (select user_id as who, count(*) as running from turn_queue
			where state = 'leased' and not waiting and kind = 'turn' group by user_id), `
	}
	lock := ""
	if q.db.Engine() == sqldb.Postgres {
		lock = ` for update skip locked`
	}
	seen := strconv.Itoa(want) // on SQLite returning knows the changed table only: look once more
	if chosen != "best" && q.db.Engine() == sqldb.Postgres {
		seen = `(select count(*) from best)`
	}
	text := `
		with ` + used + `best as (select turn_id as id, user_id as who, priority as rank, created_at as came from turn_queue
			where ` + claimable(c) + ` and available_at <= {now}` + users + there + `
			order by priority desc, created_at limit ` + room + lock + `)
		update turn_queue set state = 'leased', lease_owner = $1, lease_until = {now} + $2, lease_token = $3
		where turn_id ` + q.among(`select id from `+chosen+` chosen`) + `
		returning kind, turn_id, thread_id, user_id, priority, attempt + 1, cancel, last_error, lease_token, lease_until, created_at, ` + seen
	first := `select ` + hasty
	if used != "" {
		first += `, pg_advisory_xact_lock(7741094326)`
	}
	r.list = []sqldb.Statement{{Text: first, Postgres: true}, {Text: text, Args: args, Row: r.row}}
	return r
}

// begin forgets what an earlier try returned.
func (r *round) begin() []sqldb.Statement {
	r.leases, r.came, r.candidates = nil, map[thole.TurnID]int64{}, 0
	return r.list
}

func (r *round) row(scan func(...any) error) error {
	var l queue.Lease
	var until, created int64
	err := scan(&l.Kind, &l.Turn, &l.Thread, &l.User, &l.Priority, &l.Attempt, &l.Cancel, &l.LastError, &l.Token, &until, &created, &r.candidates)
	l.Until, r.came[l.Turn] = thole.FromMillis(until), created
	r.leases = append(r.leases, l)
	return err
}

func (r *round) best() []queue.Lease {
	slices.SortFunc(r.leases, func(a, b queue.Lease) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(r.came[a.Turn], r.came[b.Turn]), cmp.Compare(a.Turn, b.Turn))
	})
	return r.leases
}

func (r *round) more() bool { return r.fair && len(r.leases) > 0 && r.candidates > len(r.leases) }

// elsewhere passes over threads whose executor is on an engine that the caller does not
// reach and that may still run it, and those whose files are on another server's machine. $n is
// the caller's engine, {now} the store's time.
func elsewhere(n int) string {
	return ` and not exists (select 1 from thread_places p where p.thread_id = turn_queue.thread_id and 'local:' || p.server_id <> $` + strconv.Itoa(n) + `)
		and not exists (select 1 from executors join servers on ` + lastsOn("{now}") + `
		where executors.thread_id = turn_queue.thread_id and executors.state <> 'deleted' and executors.engine <> $` + strconv.Itoa(n) + `)`
}

// claimable is what a claim looks for.
func claimable(c queue.Claim) string {
	if c.Maintenance {
		return `state = 'ready' and head and kind <> 'turn'`
	}
	return `state = 'ready' and head and kind = 'turn'`
}

// idle looks without writing whether there is nothing to claim. On PostgreSQL it
// would cost the round trip that it saves.
func (q *Queue) idle(ctx context.Context, c queue.Claim) (idle bool, err error) {
	if q.db.Engine() == sqldb.Postgres {
		return false, nil
	}
	err = q.db.View(ctx, func(tx *sqldb.Tx) error {
		return tx.QueryRow(`select not exists (select 1 from turn_queue where `+claimable(c)+` and available_at <= $1)`,
			thole.Millis(tx.Now())).Scan(&idle)
	})
	return idle, err
}

func unlimited(n int) int {
	if n <= 0 {
		return math.MaxInt32
	}
	return n
}
