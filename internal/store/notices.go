package store

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
)

// noticesKept is how long it is remembered that a notification was taken.
const noticesKept = time.Hour

// TakeNotice gives the notification about an event to the first server that asks.
func (db *DB) TakeNotice(ctx context.Context, id thole.EventID) (ours bool, err error) {
	err = db.Update(ctx, "notice.take", func(tx *sqldb.Tx) error {
		now := thole.Millis(tx.Now())
		if _, err := tx.Exec(`delete from notices where at < $1`, now-noticesKept.Milliseconds()); err != nil {
			return err
		}
		ours, err = tx.ExecOne(`insert into notices (event_id, at) values ($1, $2) on conflict do nothing`, id, now)
		return err
	})
	return ours, err
}
