package store

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
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

// Children counts the threads that the agents of a thread started.
func (x *Index) Children(ctx context.Context, id thole.ThreadID) (n int, err error) {
	err = x.db.View(ctx, func(tx *sqldb.Tx) error {
		return tx.QueryRow(`select count(*) from threads where parent_id = $1 and source = $2`, id, thole.ThreadOfAgent).Scan(&n)
	})
	return n, err
}

// usageKeys are the columns of usage_charges that sums are grouped by.
var usageKeys = map[usage.By]string{
	"": `''`, usage.ByProvider: `provider`, usage.ByModel: `model`, usage.ByThread: `thread_id`, usage.ByUser: `user_id`, usage.ByProject: `project_id`,
	usage.ByApp: `app_id`, usage.ByUpstream: `upstream`, usage.ByDay: `cast(at / 86400000 as bigint)`,
}

// Usage sums what was used, grouped and ordered by the group's key.
func (x *Index) Usage(ctx context.Context, q usage.Query) (sums []usage.Sum, err error) {
	to := int64(1) << 62
	if !q.To.IsZero() {
		to = thole.Millis(q.To)
	}
	key := func(s *usage.Sum) (into any, set func()) {
		if q.By != usage.ByDay {
			return &s.Key, func() {}
		}
		day := new(int64)
		return day, func() { s.Key = time.UnixMilli(*day * 86400000).UTC().Format(time.DateOnly) }
	}
	// Only conditions that filter: an index serves them then.
	where, args := ` where at >= $1 and at < $2`, []any{instant(q.From), to}
	for column, value := range map[string]string{"user_id": string(q.User), "thread_id": string(q.Thread)} {
		if value != "" {
			args = append(args, value)
			where += ` and ` + column + ` = $` + strconv.Itoa(len(args))
		}
	}
	where += ` group by k order by k`
	err = x.db.View(ctx, func(tx *sqldb.Tx) error {
		sums, err = sqldb.All(tx, func(rows *sql.Rows) (s usage.Sum, err error) {
			into, set := key(&s)
			err = rows.Scan(into, &s.Turns, &s.Input, &s.Output, &s.Reasoning, &s.CacheRead, &s.CacheWrite, &s.CostMicros, &s.Unpriced, &s.Calls, &s.Unknown)
			set()
			return s, err
		}, `select `+usageKeys[q.By]+` as k, count(distinct thread_id || turn_id), cast(sum(input) as bigint), cast(sum(output) as bigint), cast(sum(reasoning) as bigint),
				cast(sum(cache_read) as bigint), cast(sum(cache_write) as bigint),
				cast(sum(case when cost_micros < 0 then 0 else cost_micros end) as bigint), count(distinct case when cost_micros < 0 then thread_id || turn_id end),
				cast(sum(case when upstream <> '' then 1 else 0 end) as bigint), cast(sum(case when known then 0 else 1 end) as bigint)
			from usage_charges`+where, args...)
		if err != nil {
			return err
		}
		differ, err := sqldb.All(tx, func(rows *sql.Rows) (s usage.Sum, err error) {
			into, set := key(&s)
			err = rows.Scan(into, &s.Differs)
			set()
			return s, err
		}, `select `+usageKeys[q.By]+` as k, count(*) from (select thread_id, turn_id, app_id, project_id, user_id, provider, model, '' as upstream, settled_at as at
				from turn_usage where source = 'gateway' and reported_tokens >= 0
				and abs(`+tokenSum+` - reported_tokens) > (case when `+tokenSum+` > reported_tokens then `+tokenSum+` else reported_tokens end) / 20) as d`+where, args...)
		for _, d := range differ {
			// A turn of several models or upstreams is counted in the total alone.
			if i := slices.IndexFunc(sums, func(s usage.Sum) bool { return s.Key == d.Key }); i >= 0 {
				sums[i].Differs = d.Differs
			}
		}
		return err
	})
	return sums, err
}
