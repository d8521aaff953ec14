package store

import (
	"context"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// conditions builds a where clause; every value goes in as an argument.
type conditions struct {
	parts []string
	args  []any
}

// arg adds a value and returns its placeholder.
func (c *conditions) arg(v any) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args))
}

func (c *conditions) add(part string) { c.parts = append(c.parts, part) }

func in[T ~string](c *conditions, column string, values []T) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = c.arg(string(v))
	}
	return column + ` in (` + strings.Join(all, ", ") + `)`
}

// scoped leaves only the threads that an actor may see. prefix names their table.
func scoped(c *conditions, prefix string, s authz.Scope) {
	if !s.All {
		c.add(s.Where(prefix, c.arg))
	}
}

// Threads implements thread.Store.
func (s *Threads) Threads(ctx context.Context, q thread.ThreadQuery) ([]fold.Row, error) {
	var c conditions
	c.add(`not ephemeral`)
	c.add(`archived = ` + c.arg(q.Archived))
	scoped(&c, "", q.Scope)
	if q.Pinned != nil {
		c.add(`pinned = ` + c.arg(*q.Pinned))
	}
	if len(q.Dirs) > 0 {
		c.add(in(&c, "dir", q.Dirs))
	}
	if len(q.Except) > 0 {
		c.add(`not ` + in(&c, "id", q.Except))
	}
	if len(q.Providers) > 0 {
		c.add(in(&c, "provider", q.Providers))
	}
	if q.Search != "" {
		like := c.arg(`%` + likeEscape.Replace(thread.FoldText(q.Search)) + `%`)
		c.add(`(lower(name) like ` + like + ` escape '!' or lower(preview) like ` + like + ` escape '!'
			or exists (select 1 from thread_items i where i.thread_id = threads.id and i.search <> '' and i.search like ` + like + ` escape '!'))`)
	}
	column, op, dir := "updated_at", ">", "asc"
	if q.ByCreated {
		column = "created_at"
	}
	if q.Desc {
		op, dir = "<", "desc"
	}
	pinOrder := ""
	if q.PinnedFirst {
		pinOrder = `pinned desc, `
	} else if q.PinnedLast {
		pinOrder = `pinned asc, `
	}
	if q.KeyID != "" {
		at, id := c.arg(thole.Millis(q.Key)), c.arg(q.KeyID)
		after := `(` + column + `, id) ` + op + ` (` + at + `, ` + id + `)`
		if pinOrder != "" {
			after = `pinned = ` + c.arg(q.KeyPinned) + ` and ` + after
			if q.KeyPinned == q.PinnedFirst { // the other part follows
				after = `(` + after + ` or pinned = ` + c.arg(!q.KeyPinned) + `)`
			}
		}
		c.add(after)
	}
	query := `select ` + threadColumns + ` from threads where ` + strings.Join(c.parts, ` and `) +
		` order by ` + pinOrder + column + ` ` + dir + `, id ` + dir + ` limit ` + c.arg(int64(q.Limit)) + ` + 0`
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]fold.Row, error) { return sqldb.All(tx, scanThread, query, c.args...) })
}

var likeEscape = strings.NewReplacer(`!`, `!!`, `%`, `!%`, `_`, `!_`)
