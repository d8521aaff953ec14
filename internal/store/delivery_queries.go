package store

import (
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// listLimit bounds every page of a list that a caller does not.
const listLimit = 1000

func (tx deliveryTx) Job(id thole.JobID) (*delivery.Job, error) {
	return one(tx.Tx, jobColumns, jobTable().selected+"where job_id = $1", string(id))
}

func (tx deliveryTx) JobByDedupe(laneID, key string) (*delivery.Job, error) {
	return one(tx.Tx, jobColumns, jobTable().selected+"where lane_id = $1 and dedupe_key = $2 and dedupe_key <> ''", laneID, key)
}

func (tx deliveryTx) InsertJob(j *delivery.Job) error {
	tx.changes(j.Owner)
	if _, err := tx.Exec(jobTable().insert, arguments(jobColumns(j))...); err != nil || tx.server == "" {
		return err
	}
	return tx.Must("the job is new", `update delivery_jobs set server_id = $2 where job_id = $1`, string(j.ID), tx.server)
}

func (tx deliveryTx) UpdateJob(j *delivery.Job) error {
	tx.changes(j.Owner)
	return put(tx.Tx, jobTable(), jobColumns(j), &j.Version)
}

func (tx deliveryTx) Children(parent thole.JobID) ([]delivery.Job, error) {
	return many(tx.Tx, jobColumns, jobTable().selected+"where parent_job_id = $1 and parent_job_id <> '' order by ready_at, created_at, job_id", string(parent))
}

func (tx deliveryTx) JobsOf(batch thole.BatchID) ([]delivery.Job, error) {
	return many(tx.Tx, jobColumns, jobTable().selected+"where batch_id = $1 and batch_id <> '' order by batch_order", string(batch))
}

func (tx deliveryTx) Jobs(f delivery.JobFilter) ([]delivery.Job, error) {
	if f.Supervised {
		return many(tx.Tx, jobColumns, jobTable().selected+"where status = 'running' and supervised and server_id = $3 and job_id > $1 order by job_id limit $2 + 0", string(f.After), bounded(f.Limit), tx.server)
	}
	if f.Commands {
		return many(tx.Tx, jobColumns, jobTable().selected+"where status = 'running' and command <> '' and ($3 = '' or lane_id = $3) and ($3 <> '' or "+attended+") and job_id > $1 order by job_id limit $2 + 0",
			string(f.After), bounded(f.Limit), f.LaneID, tx.server)
	}
	return many(tx.Tx, jobColumns, jobTable().selected+`where user_id = $1 and ($2 = '' or thread_id = $2) and ($3 = '' or status = $3)
		and ($4 = '' or (created_at, job_id) < (select created_at, job_id from delivery_jobs where job_id = $4))
		order by created_at desc, job_id desc limit $5 + 0`, string(f.User), string(f.Thread), string(f.State), string(f.After), bounded(f.Limit))
}

// attended are the commands in threads that server $4 takes care of: those in its executors,
// those in executors that are over, and those that nobody has given to one yet and whose
// thread is not on another server.
const attended = `($4 = '' or case when executor_id = ''
		then server_id = $4 and not exists (select 1 from executors e where e.thread_id = delivery_jobs.thread_id and e.state <> 'deleted' and e.engine <> 'local:' || $4)
			or exists (select 1 from executors e where e.thread_id = delivery_jobs.thread_id and e.state <> 'deleted' and e.engine = 'local:' || $4)
		else not exists (select 1 from executors e where e.id = delivery_jobs.executor_id and e.state <> 'deleted' and e.engine <> 'local:' || $4) end)`

func bounded(limit int) int {
	if limit <= 0 || limit > listLimit {
		return listLimit
	}
	return limit
}

func (tx deliveryTx) Batch(id thole.BatchID) (*delivery.Batch, error) {
	return one(tx.Tx, batchColumns, batchTable().selected+"where batch_id = $1", string(id))
}

func (tx deliveryTx) HeadBatch(laneID string) (*delivery.Batch, error) {
	return one(tx.Tx, batchColumns, batchTable().selected+"where lane_id = $1 and state <> 'closed' and held_for <> 'no_channel' order by seq limit 1", laneID)
}

func (tx deliveryTx) TailBatch(laneID string) (*delivery.Batch, error) {
	return one(tx.Tx, batchColumns, batchTable().selected+"where lane_id = $1 and state <> 'closed' and held_for <> 'no_channel' order by seq desc limit 1", laneID)
}

func (tx deliveryTx) InsertBatch(b *delivery.Batch) error {
	_, err := tx.Exec(batchTable().insert, arguments(batchColumns(b))...)
	return err
}

func (tx deliveryTx) UpdateBatch(b *delivery.Batch) error {
	return put(tx.Tx, batchTable(), batchColumns(b), &b.Version)
}

func (tx deliveryTx) Batches(f delivery.BatchFilter) ([]delivery.Batch, error) {
	return many(tx.Tx, batchColumns, batchTable().selected+`where lane_id in (select lane_id from delivery_lanes where user_id = $1 and ($2 = '' or thread_id = $2))
		and (not $3 or state <> 'closed') and (not $4 or (state <> 'closed' and replay_policy = 'manual_resolution_only'))
		and ($5 = '' or (created_at, batch_id) < (select created_at, batch_id from delivery_batches where batch_id = $5))
		order by created_at desc, batch_id desc limit $6 + 0`, string(f.User), string(f.Thread), f.Open, f.Held, string(f.After), bounded(f.Limit))
}

func (tx deliveryTx) OverdueBatches(now, far time.Time, after delivery.Position, limit int) ([]delivery.Batch, error) {
	return many(tx.Tx, batchColumns, batchTable().selected+"where state in ('materialized', 'cooldown') and "+overdue("window_ends_at", "batch_id"),
		toMillis(now), toMillis(far), toMillis(after.At), after.ID, limit)
}

func (tx deliveryTx) Attempt(id thole.AttemptID) (*delivery.Attempt, error) {
	return one(tx.Tx, attemptColumns, attemptTable().selected+"where attempt_id = $1", string(id))
}

const openAttempt = "state in ('prepared', 'accept_pending', 'arm_pending', 'cooldown')"

func (tx deliveryTx) OpenAttempt(laneID string) (*delivery.Attempt, error) {
	return one(tx.Tx, attemptColumns, attemptTable().selected+"where lane_id = $1 and "+openAttempt, laneID)
}

func (tx deliveryTx) InsertAttempt(a *delivery.Attempt) error {
	_, err := tx.Exec(attemptTable().insert, arguments(attemptColumns(a))...)
	return err
}

func (tx deliveryTx) UpdateAttempt(a *delivery.Attempt) error {
	return put(tx.Tx, attemptTable(), attemptColumns(a), &a.Version)
}

func (tx deliveryTx) AttemptsOf(batch thole.BatchID) ([]delivery.Attempt, error) {
	return many(tx.Tx, attemptColumns, attemptTable().selected+"where batch_id = $1 order by generation", string(batch))
}

func (tx deliveryTx) OverdueAttempts(now, far time.Time, after delivery.Position, limit int) ([]delivery.Attempt, error) {
	return many(tx.Tx, attemptColumns, attemptTable().selected+"where deadline_at <> 0 and "+overdue("deadline_at", "attempt_id"),
		toMillis(now), toMillis(far), toMillis(after.At), after.ID, limit)
}

func (tx deliveryTx) LiveAttempts(after thole.AttemptID, limit int) ([]delivery.Attempt, error) {
	return many(tx.Tx, attemptColumns, attemptTable().selected+"where deadline_at <> 0 and state in ('accept_pending', 'cooldown') and attempt_id > $1 and exists (select 1 from delivery_lanes l where l.lane_id = delivery_attempts.lane_id and "+reachable("l", "$3")+") order by attempt_id limit $2 + 0",
		string(after), limit, tx.server)
}
