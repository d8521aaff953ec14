package store

import (
	"context"
	"database/sql"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// Waiting implements thread.Store.
func (s *Threads) Waiting(ctx context.Context, q thread.WaitingQuery) ([]thread.Waiting, error) {
	var c conditions
	c.add(`a.state = 'pending'`)
	c.add(`a.kind <> 'tool'`)
	scoped(&c, "h.", q.Scope)
	if !q.At.IsZero() {
		at, id, ask := c.arg(thole.Millis(q.At)), c.arg(q.Thread), c.arg(q.Ask)
		c.add(`(a.asked_at, a.thread_id, a.ask_id) > (` + at + `, ` + id + `, ` + ask + `)`)
	}
	query := `select a.thread_id, a.turn_id, a.state, a.body, a.answer, a.actor, a.asked_at, a.resolved_at, a.receipt,
			h.name, h.preview, h.provider, h.archived, h.parent_id
		from asks a join threads h on h.id = a.thread_id where ` + strings.Join(c.parts, ` and `) +
		` order by a.asked_at, a.thread_id, a.ask_id limit ` + c.arg(int64(q.Limit)) + ` + 0`
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]thread.Waiting, error) {
		return sqldb.All(tx, func(rows *sql.Rows) (w thread.Waiting, err error) {
			w.Ask, err = scanAskWith(rows, &w.Name, &w.Preview, &w.Provider, &w.Archived, &w.Parent)
			return w, err
		}, query, c.args...)
	})
}
