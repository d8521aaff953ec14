package store

import (
	"database/sql"
	"time"

	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
)

// What ended before $1: a closed batch whose recovery is not kept for longer, and a
// cancelled job that nothing carries.
const (
	endedBatch = `state = 'closed' and closed_at <= $1 and boundary_retention_until <= $1 and boundary_pin_until <= $1`
	endedJob   = `status = 'cancelled' and batch_id = '' and parent_job_id = '' and updated_at <= $1`
)

// Ended implements delivery.Tx.
func (tx deliveryTx) Ended(before time.Time, after delivery.Position, limit int) ([]delivery.Ended, error) {
	return sqldb.All(tx.Tx, func(r *sql.Rows) (e delivery.Ended, err error) {
		return e, r.Scan(&e.LaneID, &e.Batch, &e.Job, millis{&e.At})
	}, `select lane_id, batch_id, job_id, ended from (
			select lane_id, batch_id, '' as job_id, closed_at as ended, batch_id as id from delivery_batches where `+endedBatch+`
			union all select lane_id, '', job_id, updated_at, job_id from delivery_jobs where `+endedJob+`) e
		where ended > $2 or (ended = $2 and id > $3) order by ended, id limit $4 + 0`, toMillis(before), toMillis(after.At), after.ID, limit)
}

// family is a batch's jobs, or one job, and everything below them.
const family = `with recursive family (job_id) as (
	select job_id from delivery_jobs where (batch_id = $1 and batch_id <> '') or job_id = $2
	union all select c.job_id from delivery_jobs c join family f on c.parent_job_id = f.job_id and c.parent_job_id <> '') `

// ForgetIfEnded implements delivery.Tx.
func (tx deliveryTx) ForgetIfEnded(e delivery.Ended, before time.Time) (bool, error) {
	var ended, kept int64
	err := tx.QueryRow(`select (select count(*) from delivery_batches where batch_id = $2 and `+endedBatch+`) +
		(select count(*) from delivery_jobs where job_id = $3 and `+endedJob+`)`, toMillis(before), string(e.Batch), string(e.Job)).Scan(&ended)
	if err != nil || ended == 0 {
		return false, err
	}
	ids := []any{string(e.Batch), string(e.Job)}
	err = tx.QueryRow(family+`select count(*) from artifacts r join delivery_jobs j on j.artifact_id = r.artifact_id join family f on f.job_id = j.job_id
		where r.removed_at = 0`, ids...).Scan(&kept)
	if err != nil || kept > 0 {
		return false, err
	}
	for _, q := range []string{
		`delete from artifacts where removed_at <> 0 and artifact_id in (select j.artifact_id from delivery_jobs j join family f on f.job_id = j.job_id)`,
		`delete from delivery_audit where (batch_id = $1 and batch_id <> '' or job_id <> '' and job_id in (select job_id from family))
			and seq < (select max(a.seq) from delivery_audit a where a.lane_id = delivery_audit.lane_id)`,
		`delete from delivery_jobs where job_id in (select job_id from family)`,
	} {
		if _, err := tx.Exec(family+q, ids...); err != nil {
			return false, err
		}
	}
	if _, err := tx.Exec("delete from delivery_attempts where batch_id = $1", string(e.Batch)); err != nil {
		return false, err
	}
	_, err = tx.Exec("delete from delivery_batches where batch_id = $1", string(e.Batch))
	return true, err
}
