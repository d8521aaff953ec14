package store

import (
	"context"
	"database/sql"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// Hits implements thread.Store.
func (s *Threads) Hits(ctx context.Context, q thread.HitQuery) ([]thread.Hit, error) {
	var c conditions
	c.add(`not h.ephemeral`)
	if q.Thread != "" {
		c.add(`i.thread_id = ` + c.arg(q.Thread))
	} else {
		c.add(`h.archived = ` + c.arg(q.Archived))
	}
	c.add(`i.search <> ''`)
	c.add(`i.search like ` + c.arg(`%`+likeEscape.Replace(thread.FoldText(q.Text))+`%`) + ` escape '!'`)
	scoped(&c, "h.", q.Scope)
	if !q.At.IsZero() {
		at, id, seq := c.arg(thole.Millis(q.At)), c.arg(q.AtThread), c.arg(int64(q.AtSeq))
		c.add(`(t.created_at, i.thread_id, i.seq) < (` + at + `, ` + id + `, ` + seq + `)`)
	}
	query := `select i.turn_id, i.seq, i.is_open, i.body, i.thread_id, t.created_at, h.name, h.preview, h.provider, h.archived,
			i.kind = 'user_message' and exists (select 1 from thread_items b
				where b.thread_id = i.thread_id and b.turn_id = i.turn_id and b.kind = i.kind and b.seq < i.seq)
		from thread_items i join threads h on h.id = i.thread_id
			join turns t on t.thread_id = i.thread_id and t.turn_id = i.turn_id
		where ` + strings.Join(c.parts, ` and `) +
		` order by t.created_at desc, i.thread_id desc, i.seq desc limit ` + c.arg(int64(q.Limit)) + ` + 0`
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]thread.Hit, error) {
		return sqldb.All(tx, func(rows *sql.Rows) (h thread.Hit, err error) {
			var asked int64
			h.Item, err = scanItemWith(rows, &h.Thread, &asked, &h.Name, &h.Preview, &h.Provider, &h.Archived, &h.Steer)
			h.Asked = thole.FromMillis(asked)
			return h, err
		}, query, c.args...)
	})
}
