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
// under it head and seq are decided.
func enqueue(it queue.Item) []statement {
	if it.Kind == "" {
		it.Kind = queue.Turn
	}
	list := []statement{{text: `select pg_advisory_xact_lock(hashtext($1))`, args: []any{string(it.Thread)}, postgres: true}, {text: `
		insert into turn_queue (turn_id, kind, thread_id, user_id, seq, priority, state, head, waiting, cancel, attempt,
			available_at, lease_token, lease_owner, lease_until, last_error, created_at, done_at)
		select $1, $5, $2, $3, coalesce((select max(seq) from turn_queue where thread_id = $2), 0) + 1, $4, 'ready',
			not exists (select 1 from turn_queue where thread_id = $2 and head and state <> 'done'),
			false, false, 0, {now}, '', '', 0, '', {now}, 0
		where not exists (select 1 from turn_queue where turn_id = $1
			or ($5 <> 'turn' and thread_id = $2 and kind = $5 and state = 'ready'))`,
		args: []any{string(it.Turn), string(it.Thread), string(it.User), it.Priority, string(it.Kind)}}}
	if it.Kind != queue.Turn && it.Priority > 0 {
		list = append(list, statement{text: `update turn_queue set priority = $3 where thread_id = $1 and kind = $2 and state = 'ready' and priority < $3`,
			args: []any{string(it.Thread), string(it.Kind), it.Priority}})
	}
	return list
}

// Claim implements queue.Store. A round may leave places free when one user had
// more of the best turns than the user may run; the next one passes over that
// user.
func (q *Queue) Claim(ctx context.Context, c queue.Claim) (leases []queue.Lease, err error) {
	for more := true; more && len(leases) < len(c.Tokens); {
		var got []queue.Lease
		got, more, err = q.claim(ctx, c, c.Tokens[len(leases):])
		if leases = append(leases, got...); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// claim leases the best ready rows, in one statement: candidates, what the limits
// leave of them, a token each. Behind a limit claims follow one another, because
// it is a count over all rows.
func (q *Queue) claim(ctx context.Context, c queue.Claim, tokens []string) (leases []queue.Lease, more bool, err error) {
	what, total, perUser := `kind = 'turn'`, unlimited(c.Limits.Total), unlimited(c.Limits.PerUser)
	if c.Care {
		what, total, perUser = `kind <> 'turn'`, math.MaxInt32, math.MaxInt32
	}
	if idle, err := q.idle(ctx, what); err != nil || idle {
		return nil, false, err
	}
	places := make([]string, len(tokens))
	for i := range places {
		places[i] = strconv.Itoa(i + 1)
	}
	table, args := q.table([]any{c.Owner, c.Lease.Milliseconds(), perUser, total}, places, tokens)
	// A number in the text, because a plan for any limit would sort all that wait.
	want := strconv.Itoa(len(tokens))
	seen := `(select count(*) from best)`
	if q.db.Engine() == engineSQLite {
		seen = want // its returning knows the changed table only: look once more
	}
	text := `
		with used as (select user_id as who, count(*) as running from turn_queue
			where state = 'leased' and not waiting and kind = 'turn' group by user_id),
		best as (select turn_id as id, user_id as who, priority as rank, created_at as came from turn_queue
			where state = 'ready' and head and ` + what + ` and available_at <= {now} and user_id not in (select who from used where running >= $3)
			order by priority desc, created_at, turn_id limit ` + want + ` for update skip locked),
		fair as (select id, rank, came from
			(select best.*, row_number() over (partition by who order by rank desc, came, id) as mine from best) own
			left join used on used.who = own.who where own.mine + coalesce(used.running, 0) <= $3),
		chosen as (select id, row_number() over (order by rank desc, came, id) as place from fair),
		tokens (place, token) as (` + table + `)
		update turn_queue set state = 'leased', attempt = attempt + 1, lease_token = tokens.token, lease_owner = $1, lease_until = {now} + $2
		from chosen join tokens on tokens.place = cast(chosen.place as text)
		where turn_id = chosen.id and chosen.place + (select cast(coalesce(sum(running), 0) as bigint) from used) <= $4
		returning kind, turn_id, thread_id, user_id, priority, attempt, cancel, last_error, lease_token, lease_until, ` + seen
	candidates := 0
	err = q.db.batch(ctx, "queue.claim", "", func() (list []statement) {
		leases = nil
		list = append(list, hasty)
		if min(total, perUser) < math.MaxInt32 {
			list = append(list, statement{text: `select pg_advisory_xact_lock(7741094326)`, postgres: true})
		}
		return append(list, statement{text: text, args: args, row: func(scan func(...any) error) error {
			var l queue.Lease
			var until int64
			err := scan(&l.Kind, &l.Turn, &l.Thread, &l.User, &l.Priority, &l.Attempt, &l.Cancel, &l.LastError, &l.Token, &until, &candidates)
			l.Until = thole.FromMillis(until)
			leases = append(leases, l)
			return err
		}})
	})
	slices.SortFunc(leases, func(a, b queue.Lease) int { return slices.Index(tokens, a.Token) - slices.Index(tokens, b.Token) })
	return leases, len(leases) > 0 && candidates == len(tokens) && perUser < math.MaxInt32, err
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
