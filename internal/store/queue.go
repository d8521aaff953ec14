package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
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
	return q.db.Batch(ctx, "queue.enqueue", queueTopic, func() (list []sqldb.Statement) {
		for _, it := range items {
			list = append(list, enqueue(it)...)
		}
		return list
	})
}

// enqueue adds a row; a repeat changes nothing. The thread's lock is taken first:
// under it head and seq are decided, by the thread's open rows. Only what is to wait
// says until when: a clock that is set back holds up nothing else.
func enqueue(it queue.Item) []sqldb.Statement {
	if it.Kind == "" {
		it.Kind = queue.Turn
	}
	list := []sqldb.Statement{{Text: `select pg_advisory_xact_lock(hashtext($1))`, Args: []any{string(it.Thread)}, Postgres: true}}
	again := ""
	if it.Kind != queue.Turn {
		again = ` and not exists (select 1 from turn_queue where thread_id = $2 and kind = $5 and state = 'ready')`
		list = append(list, sqldb.Statement{Text: `update turn_queue set priority = $3 where thread_id = $1 and kind = $2 and state = 'ready' and priority < $3`,
			Args: []any{string(it.Thread), string(it.Kind), it.Priority}})
	}
	return append(list, sqldb.Statement{Text: `
		insert into turn_queue (turn_id, kind, thread_id, user_id, seq, priority, state, head, waiting, cancel, attempt,
			available_at, lease_token, lease_owner, lease_until, last_error, created_at, done_at)
		select $1, $5, $2, $3, coalesce(last, 0) + 1, $4, 'ready', last is null, false, false, 0, 0, '', '', 0, '', {now}, 0
		from (select max(seq) as last from turn_queue where thread_id = $2 and state <> 'done') line
		where not exists (select 1 from turn_queue where turn_id = $1)` + again,
		Args: []any{string(it.Turn), string(it.Thread), string(it.User), it.Priority, string(it.Kind)}})
}

// table writes columns as a query's rows, after args. PostgreSQL takes them as
// arrays, so that the text does not depend on their length.
func (q *Queue) table(args []any, columns ...[]string) (string, []any) {
	if q.db.Engine() == sqldb.Postgres {
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

// hasty lets a transaction return before PostgreSQL has flushed it. It is for
// leases alone: one that a crash of the server forgets was its holder's no more,
// because the row has no such token, and every write under it is refused.
const hasty = `set_config('synchronous_commit', 'off', true)`
