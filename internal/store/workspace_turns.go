package store

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/workspace"
)

// keepTurn notes what a sync stored as the files of the turn before it: the newest
// that an executor was given to, if it has ended. One that is parked in the middle
// has no files of its own yet.
func keepTurn(tx *sqldb.Tx, id thole.ExecutorID, snapshot string, now int64) error {
	_, err := tx.Exec(`insert into workspace_turns (thread_id, turn_id, snapshot_id, kept_at)
		select t.thread_id, t.turn_id, s.id, $3 from executors x
		join turns t on t.thread_id = x.thread_id
		join workspace_snapshots s on s.id = $2
		where x.id = $1 and t.outcome <> ''
			and t.number = (select max(number) from turns given where given.thread_id = x.thread_id and given.executor_id <> '')
		on conflict (thread_id, turn_id) do update set snapshot_id = excluded.snapshot_id, kept_at = excluded.kept_at`, id, snapshot, now)
	return err
}

// forkWorkspace lets a fork begin with the files of the turn it is made at, as
// part of the fork's own transaction: with those its parent has now if no later
// turn has touched them, otherwise with those that were kept for the turn. While that turn's
// are being saved there is no fork of it.
func forkWorkspace(tx *sqldb.Tx, from, to thole.ThreadID, upTo int) error {
	// The newest turn whose files the fork has, and the newest of all.
	var own, newest int64
	err := tx.QueryRow(`select coalesce(max(case when number <= $2 then number end), 0), coalesce(max(number), 0)
		from turns where thread_id = $1 and executor_id <> ''`, from, int64(upTo)).Scan(&own, &newest)
	if err != nil {
		return err
	}
	var saving int64
	err = tx.QueryRow(`select count(*) from turns where thread_id = $1 and number = $2 and outcome <> ''
		and phase not in ('succeeded', 'failed', 'canceled')`, from, own).Scan(&saving)
	if err == nil && saving > 0 {
		err = thread.ErrSaving
	}
	if err != nil {
		return err
	}
	snap, err := headOf(tx, from)
	if err != nil || snap == "" {
		return err
	}
	if own < newest {
		if snap, err = keptOf(tx, from, own); err != nil || snap == "" {
			return err
		}
	}
	now := thole.Millis(tx.Now())
	if _, err := tx.Exec(`insert into workspace_heads (thread_id, snapshot_id, updated_at) values ($1, $2, $3)`, to, snap, now); err != nil {
		return err
	}
	_, err = tx.Exec(`insert into workspace_turns (thread_id, turn_id, snapshot_id, kept_at)
		select $1, w.turn_id, w.snapshot_id, w.kept_at from workspace_turns w
		join turns t on t.thread_id = w.thread_id and t.turn_id = w.turn_id
		where w.thread_id = $2 and t.number <= $3`, to, from, int64(upTo))
	return err
}

// keptOf is the snapshot that was kept for a turn, "" before the first.
func keptOf(tx *sqldb.Tx, id thole.ThreadID, number int64) (snap workspace.SnapshotID, err error) {
	if number == 0 {
		return "", nil
	}
	err = tx.QueryRow(`select w.snapshot_id from workspace_turns w join turns t on t.thread_id = w.thread_id and t.turn_id = w.turn_id
		where t.thread_id = $1 and t.number = $2`, id, number).Scan(&snap)
	if sqldb.NoRows(err) {
		err = thole.Errorf(thole.CodeGone, "the files of turn %d are not kept any more", number).
			WithHint("fork at a later turn; files are kept for %d days", int(workspace.TurnsKept.Hours()/24))
	}
	return snap, err
}
