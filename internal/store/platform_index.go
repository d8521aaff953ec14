package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/usage"
	"github.com/tholehq/thole/internal/sqldb"
)

// Index finds things across threads for the HTTP side. It answers where
// something is; whether the asker may see it is the thread service's to say.
type Index struct{ db *DB }

// Index gives the look-ups across threads.
func (db *DB) Index() *Index { return &Index{db} }

func scanThreadID(rows *sql.Rows) (id thole.ThreadID, err error) { return id, rows.Scan(&id) }

// ThreadsOf lists every thread that has a turn, the oldest first: a fork shares
// the turns of its parent.
func (x *Index) ThreadsOf(ctx context.Context, turn thole.TurnID) (ids []thole.ThreadID, err error) {
	err = x.db.View(ctx, func(tx *sqldb.Tx) error {
		ids, err = sqldb.All(tx, scanThreadID, `select t.thread_id from turns t join threads h on h.id = t.thread_id
			where t.turn_id = $1 order by h.created_at, h.id`, turn)
		return err
	})
	return ids, err
}

// Waiting lists the user's threads with a pending ask, longest waiting first.
func (x *Index) Waiting(ctx context.Context, user thole.UserID, limit int) (ids []thole.ThreadID, err error) {
	err = x.db.View(ctx, func(tx *sqldb.Tx) error {
		ids, err = sqldb.All(tx, scanThreadID, `select a.thread_id from asks a join threads h on h.id = a.thread_id
			where a.state = 'pending' and h.user_id = $1 group by a.thread_id order by min(a.asked_at), a.thread_id limit $2 + 0`, user, int64(limit))
		return err
	})
	return ids, err
}

// Usage sums settled turns, grouped and ordered by the group's key.
func (x *Index) Usage(ctx context.Context, q usage.Query) (sums []usage.Sum, err error) {
	key := map[usage.By]string{
		"": `''`, usage.ByProvider: `provider`, usage.ByModel: `model`, usage.ByThread: `thread_id`,
		usage.ByDay: `cast(settled_at / 86400000 as bigint)`,
	}[q.By]
	to := int64(1) << 62
	if !q.To.IsZero() {
		to = thole.Millis(q.To)
	}
	err = x.db.View(ctx, func(tx *sqldb.Tx) error {
		sums, err = sqldb.All(tx, func(rows *sql.Rows) (s usage.Sum, err error) {
			var day int64
			into := any(&s.Key)
			if q.By == usage.ByDay {
				into = &day
			}
			err = rows.Scan(into, &s.Turns, &s.Input, &s.Output, &s.Reasoning, &s.CacheRead, &s.CacheWrite, &s.CostMicros, &s.Unpriced)
			if q.By == usage.ByDay {
				s.Key = time.UnixMilli(day * 86400000).UTC().Format(time.DateOnly)
			}
			return s, err
		}, `select `+key+` as k, count(*), cast(sum(input) as bigint), cast(sum(output) as bigint), cast(sum(reasoning) as bigint),
				cast(sum(cache_read) as bigint), cast(sum(cache_write) as bigint),
				cast(sum(case when cost_micros < 0 then 0 else cost_micros end) as bigint), cast(sum(case when cost_micros < 0 then 1 else 0 end) as bigint)
			from turn_usage where user_id = $1 and ($2 = '' or thread_id = $2) and settled_at >= $3 and settled_at < $4
			group by k order by k`, q.User, string(q.Thread), instant(q.From), to)
		return err
	})
	return sums, err
}
