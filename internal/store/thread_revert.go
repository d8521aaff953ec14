package store

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// putReverted takes turns out of a thread. Nothing finds what was said in them any more.
func putReverted(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	if c.Reverted == 0 {
		return nil
	}
	var saving int64
	err := tx.QueryRow(`select count(*) from turns where thread_id = $1 and outcome <> ''
		and phase not in ('succeeded', 'failed', 'canceled')`, id).Scan(&saving)
	if err == nil && saving > 0 {
		err = thread.ErrSaving
	}
	if err != nil {
		return err
	}
	ok, err := tx.ExecOne(`update turns set reverted = true where thread_id = $1 and number = $2 and not reverted`, id, int64(c.Reverted))
	if err == nil && !ok {
		err = thread.ErrNone
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`update turns set reverted = true where thread_id = $1 and number > $2`, id, int64(c.Reverted)); err != nil {
		return err
	}
	_, err = tx.Exec(`update thread_items set reverted = true, search = '' where thread_id = $1
		and turn_id in (select t.turn_id from turns t where t.thread_id = $1 and t.reverted)`, id)
	return err
}
