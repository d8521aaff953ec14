package store

import (
	"context"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
)

// maxCompletions bounds how many callers share one transaction.
const maxCompletions = 256

// completions lets callers who complete turns at the same time share a
// transaction and its fsync. The first leads; when it is done the next waiter
// leads those who came meanwhile.
type completions struct {
	mu      sync.Mutex // guards what follows
	waiting []*completion
	leading bool
}

type completion struct {
	turn  thole.TurnID
	token string
	wake  chan bool // true: lead; false: err is the result
	err   error
}

// Complete implements queue.Store.
func (q *Queue) Complete(ctx context.Context, turn thole.TurnID, token string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, g := &completion{turn: turn, token: token, wake: make(chan bool, 1)}, &q.db.completions
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	lead := !g.leading
	g.leading = true
	g.mu.Unlock()
	for lead || <-c.wake {
		together := g.take()
		q.complete(context.WithoutCancel(ctx), together)
		g.handOver()
		for _, c := range together {
			c.wake <- false
		}
		lead = false
	}
	return c.err
}

// take removes a group from those who wait: the leader, who is first, and as many
// others as fit. Two who complete the same turn go one after another.
func (g *completions) take() (together []*completion) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var rest []*completion
	have := map[thole.TurnID]bool{}
	for _, c := range g.waiting {
		if have[c.turn] || len(together) == maxCompletions {
			rest = append(rest, c)
			continue
		}
		have[c.turn] = true
		together = append(together, c)
	}
	g.waiting = rest
	return together
}

func (g *completions) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leading = len(g.waiting) > 0; g.leading {
		g.waiting[0].wake <- true
	}
}

// complete ends the rows of a group and makes the next row of each thread its
// head. Who adds to a thread meanwhile must see this row done, or we must see
// theirs: else neither makes the next row the head, and it waits for ever.
// Hence the lock, in the order of Enqueue.
func (q *Queue) complete(ctx context.Context, together []*completion) {
	turns, tokens := make([]string, len(together)), make([]string, len(together))
	for i, c := range together {
		turns[i], tokens[i] = string(c.turn), c.token
	}
	these, keys := q.table(nil, turns)
	pairs, args := q.table(nil, turns, tokens)
	done := map[thole.TurnID]bool{}
	err := q.db.Batch(ctx, "queue.complete", queueTopic, func() []sqldb.Statement {
		clear(done)
		return []sqldb.Statement{
			{Postgres: true, Args: keys, Text: `with held (id) as (` + these + `) select pg_advisory_xact_lock(hashtext(thread)) from
				(select distinct (select thread_id from turn_queue where turn_id = id) as thread from held order by thread) threads`},
			// A row that is not leased has no time left. Without "is true" PostgreSQL would
			// make a join of it and compare each with each.
			{Args: args, Text: `with held (id, token) as (` + pairs + `)
				update turn_queue set state = 'done', head = false, lease_token = '', lease_until = 0, waiting = false, done_at = {now}
				where turn_id ` + q.among(`select id from held`) + ` and ((turn_id, lease_token) in (select id, token from held)) is true and lease_until > {now}
				returning turn_id`,
				Row: func(scan func(...any) error) error {
					var id thole.TurnID
					err := scan(&id)
					done[id] = true
					return err
				}},
			// A thread whose row was not completed keeps its head.
			{Args: keys, Text: `with held (id) as (` + these + `)
				update turn_queue set head = true where not head and turn_id ` + q.among(`select (select turn_id from turn_queue where state <> 'done' and thread_id =
					(select thread_id from turn_queue where turn_id = id) order by seq limit 1) from held`)},
		}
	})
	for _, c := range together {
		if c.err = err; err == nil && !done[c.turn] {
			c.err = queue.ErrLeaseLost
		}
	}
}

// among says that a key is one of a list's. PostgreSQL gets an array: whatever it
// believes about the size of the table, it then looks each key up, where it may
// read a table that it believes to be empty once for each row of a join.
func (q *Queue) among(list string) string {
	if q.db.Engine() == sqldb.Postgres {
		return "= any(array(" + list + "))"
	}
	return "in (" + list + ")"
}
