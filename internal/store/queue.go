package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

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
	// Threads are locked in one order, so that two callers do not wait for each other.
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b queue.Item) int { return cmp.Compare(a.Thread, b.Thread) })
	return q.db.batch(ctx, "queue.enqueue", queueTopic, func() (list []statement) {
		for _, it := range items {
			list = append(list, enqueue(it)...)
		}
		return list
	})
}

// enqueue adds a row; a repeat changes nothing. The thread's lock is taken first:
// under it head and seq are decided, by the thread's open rows.
func enqueue(it queue.Item) []statement {
	if it.Kind == "" {
		it.Kind = queue.Turn
	}
	list := []statement{{text: `select pg_advisory_xact_lock(hashtext($1))`, args: []any{string(it.Thread)}, postgres: true}}
	again := ""
	if it.Kind != queue.Turn {
		again = ` and not exists (select 1 from turn_queue where thread_id = $2 and kind = $5 and state = 'ready')`
		list = append(list, statement{text: `update turn_queue set priority = $3 where thread_id = $1 and kind = $2 and state = 'ready' and priority < $3`,
			args: []any{string(it.Thread), string(it.Kind), it.Priority}})
	}
	return append(list, statement{text: `
		insert into turn_queue (turn_id, kind, thread_id, user_id, seq, priority, state, head, waiting, cancel, attempt,
			available_at, lease_token, lease_owner, lease_until, last_error, created_at, done_at)
		select $1, $5, $2, $3, coalesce(last, 0) + 1, $4, 'ready', last is null, false, false, 0, {now}, '', '', 0, '', {now}, 0
		from (select max(seq) as last from turn_queue where thread_id = $2 and state <> 'done') line
		where not exists (select 1 from turn_queue where turn_id = $1)` + again,
		args: []any{string(it.Turn), string(it.Thread), string(it.User), it.Priority, string(it.Kind)}})
}

// Claim implements queue.Store. A round may leave places free when one user had
// more of the best turns than the user may run; the next one passes over that
// user.
func (q *Queue) Claim(ctx context.Context, c queue.Claim) (leases []queue.Lease, err error) {
	for more := true; more && len(leases) < c.Max; {
		var got []queue.Lease
		got, more, err = q.claim(ctx, c, c.Max-len(leases))
		if leases = append(leases, got...); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// claim leases the best ready rows, in one statement: as many candidates as the
// total leaves room for, and of each user what is the user's. Behind a limit claims
// follow one another, because it is a count over all rows.
func (q *Queue) claim(ctx context.Context, c queue.Claim, want int) (leases []queue.Lease, more bool, err error) {
	what, total, perUser := `kind = 'turn'`, unlimited(c.Limits.Total), unlimited(c.Limits.PerUser)
	if c.Care {
		what, total, perUser = `kind <> 'turn'`, math.MaxInt32, math.MaxInt32
	}
	if idle, err := q.idle(ctx, what); err != nil || idle {
		return nil, false, err
	}
	args := []any{c.Owner, c.Lease.Milliseconds(), c.Token}
	used, room, users, chosen := "", strconv.Itoa(want), "", "best"
	if total < math.MaxInt32 {
		args = append(args, total)
		room = `(select case when places < 0 then 0 when places < ` + room + ` then places else ` + room + ` end from
				(select $4 - cast(coalesce(sum(running), 0) as bigint) as places from used) free)`
	}
	fair := perUser < total // else the total is reached first
	if fair {
		args = append(args, perUser)
		limit := "$" + strconv.Itoa(len(args))
		users = ` and user_id not in (select who from used where running >= ` + limit + `)`
		if want > 1 {
			chosen = `(select own.id from (select id, who, row_number() over (partition by who order by rank desc, came, id) as mine from best) own
				left join used on used.who = own.who where own.mine + coalesce(used.running, 0) <= ` + limit + `)`
		}
	}
	if len(args) > 3 {
		used = `used as (select user_id as who, count(*) as running from turn_queue
			where state = 'leased' and not waiting and kind = 'turn' group by user_id), `
	}
	seen := strconv.Itoa(want) // on SQLite returning knows the changed table only: look once more
	if chosen != "best" && q.db.Engine() == enginePostgres {
		seen = `(select count(*) from best)`
	}
	text := `
		with ` + used + `best as (select turn_id as id, user_id as who, priority as rank, created_at as came from turn_queue
			where state = 'ready' and head and ` + what + ` and available_at <= {now}` + users + `
			order by priority desc, created_at limit ` + room + ` for update skip locked)
		update turn_queue set state = 'leased', attempt = attempt + 1, lease_owner = $1, lease_until = {now} + $2, lease_token = $3
		where turn_id ` + q.among(`select id from `+chosen+` chosen`) + `
		returning kind, turn_id, thread_id, user_id, priority, attempt, cancel, last_error, lease_token, lease_until, created_at, ` + seen
	begin := `select ` + hasty + `, ` + byIndex
	if used != "" {
		begin += `, pg_advisory_xact_lock(7741094326)`
	}
	candidates, came := 0, map[thole.TurnID]int64{}
	err = q.db.batch(ctx, "queue.claim", "", func() []statement {
		leases = nil
		return []statement{{text: begin, postgres: true}, {text: text, args: args, row: func(scan func(...any) error) error {
			var l queue.Lease
			var until, created int64
			err := scan(&l.Kind, &l.Turn, &l.Thread, &l.User, &l.Priority, &l.Attempt, &l.Cancel, &l.LastError, &l.Token, &until, &created, &candidates)
			l.Until, came[l.Turn] = thole.FromMillis(until), created
			leases = append(leases, l)
			return err
		}}}
	})
	slices.SortFunc(leases, func(a, b queue.Lease) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(came[a.Turn], came[b.Turn]), cmp.Compare(a.Turn, b.Turn))
	})
	return leases, fair && len(leases) > 0 && candidates > len(leases), err
}

// idle looks without writing whether there is nothing to claim. On PostgreSQL it
// would cost the round trip that it saves.
func (q *Queue) idle(ctx context.Context, what string) (idle bool, err error) {
	if q.db.Engine() == enginePostgres {
		return false, nil
	}
	err = q.db.View(ctx, func(tx *Tx) error {
		return tx.QueryRow(`select not exists (select 1 from turn_queue where state = 'ready' and head and `+what+` and available_at <= $1)`,
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

// table writes columns as a query's rows, behind args. PostgreSQL takes them as
// arrays, so that the text does not depend on their length.
func (q *Queue) table(args []any, columns ...[]string) (string, []any) {
	if q.db.Engine() == enginePostgres {
		marks := make([]string, len(columns))
		for i, c := range columns {
			args = append(args, c)
			marks[i] = "$" + strconv.Itoa(len(args)) + "::text[]"
		}
		return "select * from unnest(" + strings.Join(marks, ", ") + ")", args
	}
	rows := make([]string, len(columns[0]))
	for i := range rows {
		marks := make([]string, len(columns))
		for j, c := range columns {
			args = append(args, c[i])
			marks[j] = "$" + strconv.Itoa(len(args))
		}
		rows[i] = "(" + strings.Join(marks, ", ") + ")"
	}
	return "values " + strings.Join(rows, ", "), args
}

// Subscribe implements queue.Store.
func (q *Queue) Subscribe(wake func()) (stop func()) {
	return q.db.Subscribe(queueTopic, func(string) { wake() })
}
