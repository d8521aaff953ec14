package store

import (
	"context"
	"database/sql"

	"github.com/tholehq/thole/internal/sqldb"
)

// Count is how many rows of one kind are in one state.
type Count struct {
	Kind  string // "turn", "executor", "job", "batch"
	State string
	Rows  int64
}

// Stats counts what a person watches: work that is open. Each part of the query
// is served by an index or stays small.
func (db *DB) Stats(ctx context.Context) (counts []Count, err error) {
	err = db.View(ctx, func(tx *sqldb.Tx) error {
		counts, err = sqldb.All(tx, func(rows *sql.Rows) (c Count, err error) {
			err = rows.Scan(&c.Kind, &c.State, &c.Rows)
			return c, err
		}, `select 'turn', state, count(*) from turn_queue where kind = 'turn' and state <> 'done' group by state
			union all select 'executor', state, count(*) from executors where state <> 'deleted' group by state
			union all select 'job', status, count(*) from delivery_jobs where status = 'running' group by status
			union all select 'batch', state, count(*) from delivery_batches where state <> 'closed' group by state`)
		return err
	})
	return counts, err
}
