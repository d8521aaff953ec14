package store

import (
	"context"
	"database/sql"
	"strings"
	"sync"

	"github.com/tholehq/thole/internal/sqldb"
)

// Violation is a row that breaks a rule which must hold at every commit.
type Violation struct {
	Rule string `json:"rule"`
	Row  string `json:"row"`
}

// deliveryRules lists, for each rule over stored deliveries, the rows that break it.
func deliveryRules() [][2]string {
	const (
		head    = `(select min(h.seq) from delivery_batches h where h.lane_id = b.lane_id and h.state <> 'closed' and h.held_for <> 'no_channel')`
		tracked = `(a.state in ('accept_pending', 'arm_pending') or (a.state = 'cooldown' and a.rpc_kind <> ''))`
	)
	return [][2]string{
		{"a thread has at most one open attempt",
			`select lane_id from delivery_attempts where ` + openAttempt + ` group by lane_id having count(*) > 1`},
		{"an open attempt belongs to the first open batch of its thread",
			`select a.attempt_id from delivery_attempts a join delivery_batches b on b.batch_id = a.batch_id
			 where a.state in ('prepared', 'accept_pending', 'arm_pending', 'cooldown') and (b.state = 'closed' or b.seq <> ` + head + `)`},
		{"generations rise per thread and the batch names its newest",
			`select a.attempt_id from delivery_attempts a join delivery_lanes l on l.lane_id = a.lane_id join delivery_batches b on b.batch_id = a.batch_id
			 where a.generation > l.generation or a.generation > b.generation or a.lane_id <> b.lane_id`},
		{"attempts are counted when, and only when, a channel accepted them",
			`select b.batch_id from delivery_batches b where b.attempt_count <>
			 (select count(*) from delivery_attempts a where a.batch_id = b.batch_id and (a.accepted_at <> 0 or (a.rpc_kind = '' and a.cooldown_until <> 0)))`},
		{"a batch counts its jobs",
			`select b.batch_id from delivery_batches b where b.jobs <> (select count(*) from delivery_jobs j where j.batch_id = b.batch_id and j.batch_id <> '')`},
		{"a finished job without a parent is in a batch of its thread",
			`select j.job_id from delivery_jobs j where j.status in ('ready', 'failed') and j.parent_job_id = ''
			 and not exists (select 1 from delivery_batches b where b.batch_id = j.batch_id and b.lane_id = j.lane_id)`},
		{"a job that waits for its children has an open one",
			`select p.job_id from delivery_jobs p where p.status = 'running' and p.settled <> ''
			 and not exists (select 1 from delivery_jobs c where c.parent_job_id = p.job_id and c.parent_job_id <> '' and c.status = 'running')`},
		{"a cancelled job has no open descendant",
			`select c.job_id from delivery_jobs c join delivery_jobs p on p.job_id = c.parent_job_id where p.status = 'cancelled' and c.status = 'running'`},
		{"only the first open batch of a thread is fixed",
			`select b.batch_id from delivery_batches b where b.state in ('materialized', 'cooldown') and b.held_for <> 'no_channel' and b.seq <> ` + head},
		{"a batch that no channel reaches is fixed and has no open attempt",
			`select b.batch_id from delivery_batches b where b.held_for = 'no_channel' and b.state <> 'closed' and (b.state <> 'materialized'
			 or exists (select 1 from delivery_attempts a where a.batch_id = b.batch_id and a.` + openAttempt + `))`},
		{"every first batch has a deadline or a place in the order",
			`select b.batch_id from delivery_batches b join delivery_lanes l on l.lane_id = b.lane_id
			 where b.state <> 'closed' and b.seq = ` + head + ` and l.due_at = 0 and l.ticket = 0
			 and (b.state = 'queued' or (b.replay_policy = 'automatic' and l.blocked = ''
			 and not exists (select 1 from delivery_attempts a where a.lane_id = b.lane_id and ` + tracked + `)))`},
		{"a thread whose batch is held or on its way is in no fair order",
			`select b.batch_id from delivery_batches b join delivery_lanes l on l.lane_id = b.lane_id
			 where b.state <> 'closed' and b.seq = ` + head + ` and l.ticket <> 0
			 and (b.replay_policy <> 'automatic' or b.state = 'queued' or l.blocked <> ''
			 or exists (select 1 from delivery_attempts a where a.lane_id = b.lane_id and ` + tracked + `))`},
		{"a held batch has no open attempt",
			`select b.batch_id from delivery_batches b join delivery_attempts a on a.batch_id = b.batch_id
			 where b.replay_policy <> 'automatic' and a.state in ('prepared', 'accept_pending', 'arm_pending', 'cooldown')`},
		{"a thread without an open batch waits for nothing",
			`select l.lane_id from delivery_lanes l where (l.ticket <> 0 or l.due_at <> 0)
			 and not exists (select 1 from delivery_batches b where b.lane_id = l.lane_id and b.state <> 'closed' and b.held_for <> 'no_channel')`},
		{"places in a fair order are unique and were given",
			`select scope from delivery_lanes l where ticket <> 0 group by scope, ticket
			 having count(*) > 1 or ticket > (select last_ticket from delivery_scopes s where s.target = l.scope)`},
		{"what could not be proven is held or was closed by a human or by its window",
			`select a.attempt_id from delivery_attempts a join delivery_batches b on b.batch_id = a.batch_id
			 where (a.rpc_state = 'acceptance_unknown' or a.observation_state in ('lost', 'expired')
			   or a.last_event in ('turn_failed', 'turn_interrupted', 'turn_replaced')) and b.replay_policy = 'automatic'
			 and a.generation > b.released_generation`},
		{"a batch that a person released has its ledger row",
			`select b.batch_id from delivery_batches b where b.released_by <> '' and not exists
			 (select 1 from delivery_audit a where a.batch_id = b.batch_id and a.batch_id <> '' and a.event = 'batch.release')`},
		{"a delivered batch has a completed turn that was seen in time",
			`select b.batch_id from delivery_batches b where b.close_reason = 'delivered' and not exists
			 (select 1 from delivery_attempts a where a.batch_id = b.batch_id and a.state = 'closed' and a.last_event = 'turn_completed'
			  and a.last_event_at <= a.observation_until)`},
		{"an artifact of open work is held",
			`select r.artifact_id from artifacts r join delivery_jobs j on j.artifact_id = r.artifact_id left join delivery_batches b on b.batch_id = j.batch_id
			 where not r.held and (j.status = 'running' or (j.batch_id <> '' and b.state <> 'closed'))`},
		{"a held artifact belongs to a job",
			`select r.artifact_id from artifacts r where r.held and not exists (select 1 from delivery_jobs j where j.job_id = r.job_id and j.artifact_id = r.artifact_id)`},
		{"a heartbeat that may fire keeps its thread out of the fair order",
			`select b.binding_id from desktop_bindings b join delivery_lanes l on l.lane_id = b.lane_id
			 where b.state = 'bound' and b.armed_generation > 0 and b.quiesced_at = 0 and l.blocked = ''`},
		{"a heartbeat is armed for a generation that there was",
			`select b.binding_id from desktop_bindings b join delivery_lanes l on l.lane_id = b.lane_id where b.armed_generation > l.generation`},
		{"a handover is of an attempt that was accepted, and is never sent again",
			`select b.batch_id from delivery_batches b where b.boundary_state <> 'not_crossed' and (b.replay_policy = 'automatic' or not exists
			 (select 1 from delivery_attempts a where a.attempt_id = b.boundary_attempt_id and a.generation = b.boundary_generation and a.state = 'closed' and a.cooldown_until <> 0))`},
		{"every closed batch has its ledger row",
			`select b.batch_id from delivery_batches b where b.state = 'closed' and not exists
			 (select 1 from delivery_audit a where a.batch_id = b.batch_id and a.batch_id <> '' and a.event = 'batch.close')`},
	}
}

// CheckDelivery returns every row that breaks a rule of delivery.
func (db *DB) CheckDelivery(ctx context.Context) (found []Violation, err error) {
	err = db.View(ctx, func(tx *sqldb.Tx) error {
		found, err = sqldb.All(tx, func(r *sql.Rows) (v Violation, err error) { return v, r.Scan(&v.Rule, &v.Row) }, deliveryCheck())
		return err
	})
	return found, err
}

// deliveryCheck is all rules in one statement.
var deliveryCheck = sync.OnceValue(func() string {
	var parts []string
	for _, rule := range deliveryRules() {
		parts = append(parts, "select '"+rule[0]+"', q.* from ("+rule[1]+") q")
	}
	return strings.Join(parts, " union all ")
})
