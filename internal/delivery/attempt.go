package delivery

import (
	"context"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// Candidate is the head of a fair order: what a driver may try to send next.
// Looking at it changes nothing.
type Candidate struct {
	Lane    Lane
	Batch   Batch
	Attempt *Attempt // an attempt that was rejected before acceptance, or nil
}

// Candidates peeks at the fair order of a target.
func (m *Machine) Candidates(ctx context.Context, target thole.Target, limit int) ([]Candidate, error) {
	var out []Candidate
	err := m.store.View(ctx, func(tx Tx) error {
		out = nil
		lanes, err := tx.Ready(target, limit)
		if err != nil {
			return err
		}
		for _, l := range lanes {
			head, err := tx.HeadBatch(l.ID)
			if err != nil {
				return err
			}
			if head == nil {
				continue
			}
			open, err := tx.OpenAttempt(l.ID)
			if err != nil {
				return err
			}
			out = append(out, Candidate{Lane: l, Batch: *head, Attempt: open})
		}
		return nil
	})
	return out, err
}

// Parcel is a batch on its way: its attempt, its jobs in order and their children.
type Parcel struct {
	Lane    Lane
	Batch   Batch
	Attempt Attempt
	Jobs    []ParcelJob
}

// ParcelJob is a job with what travels inside it.
type ParcelJob struct {
	Job
	Children []ParcelJob
}

// BeginAccept is the barrier before a turn_start or turn_steer call: when it
// returns nil the attempt is durably accept_pending and the caller, and nobody
// else, must call the channel once and settle the fence of the returned attempt.
// thole.CodeConflict means that the batch is no longer next; nothing changed.
func (m *Machine) BeginAccept(ctx context.Context, actor thole.Actor, p BeginAccept) (Parcel, error) {
	if !p.Kind.Observed() || p.Request == "" || p.Marker == "" {
		return Parcel{}, thole.Errorf(thole.CodeInternal, "begin accept: kind %q needs a request id and a marker", p.Kind)
	}
	var out Parcel
	err := m.update(ctx, "begin_accept", actor, func(o *op) error {
		b, a, err := o.prepare(p.LaneID, p.Batch)
		if err != nil {
			return err
		}
		a.RPC = RPC{RequestID: p.Request, Kind: p.Kind, StartedAt: o.now, State: thole.RPCPending, Marker: p.Marker}
		a.DeliveryDeadline = o.now.Add(m.limits.AcceptTimeout)
		a.Holder, a.LeaseUntil, a.Ticket = p.Holder, o.now.Add(p.Lease), o.lane.Ticket
		a.Observation = Observation{Attachment: p.Attachment, Epoch: p.Epoch}
		if err := o.move(a, MoveBeginAccept, map[string]string{
			"request": p.Request, "kind": string(p.Kind), "marker": p.Marker, "probe": p.Proof, "deadline": stamp(a.DeliveryDeadline),
		}); err != nil {
			return err
		}
		if b.Mode != p.Kind {
			b.Mode, b.UpdatedAt = p.Kind, o.now
			if err := o.UpdateBatch(b); err != nil {
				return err
			}
		}
		out, err = o.parcel(b, a)
		return err
	})
	return out, err
}

// BeginAccept names the batch a driver probed and the call it is about to make.
type BeginAccept struct {
	LaneID     string
	Batch      thole.BatchID
	Kind       thole.DeliveryMode
	Request    string
	Marker     string
	Attachment thole.AttachmentID
	Epoch      int64
	Holder     string
	Lease      time.Duration
	Proof      string // what the probe showed
}

// Prepare makes the fresh attempt of a heartbeat batch visible without calling
// anything; the bridge goes on with NoteArmPending.
func (m *Machine) Prepare(ctx context.Context, actor thole.Actor, laneID string, batch thole.BatchID) (Parcel, error) {
	var out Parcel
	err := m.update(ctx, "prepare", actor, func(o *op) error {
		b, a, err := o.prepare(laneID, batch)
		if err != nil {
			return err
		}
		out, err = o.parcel(b, a)
		return err
	})
	return out, err
}

// parcel settles the lane and returns what an attempt carries.
func (o *op) parcel(b *Batch, a *Attempt) (Parcel, error) {
	if err := o.settle(); err != nil {
		return Parcel{}, err
	}
	jobs, err := o.contents(b.ID)
	return Parcel{Lane: *o.lane, Batch: *b, Attempt: *a, Jobs: jobs}, err
}

// prepare returns the prepared attempt of a batch that is next in its fair order,
// making a fresh one with a new generation where there is none.
func (o *op) prepare(laneID string, batch thole.BatchID) (*Batch, *Attempt, error) {
	if err := o.onLane(laneID); err != nil {
		return nil, nil, err
	}
	b, err := o.HeadBatch(laneID)
	if err != nil {
		return nil, nil, err
	}
	open, err := o.OpenAttempt(laneID)
	if err != nil {
		return nil, nil, err
	}
	// Time may have passed since the candidate was seen: ask the scheduler again.
	if b == nil || b.ID != batch || o.lane.Ticket == 0 || decide(o.lane, b, open, o.now, o.m.limits).kind != stepReady {
		return nil, nil, thole.Errorf(thole.CodeConflict, "batch %s is not next for its thread", batch)
	}
	if open != nil && open.State == thole.AttemptPrepared {
		return b, open, nil
	}
	if open != nil { // a heartbeat whose cooldown is over
		if err := o.move(open, MoveSupersede, map[string]string{"by_generation": strconv.FormatInt(o.lane.Generation+1, 10)}); err != nil {
			return nil, nil, err
		}
	}
	s, err := o.Advance(b.Target, Advance{Revisions: 1})
	if err != nil {
		return nil, nil, err
	}
	o.lane.Generation++
	a := &Attempt{
		ID: thole.AttemptID(o.id()), LaneID: laneID, Batch: b.ID, Generation: o.lane.Generation, State: thole.AttemptPrepared,
		SnapshotRevision: s.Revision, CreatedAt: o.now, UpdatedAt: o.now, Arm: Arm{AutomationIs: thole.AutomationUnknown},
	}
	if err := o.InsertAttempt(a); err != nil {
		return nil, nil, err
	}
	if b.State == thole.BatchCooldown {
		b.State = thole.BatchMaterialized
	}
	b.HeadAttempt, b.Generation, b.UpdatedAt = a.ID, a.Generation, o.now
	if err := o.UpdateBatch(b); err != nil {
		return nil, nil, err
	}
	return b, a, o.log("attempt.prepare", Audit{Batch: b.ID, Attempt: a.ID, Generation: a.Generation, To: string(thole.AttemptPrepared), Proof: map[string]string{
		"snapshot_revision": strconv.FormatInt(s.Revision, 10),
	}})
}

func (o *op) contents(batch thole.BatchID) ([]ParcelJob, error) {
	jobs, err := o.JobsOf(batch)
	if err != nil {
		return nil, err
	}
	return nest(o.Tx, jobs)
}

func nest(tx Tx, jobs []Job) ([]ParcelJob, error) {
	out := make([]ParcelJob, 0, len(jobs))
	for _, j := range jobs {
		children, err := tx.Children(j.ID)
		if err != nil {
			return nil, err
		}
		inside := children[:0]
		for _, c := range children {
			if c.State.Deliverable() {
				inside = append(inside, c)
			}
		}
		nested, err := nest(tx, inside)
		if err != nil {
			return nil, err
		}
		out = append(out, ParcelJob{Job: j, Children: nested})
	}
	return out, nil
}

// onAttempt locks the lane of a fence and gives fn the attempt and its batch. A
// fence that does not match is stale: nothing changes and stale is true.
func (m *Machine) onAttempt(ctx context.Context, name string, actor thole.Actor, f Fence, fn func(*op, *Batch, *Attempt) (stale bool, err error)) (stale bool, err error) {
	err = m.update(ctx, name, actor, func(o *op) error {
		stale = true
		lane, err := o.LockLane(f.LaneID)
		if err != nil || lane == nil {
			return err
		}
		o.lane, o.now = lane, o.Now()
		a, err := o.Attempt(f.Attempt)
		if err != nil || !f.matches(a) {
			return err
		}
		b, err := o.Batch(a.Batch)
		if err != nil {
			return err
		}
		stale, err = fn(o, b, a)
		if err != nil || stale {
			return err
		}
		return o.settle()
	})
	return stale, err
}
