package store

import (
	"context"
	"database/sql"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// outputPiece is how many bytes of an output one row has, so that a page of it is read
// without the rest.
const outputPiece = 64 << 10

func putOutputs(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	for _, o := range c.Outputs {
		for at := 0; at < len(o.Text); {
			end := min(at+outputPiece, len(o.Text))
			for end < len(o.Text) && end > at+outputPiece-utf8.UTFMax && !utf8.RuneStart(o.Text[end]) {
				end--
			}
			if _, err := tx.Exec(`insert into item_outputs (thread_id, turn_id, item_id, start_at, size, body) values ($1, $2, $3, $4, $5, $6)
				on conflict do nothing`, id, o.Turn, o.Item, int64(at), int64(end-at), packText(o.Text[at:end])); err != nil {
				return err
			}
			at = end
		}
	}
	return nil
}

// Item implements thread.Store.
func (s *Threads) Item(ctx context.Context, id thole.ThreadID, item thole.ItemID) (fold.ItemRecord, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) (fold.ItemRecord, error) {
		return first(tx, scanItem, `select turn_id, seq, is_open, body from thread_items where thread_id = $1 and item_id = $2 and not reverted order by seq desc limit 1`, id, item)
	})
}

// Output implements thread.Store.
func (s *Threads) Output(ctx context.Context, id thole.ThreadID, turn thole.TurnID, item thole.ItemID, offset, limit int64) (pieces []thread.OutputPiece, kept int64, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		const of = ` from item_outputs where thread_id = $1 and turn_id = $2 and item_id = $3`
		if err := tx.QueryRow(`select cast(coalesce(max(start_at + size), 0) as bigint)`+of, id, turn, item).Scan(&kept); err != nil {
			return err
		}
		pieces, err = sqldb.All(tx, func(rows *sql.Rows) (p thread.OutputPiece, err error) {
			var body string
			if err = rows.Scan(&p.Offset, &body); err == nil {
				p.Text, err = unpackText(body)
			}
			return p, err
		}, `select start_at, body`+of+` and start_at + size > $4 and start_at < $5 order by start_at`, id, turn, item, offset, offset+limit)
		return err
	})
	return pieces, kept, err
}
