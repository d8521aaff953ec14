package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"database/sql"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
)

// Delivery is the durable side of jobs, lanes, batches, attempts and the ledger.
type Delivery struct{ db *DB }

var _ delivery.Store = (*Delivery)(nil)

// Delivery returns the delivery store.
func (db *DB) Delivery() *Delivery { return &Delivery{db} }

// Update implements delivery.Store.
func (d *Delivery) Update(ctx context.Context, step string, fn func(delivery.Tx) error) error {
	return d.db.Update(ctx, step, func(tx *sqldb.Tx) error {
		if d.db.shared() {
			tx.Notify(deliveryTopic, "")
		}
		return fn(deliveryTx{tx, d.db.server})
	})
}

const deliveryTopic = "deliveries"

// Watch calls fn after other servers, or this one, changed a job or a batch.
func (d *Delivery) Watch(fn func()) (cancel func()) {
	if !d.db.shared() {
		return func() {}
	}
	return d.db.Subscribe(deliveryTopic, func(string) { fn() })
}

const jobsTopic = "jobs"

// WatchOwners calls fn with the owner of what was changed, after any server changed a job or its
// batch; with the zero owner when changes may have been missed.
func (d *Delivery) WatchOwners(fn func(thole.Owner)) (cancel func()) {
	return d.db.Subscribe(jobsTopic, func(key string) {
		var o thole.Owner
		if f := strings.Split(key, " "); len(f) == 3 {
			o = thole.Owner{App: thole.AppID(f[0]), Project: thole.ProjectID(f[1]), User: thole.UserID(f[2])}
		}
		fn(o)
	})
}

// changes says whose jobs a transaction changes, once it is committed.
func (tx deliveryTx) changes(o thole.Owner) {
	tx.Notify(jobsTopic, string(o.App)+" "+string(o.Project)+" "+string(o.User))
}

// View implements delivery.Store.
func (d *Delivery) View(ctx context.Context, fn func(delivery.Tx) error) error {
	return d.db.View(ctx, func(tx *sqldb.Tx) error { return fn(deliveryTx{tx, d.db.server}) })
}

type deliveryTx struct {
	*sqldb.Tx
	server string // that asks
}

// deadline is the derived column: written from the attempt, never read back.
type deadline struct{ a *delivery.Attempt }

func (d deadline) Value() (driver.Value, error) { return toMillis(d.a.Deadline()), nil }
func (d deadline) Scan(any) error               { return nil }

func (tx deliveryTx) Lane(id string) (*delivery.Lane, error) {
	return one(tx.Tx, scanLane, laneTable().selected+"where lane_id = $1", id)
}

func (tx deliveryTx) LockLane(id string) (*delivery.Lane, error) {
	return one(tx.Tx, scanLane, laneTable().selected+"where lane_id = $1"+tx.ForUpdate(), id)
}

// scanLane also fills the owner's user, which the lane's address repeats.
func scanLane(l *delivery.Lane) []column {
	cols := laneColumns(l)
	cols[3].ptr = &userOf{l}
	return cols
}

type userOf struct{ l *delivery.Lane }

func (u *userOf) Scan(src any) error {
	var s sql.NullString
	if err := s.Scan(src); err != nil {
		return err
	}
	u.l.User, u.l.Owner.User = thole.UserID(s.String), thole.UserID(s.String)
	return nil
}

func (tx deliveryTx) Lanes(user thole.UserID, thread thole.ThreadID) ([]delivery.Lane, error) {
	return many(tx.Tx, scanLane, laneTable().selected+"where user_id = $1 and thread_id = $2 order by endpoint", string(user), string(thread))
}

// InsertLane tolerates a lane made meanwhile by another process; the caller locks
// and reads it afterwards.
func (tx deliveryTx) InsertLane(l *delivery.Lane) error {
	_, err := tx.Exec(laneTable().insert+" on conflict do nothing", arguments(laneColumns(l))...)
	return err
}

func (tx deliveryTx) UpdateLane(l *delivery.Lane) error {
	tx.changes(l.Owner)
	return put(tx.Tx, laneTable(), laneColumns(l), &l.Version)
}

// reachable are the lanes of threads that no terminal on another server holds. $n is the
// server that asks.
func reachable(lanes, n string) string {
	return `not exists (select 1 from attachments held where held.user_id = ` + lanes + `.user_id and held.endpoint = ` + lanes + `.endpoint and held.thread_id = ` + lanes + `.thread_id
		and held.thread_id <> '' and held.state <> 'retired' and held.server_id <> ` + n + `)`
}

func (tx deliveryTx) Ready(scope thole.Target, limit int) ([]delivery.Lane, error) {
	return many(tx.Tx, scanLane, laneTable().selected+"where scope = $1 and ticket <> 0 and "+reachable("delivery_lanes", "$3")+" order by ticket limit $2 + 0", string(scope), limit, tx.server)
}

// overdue is the page condition of every sweep: due, or impossibly far ahead.
func overdue(at, id string) string {
	return "(" + at + " <= $1 or " + at + " > $2) and (" + at + " > $3 or (" + at + " = $3 and " + id + " > $4)) order by " + at + ", " + id + " limit $5 + 0"
}

func (tx deliveryTx) DueLanes(now, far time.Time, after delivery.Position, limit int) ([]delivery.Lane, error) {
	return many(tx.Tx, scanLane, laneTable().selected+"where due_at <> 0 and "+overdue("due_at", "lane_id"),
		toMillis(now), toMillis(far), toMillis(after.At), after.ID, limit)
}

func (tx deliveryTx) Advance(target thole.Target, a delivery.Advance) (*delivery.Scope, error) {
	s, err := one(tx.Tx, func(s *delivery.Scope) []column {
		return []column{{"", &s.Target}, {"", &s.Cursor}, {"", &s.LastTicket}, {"", &s.Revision}}
	}, `update delivery_scopes set last_ticket = last_ticket + $2, revision = revision + $3,
			ready_cursor = case when ready_cursor < $4 then $4 else ready_cursor end
		where target = $1 returning target, ready_cursor, last_ticket, revision`, string(target), a.Tickets, a.Revisions, a.Served)
	if err == nil && s == nil {
		err = thole.Errorf(thole.CodeInternal, "no fair order for target %q", target)
	}
	return s, err
}

func (tx deliveryTx) InsertArtifact(r *artifact.Record) error {
	if _, err := tx.Exec(artifactTable().insert, arguments(artifactColumns(r))...); err != nil || tx.server == "" {
		return err
	}
	return tx.Must("the artifact is new", `update artifacts set server_id = $2 where artifact_id = $1`, string(r.ID), tx.server)
}

func (tx deliveryTx) ReleaseArtifacts(ids []thole.ArtifactID, at time.Time) error {
	for _, id := range ids {
		if _, err := tx.Exec("update artifacts set held = false, last_closed_at = $2, version = version + 1 where artifact_id = $1 and held", string(id), toMillis(at)); err != nil {
			return err
		}
	}
	return nil
}

// Append implements delivery.Tx.
func (tx deliveryTx) Append(rows []delivery.Audit) error {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].LaneID == rows[0].LaneID {
			n++
		}
		if err := tx.appendTo(rows[0].LaneID, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// appendTo writes the rows of one lane, whose newest number it reads first.
func (tx deliveryTx) appendTo(lane string, rows []delivery.Audit) error {
	var last int64
	if err := tx.QueryRow("select coalesce(max(seq), 0) from delivery_audit where lane_id = $1", lane).Scan(&last); err != nil {
		return err
	}
	values, args := make([]string, len(rows)), []any{}
	for i, a := range rows {
		proof, err := json.Marshal(a.Proof)
		if err != nil {
			return err
		}
		from := len(args)
		args = append(args, lane, last+int64(i)+1, toMillis(a.At), string(a.Actor.User), a.Actor.Via, a.Actor.Client, a.Event, string(a.Job), string(a.Batch),
			string(a.Attempt), a.Generation, a.From, a.To, string(proof))
		values[i] = "(" + marks(from+1, len(args)-from) + ")"
	}
	if _, err := tx.Exec("insert into delivery_audit (lane_id, seq, at, actor, via, client, event, job_id, batch_id, attempt_id, generation, from_state, to_state, proof) values "+
		strings.Join(values, ", "), args...); err != nil {
		return err
	}
	return tx.linkMoves(lane, rows)
}

const selectAudit = `select a.lane_id, a.seq, a.at, a.actor, a.via, a.client, a.event, a.job_id, a.batch_id, a.attempt_id, a.generation, a.from_state, a.to_state, a.proof
	from delivery_audit a join delivery_lanes l on l.lane_id = a.lane_id `

func scanAudit(rows *sql.Rows) (delivery.Audit, error) {
	var a delivery.Audit
	var proof string
	err := rows.Scan(&a.LaneID, &a.Seq, millis{&a.At}, &a.Actor.User, &a.Actor.Via, &a.Actor.Client, &a.Event, &a.Job, &a.Batch, &a.Attempt,
		&a.Generation, &a.From, &a.To, &proof)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal([]byte(proof), &a.Proof)
}

// Audits reads the newest rows and returns them oldest first. Rows of a lane, and
// so of a job or a batch, are in the order of their numbers: the clock may have
// gone back between them. Several lanes are merged by time, each at the latest
// time that it had reached.
func (tx deliveryTx) Audits(f delivery.AuditFilter) ([]delivery.Audit, error) {
	user, args := "($1 = '' or l.user_id = $1)", []any{string(f.User)}
	from, order := selectAudit+"where "+user, " order by a.seq desc"
	switch {
	case f.Batch != "":
		// The jobs of a batch show how it came to be.
		from += " and (a.batch_id = $2 or a.job_id in (select job_id from delivery_jobs where batch_id = $2))"
		args = append(args, string(f.Batch))
	case f.Job != "":
		from += " and (a.job_id = $2 or (a.batch_id <> '' and a.batch_id = (select batch_id from delivery_jobs where job_id = $2)))"
		args = append(args, string(f.Job))
	case f.LaneID != "":
		from, args = from+" and a.lane_id = $2", append(args, f.LaneID)
	default:
		from = selectAudit + "join (select lane_id, seq, max(at) over (partition by lane_id order by seq) as reached from delivery_audit) r" +
			" on r.lane_id = a.lane_id and r.seq = a.seq where " + user
		order = " order by r.reached desc, a.lane_id desc, a.seq desc"
	}
	if f.Limit > 0 {
		order += fmt.Sprintf(" limit $%d + 0", len(args)+1)
		args = append(args, f.Limit)
	}
	rows, err := sqldb.All(tx.Tx, scanAudit, from+order, args...)
	slices.Reverse(rows)
	return rows, err
}

// earliest is the first of the times that are set.
func earliest(millis ...int64) (first time.Time) {
	for _, at := range millis {
		if t := thole.FromMillis(at); at != 0 && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// Pending reads only through partial indexes: its cost does not grow with what is
// finished or merely queued.
func (tx deliveryTx) Pending() (delivery.Pending, error) {
	var p delivery.Pending
	var due, work, window, attempt, observing int64
	err := tx.QueryRow(`select
		(select count(*) from delivery_jobs where status = 'running'),
		(select coalesce(min(due_at), 0) from delivery_lanes where due_at <> 0),
		(select coalesce(min(due_at), 0) from delivery_lanes where due_at <> 0 and not (failures > 0 and due_at = eligible_after)),
		coalesce((select b.window_ends_at from delivery_batches b where b.state in ('materialized', 'cooldown')
			and not exists (select 1 from delivery_attempts a where a.batch_id = b.batch_id and a.deadline_at <> 0)
			order by b.window_ends_at limit 1), 0),
		(select coalesce(min(deadline_at), 0) from delivery_attempts where deadline_at <> 0),
		(select coalesce(max(deadline_at), 0) from delivery_attempts where deadline_at <> 0 and state in ('accept_pending', 'cooldown'))`).
		Scan(&p.RunningJobs, &due, &work, &window, &attempt, &observing)
	if err != nil {
		return p, err
	}
	p.Ready = map[thole.Target]int64{}
	rows, err := tx.Query("select scope, count(*) from delivery_lanes where ticket <> 0 group by scope")
	if err != nil {
		return p, err
	}
	defer rows.Close()
	for rows.Next() {
		var target thole.Target
		var n int64
		if err := rows.Scan(&target, &n); err != nil {
			return p, err
		}
		p.Ready[target] = n
	}
	if err := rows.Err(); err != nil {
		return p, err
	}
	p.Observing = thole.FromMillis(observing)
	p.Next, p.Near = earliest(due, window, attempt), earliest(work, window, attempt)
	return p, nil
}
