package delivery

import (
	"context"
	"maps"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// Acceptance is the proof that a call was accepted as exactly one turn.
type Acceptance struct {
	Turn       thole.TurnID
	Attachment thole.AttachmentID
	Epoch      int64
	Evidence   string // "response", "marker on the event stream", …
}

// Accept settles a call as accepted: the attempt is followed from now on, and
// only this counts as a delivery attempt. Repeating it with the same turn is not
// stale and changes nothing.
func (m *Machine) Accept(ctx context.Context, actor thole.Actor, f Fence, p Acceptance) (stale bool, err error) {
	if p.Turn == "" {
		return false, thole.Errorf(thole.CodeInternal, "accept: no turn; without one the acceptance is unknown")
	}
	return m.onAttempt(ctx, "accept", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if f.Request != a.RPC.RequestID {
			return true, nil
		}
		if a.State == thole.AttemptCooldown && a.Observation.Turn == p.Turn {
			return false, nil
		}
		if a.State != thole.AttemptAcceptPending {
			return true, nil
		}
		a.RPC.State = thole.RPCAccepted
		a.Observation = Observation{
			Turn: p.Turn, Attachment: p.Attachment, Epoch: p.Epoch, AcceptedAt: o.now,
			State: thole.ObservationTracking, Deadline: o.now.Add(m.limits.Observation),
		}
		if err := o.counted(b, a, MoveAccept, map[string]string{
			"request": f.Request, "turn": string(p.Turn), "attachment": string(p.Attachment),
			"epoch": strconv.FormatInt(p.Epoch, 10), "evidence": p.Evidence,
		}); err != nil {
			return false, err
		}
		return false, nil
	})
}

// counted is the one place where a channel's acceptance is accounted for.
func (o *op) counted(b *Batch, a *Attempt, mv Move, proof map[string]string) error {
	if err := o.move(a, mv, proof); err != nil {
		return err
	}
	o.lane.NotBefore = o.now.Add(o.m.limits.MinInterval)
	o.lane.Failures, o.lane.EligibleAfter = 0, time.Time{}
	b.AttemptCount++
	b.State, b.LastAttemptAt, b.NotBefore, b.UpdatedAt = thole.BatchCooldown, o.now, o.lane.NotBefore, o.now
	if err := o.UpdateBatch(b); err != nil {
		return err
	}
	_, err := o.Advance(b.Target, Advance{Served: a.Ticket})
	return err
}

// Reject settles a call as proven not accepted: the attempt is prepared again, no
// attempt is counted, and the lane queues after the others after a pause.
func (m *Machine) Reject(ctx context.Context, actor thole.Actor, f Fence, why string, retryAfter time.Duration) (stale bool, err error) {
	return m.onAttempt(ctx, "reject", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if f.Request != a.RPC.RequestID || a.State != thole.AttemptAcceptPending {
			return true, nil
		}
		a.RPC.State, a.DeliveryDeadline, a.Observation = thole.RPCRejected, time.Time{}, Observation{}
		a.Holder, a.LeaseUntil = "", time.Time{}
		o.rejoin(retryAfter)
		return false, o.move(a, MoveReject, map[string]string{"request": f.Request, "why": why, "eligible_after": stamp(o.lane.EligibleAfter)})
	})
}

// Refuse settles a call as proven not accepted, for a reason that another try would find
// again: its batch is held, in the same step, and no attempt is counted.
func (m *Machine) Refuse(ctx context.Context, actor thole.Actor, f Fence, why string, heldFor thole.HoldReason) (stale bool, err error) {
	return m.onAttempt(ctx, "refuse", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if f.Request != a.RPC.RequestID || a.State != thole.AttemptAcceptPending {
			return true, nil
		}
		a.RPC.State, a.DeliveryDeadline, a.Observation = thole.RPCRejected, time.Time{}, Observation{}
		return false, o.fail(b, a, heldFor, map[string]string{"request": f.Request, "why": why})
	})
}

// Unsettled records what is known of a call whose answer is missing. The attempt
// keeps its barrier and its channel goes on looking for proof.
func (m *Machine) Unsettled(ctx context.Context, actor thole.Actor, f Fence, why string) (stale bool, err error) {
	return m.onAttempt(ctx, "unsettled", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if f.Request != a.RPC.RequestID || a.State != thole.AttemptAcceptPending {
			return true, nil
		}
		return false, o.log("attempt.unsettled", Audit{Batch: a.Batch, Attempt: a.ID, Generation: a.Generation, Proof: map[string]string{
			"request": f.Request, "why": why,
		}})
	})
}

// Unknown settles a call that can be proven neither way any more: the attempt is
// abandoned and the batch held. It is never sent again without a human.
func (m *Machine) Unknown(ctx context.Context, actor thole.Actor, f Fence, why string) (stale bool, err error) {
	return m.onAttempt(ctx, "acceptance_unknown", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if f.Request != a.RPC.RequestID || a.State != thole.AttemptAcceptPending {
			return true, nil
		}
		a.RPC.State = thole.RPCUnknown
		return false, o.fail(b, a, thole.HoldAcceptanceUnknown, map[string]string{"request": f.Request, "why": why})
	})
}

// fail abandons an attempt that may have had effects and holds its batch.
func (o *op) fail(b *Batch, a *Attempt, heldFor thole.HoldReason, proof map[string]string) error {
	if err := o.move(a, MoveAbandon, maps.Clone(proof)); err != nil {
		return err
	}
	return o.hold(b, heldFor, proof)
}

// Defer records that a candidate could not even be tried (its thread is busy, no
// channel is attached): it queues after the others after a pause.
func (m *Machine) Defer(ctx context.Context, actor thole.Actor, laneID string, batch thole.BatchID, why string, retryAfter time.Duration) error {
	return m.onHead(ctx, "defer", actor, laneID, batch, false, func(o *op, b *Batch) error {
		if o.lane.Ticket == 0 {
			return nil
		}
		o.rejoin(retryAfter)
		return o.log("batch.defer", Audit{Batch: b.ID, Proof: map[string]string{"why": why, "eligible_after": stamp(o.lane.EligibleAfter)}})
	})
}

// Hold takes the first batch out of automatic delivery before it was tried, for
// example because its policy is not allowed.
func (m *Machine) Hold(ctx context.Context, actor thole.Actor, laneID string, batch thole.BatchID, why thole.HoldReason, proof map[string]string) error {
	return m.onHead(ctx, "hold", actor, laneID, batch, false, func(o *op, b *Batch) error {
		open, err := o.OpenAttempt(laneID)
		if err != nil {
			return err
		}
		if open.Tracked() || open != nil && open.State == thole.AttemptCooldown {
			return thole.Errorf(thole.CodeConflict, "hold batch %s: it is on its way", batch)
		}
		if open != nil {
			if err := o.move(open, MoveAbandon, map[string]string{"why": string(why)}); err != nil {
				return err
			}
		}
		return o.hold(b, why, proof)
	})
}

// onHead locks a lane and gives fn its first batch if that is the expected one, or one
// that is aside if that is asked for; otherwise it does nothing.
func (m *Machine) onHead(ctx context.Context, name string, actor thole.Actor, laneID string, batch thole.BatchID, aside bool, fn func(*op, *Batch) error) error {
	return m.update(ctx, name, actor, func(o *op) error {
		if err := o.onLane(laneID); err != nil {
			return err
		}
		b, err := o.HeadBatch(laneID)
		if err != nil {
			return err
		}
		if b == nil || b.ID != batch {
			if b, err = o.aside(batch); err != nil || b == nil || !aside {
				return err
			}
		}
		if err := fn(o, b); err != nil {
			return err
		}
		return o.settle()
	})
}

// aside is a batch of the locked lane that is aside, nil if it is not.
func (o *op) aside(id thole.BatchID) (*Batch, error) {
	b, err := o.Batch(id)
	if err != nil || b == nil || b.LaneID != o.lane.ID || b.State == thole.BatchClosed || !b.Aside() {
		return nil, err
	}
	return b, nil
}
