package store

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/workspace"
)

// Pin implements workspace.Rows.
func (w *Workspaces) Pin(ctx context.Context, holder string, id workspace.SnapshotID, until time.Time) error {
	return w.db.Update(ctx, "workspace.pin", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into workspace_pins (holder, snapshot_id, until_at) values ($1, $2, $3)
			on conflict (holder) do update set snapshot_id = excluded.snapshot_id, until_at = excluded.until_at`, holder, id, thole.Millis(until))
		return err
	})
}

// Unpin implements workspace.Rows.
func (w *Workspaces) Unpin(ctx context.Context, holder string) error {
	return w.db.Update(ctx, "workspace.unpin", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`delete from workspace_pins where holder = $1`, holder)
		return err
	})
}

// Prune implements workspace.Rows.
func (w *Workspaces) Prune(ctx context.Context, before, turns time.Time, limit int) (n int, err error) {
	err = w.db.Update(ctx, "workspace.prune", func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`delete from workspace_pins where until_at < $1`, thole.Millis(tx.Now())); err != nil {
			return err
		}
		if _, err := tx.Exec(`delete from workspace_turns where kept_at < $1 or not exists (select 1 from threads where threads.id = workspace_turns.thread_id)`,
			thole.Millis(turns)); err != nil {
			return err
		}
		if err := leaveDeleted(tx); err != nil {
			return err
		}
		ids, err := sqldb.All(tx, scanID[workspace.SnapshotID], `select id from workspace_snapshots s where left_at > 0 and left_at < $1
			and not exists (select 1 from workspace_heads h where h.snapshot_id = s.id)
			and not exists (select 1 from workspace_pins p where p.snapshot_id = s.id)
			and not exists (select 1 from workspace_turns t where t.snapshot_id = s.id)
			order by left_at limit $2 + 0`, thole.Millis(before), limit)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := tx.Exec(`delete from workspace_refs where snapshot_id = $1`, id); err != nil {
				return err
			}
			if _, err := tx.Exec(`delete from workspace_snapshots where id = $1`, id); err != nil {
				return err
			}
		}
		n = len(ids)
		return nil
	})
	return n, err
}

// leaveDeleted takes every deleted thread off its snapshot. A thread whose executor
// is still there is not done: it is synced once more before it goes.
func leaveDeleted(tx *sqldb.Tx) error {
	gone, err := sqldb.All(tx, scanID[thole.ThreadID], `select thread_id from workspace_heads h
		where not exists (select 1 from threads t where t.id = h.thread_id)
		and not exists (select 1 from executors x where x.thread_id = h.thread_id and x.state <> 'deleted')`)
	if err != nil {
		return err
	}
	now := thole.Millis(tx.Now())
	for _, id := range gone {
		if _, err := tx.Exec(`update workspace_snapshots set left_at = $2 where id = (select snapshot_id from workspace_heads where thread_id = $1)`, id, now); err != nil {
			return err
		}
		if _, err := tx.Exec(`delete from workspace_heads where thread_id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}

// Unreferenced implements workspace.Rows.
func (w *Workspaces) Unreferenced(ctx context.Context, keys []string) (free []string, err error) {
	err = w.db.View(ctx, func(tx *sqldb.Tx) error {
		free = nil
		for _, key := range keys {
			var one int
			err := tx.QueryRow(`select 1 from workspace_refs where object_key = $1 limit 1`, key).Scan(&one)
			if sqldb.NoRows(err) {
				free = append(free, key)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	return free, err
}
