package delivery

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// Sighting is something seen on the one event stream an accepted turn is followed
// on.
type Sighting struct {
	Turn       thole.TurnID
	Attachment thole.AttachmentID
	Epoch      int64
	Event      thole.TurnEvent
	Evidence   string
}

// Observe records a sighting of the accepted turn. Completion closes the batch as
// delivered only while it is first, automatic, tracked and in time; any other end
// of the turn holds it. What comes too late, or from another stream, is kept as
// evidence in the ledger and moves nothing.
func (m *Machine) Observe(ctx context.Context, actor thole.Actor, f Fence, s Sighting) (stale bool, err error) {
	return m.onAttempt(ctx, "observe", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		ob := &a.Observation
		proof := map[string]string{
			"turn": string(s.Turn), "event": string(s.Event), "attachment": string(s.Attachment),
			"epoch": strconv.FormatInt(s.Epoch, 10), "evidence": s.Evidence,
		}
		if ob.Turn == "" || s.Turn != ob.Turn {
			return true, nil
		}
		head, err := o.HeadBatch(b.LaneID)
		if err != nil {
			return false, err
		}
		inTime := !o.now.After(ob.Deadline)
		tracked := a.State == thole.AttemptCooldown && ob.State == thole.ObservationTracking &&
			s.Attachment == ob.Attachment && s.Epoch == ob.Epoch &&
			head != nil && head.ID == b.ID && b.Replay == thole.ReplayAutomatic
		if !tracked || !inTime {
			// Nothing but the ledger changes, and settling would count as change.
			known, err := o.recorded(b.ID, a.ID, "attempt.late_observation", proof)
			if err != nil || known {
				return true, err
			}
			return true, o.log("attempt.late_observation", Audit{Batch: b.ID, Attempt: a.ID, Generation: a.Generation, Proof: proof})
		}
		ob.LastEvent, ob.LastEventAt, a.UpdatedAt = s.Event, o.now, o.now
		switch {
		case s.Event == thole.TurnEventCompleted:
			if err := o.move(a, MoveClose, proof); err != nil {
				return false, err
			}
			return false, o.closeBatch(b, thole.CloseDelivered, proof)
		case s.Event.Terminal():
			return false, o.fail(b, a, thole.HoldReason(s.Event), proof)
		}
		if err := o.UpdateAttempt(a); err != nil {
			return false, err
		}
		return false, o.log("attempt.observe", Audit{Batch: b.ID, Attempt: a.ID, Generation: a.Generation, Proof: proof})
	})
}

// recorded reports whether the ledger has this row already: a stream that is read again
// shows the same event again, and that is no news.
func (o *op) recorded(batch thole.BatchID, attempt thole.AttemptID, event string, proof map[string]string) (bool, error) {
	rows, err := o.Audits(AuditFilter{Batch: batch})
	return slices.ContainsFunc(rows, func(r Audit) bool {
		return r.Attempt == attempt && r.Event == event && maps.Equal(r.Proof, proof)
	}), err
}

// Lost records that the stream an accepted turn is followed on can no longer be
// proven continuous. The batch is held; it is never sent again on a guess.
func (m *Machine) Lost(ctx context.Context, actor thole.Actor, f Fence, why string) (stale bool, err error) {
	return m.onAttempt(ctx, "observation_lost", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if a.State != thole.AttemptCooldown || a.Observation.State != thole.ObservationTracking {
			return true, nil
		}
		a.Observation.State = thole.ObservationLost
		return false, o.fail(b, a, thole.HoldObservationLost, map[string]string{"turn": string(a.Observation.Turn), "why": why})
	})
}

// Adopt gives an open attempt to a driver, which must then follow it. It fails
// (false) while another holder's lease runs, unless the caller proves by the
// home's lock that no other holder can be alive.
func (m *Machine) Adopt(ctx context.Context, actor thole.Actor, f Fence, holder string, lease time.Duration, sole bool) (bool, error) {
	took := false
	stale, err := m.onAttempt(ctx, "adopt", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if !a.Tracked() || a.State == thole.AttemptArmPending {
			return true, nil
		}
		if !sole && a.Holder != holder && a.Holder != "" && o.now.Before(a.LeaseUntil) {
			return true, nil
		}
		took = true
		if a.Holder != holder {
			if err := o.log("attempt.adopt", Audit{Batch: a.Batch, Attempt: a.ID, Generation: a.Generation, From: a.Holder, To: holder}); err != nil {
				return false, err
			}
		}
		a.Holder, a.LeaseUntil = holder, o.now.Add(lease)
		return false, o.UpdateAttempt(a)
	})
	return took && !stale, err
}
