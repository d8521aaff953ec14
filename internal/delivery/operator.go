package delivery

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// CloseHead lets a human end the first batch of a thread. expect, if set, must be
// that batch: between looking and closing another one may have become first; it may
// also name a batch that is aside. A batch that may still start a turn is not closed.
func (m *Machine) CloseHead(ctx context.Context, actor thole.Actor, laneID string, expect thole.BatchID, reason thole.CloseReason) (Batch, error) {
	if !reason.Operator() {
		return Batch{}, thole.Errorf(thole.CodeInvalid, "close head: %q is not an operator's reason", reason).
			WithHint("use operator_closed_unconfirmed, operator_confirmed_delivery or cancelled")
	}
	var out Batch
	may, err := m.reach(ctx, actor, authz.RunThread)
	if err != nil {
		return out, err
	}
	err = m.update(ctx, "close_head", actor, func(o *op) error {
		if err := o.onLane(laneID); err != nil {
			return err
		}
		if !may.to(o.lane.Owner) {
			return thole.Errorf(thole.CodeNotFound, "no deliveries for this thread")
		}
		b, err := o.HeadBatch(laneID)
		if err != nil {
			return err
		}
		if expect != "" && (b == nil || b.ID != expect) {
			aside, err := o.aside(expect)
			if err != nil {
				return err
			}
			if aside != nil {
				b = aside
			}
		}
		if b == nil {
			return thole.Errorf(thole.CodeNotFound, "close head: no open batch for this thread").
				WithHint("one that no channel reaches is not first: thole batch list --held shows it; name it with --batch-id")
		}
		if expect != "" && b.ID != expect {
			return thole.Errorf(thole.CodeConflict, "close head: the first batch is %s, not %s", b.ID, expect)
		}
		open, err := o.OpenAttempt(laneID)
		if err != nil {
			return err
		}
		if open != nil && open.Batch == b.ID && open.State == thole.AttemptAcceptPending {
			return thole.Errorf(thole.CodeBusy, "close head: batch %s was sent at %s and may still start a turn", b.ID, stamp(open.RPC.StartedAt)).
				WithHint("%s", unsettledHint(b, open))
		}
		if open != nil && open.Batch == b.ID && open.State == thole.AttemptArmPending {
			return thole.Errorf(thole.CodeBusy, "close head: a heartbeat is being armed for batch %s until %s", b.ID, stamp(open.Arm.Deadline)).
				WithHint("thole desktop reconcile --source-thread-id %s", o.lane.Thread)
		}
		if err := o.closeBatch(b, reason, map[string]string{"operator": string(actor.User), "via": actor.Via}); err != nil {
			return err
		}
		out = *b
		return o.settle()
	})
	return out, err
}

// Release lets a person send a held batch after all. What is known of its attempts does
// not change: where one may have reached the thread, the result may come twice, and
// anyway says that the person knows. Repeating it changes nothing.
func (m *Machine) Release(ctx context.Context, actor thole.Actor, id thole.BatchID, anyway bool) (Batch, error) {
	var out Batch
	may, err := m.reach(ctx, actor, authz.RunThread)
	if err != nil {
		return out, err
	}
	err = m.update(ctx, "release_batch", actor, func(o *op) error {
		b, err := o.Tx.Batch(id)
		if err != nil {
			return err
		}
		none := thole.Errorf(thole.CodeNotFound, "no batch %s", id).WithHint("thole batch list --held shows those that wait for a human")
		if b == nil {
			return none
		}
		if err := o.onLane(b.LaneID); err != nil {
			return err
		}
		if !may.to(o.lane.Owner) {
			return none
		}
		if b, err = o.Batch(id); err != nil {
			return err
		}
		switch {
		case b.State == thole.BatchClosed:
			return thole.Errorf(thole.CodeConflict, "deliver batch: %s is closed: %s", id, b.CloseReason)
		case b.Replay == thole.ReplayAutomatic && b.ReleasedBy == actor.User:
			out = *b
			return nil
		case b.Replay == thole.ReplayAutomatic:
			return thole.Errorf(thole.CodeConflict, "deliver batch: %s is not held; it goes by itself", id)
		}
		attempts, err := o.AttemptsOf(id)
		if err != nil {
			return err
		}
		doubt := ""
		for i := range attempts {
			if attempts[i].mayHaveArrived() {
				doubt = string(attempts[i].ID)
			}
		}
		if doubt != "" && !anyway {
			return thole.Errorf(thole.CodeHeld, "deliver batch: %s may have reached its thread already (%s)", id, b.HeldFor).
				WithHint("look at the thread first; --anyway sends it again, and the agent may read it twice")
		}
		proof := map[string]string{"operator": string(actor.User), "via": actor.Via, "held_for": string(b.HeldFor), "in_doubt": doubt}
		if b.Aside() { // others went on: it queues after them, with a window of its own from then on
			b.Seq, b.State, b.WindowEndsAt = o.lane.NextSeq, thole.BatchQueued, time.Time{}
			o.lane.NextSeq++
		} else {
			b.WindowEndsAt = later(b.WindowEndsAt, o.now.Add(m.limits.ManualWindow))
		}
		b.Replay, b.HeldFor, b.UpdatedAt = thole.ReplayAutomatic, "", o.now
		b.ReleasedBy, b.ReleasedGeneration = actor.User, b.Generation
		b.MaxAttempts = max(b.MaxAttempts, b.AttemptCount+1)
		o.lane.Failures, o.lane.EligibleAfter = 0, time.Time{}
		if err := o.UpdateBatch(b); err != nil {
			return err
		}
		err = o.log("batch.release", Audit{
			Batch: b.ID, Attempt: b.HeadAttempt, Generation: b.Generation,
			From: string(thole.ReplayManual), To: string(thole.ReplayAutomatic), Proof: proof,
		})
		if err != nil {
			return err
		}
		out = *b
		return o.settle()
	})
	return out, err
}

// mayHaveArrived reports whether an attempt may have been read by its thread.
func (a *Attempt) mayHaveArrived() bool {
	return a.RPC.State == thole.RPCUnknown || a.RPC.State == thole.RPCAccepted || !a.Arm.PendingSince.IsZero()
}

// FindLane resolves a thread id of the actor to its lane. With the same thread id
// at several endpoints the caller has to say which.
func (m *Machine) FindLane(ctx context.Context, actor thole.Actor, thread thole.ThreadID, endpoint string) (Lane, error) {
	var lanes []Lane
	err := m.store.View(ctx, func(tx Tx) (err error) {
		lanes, err = tx.Lanes(actor.User, thread)
		return err
	})
	if err != nil {
		return Lane{}, err
	}
	if endpoint != "" {
		for _, l := range lanes {
			if l.Endpoint == endpoint {
				return l, nil
			}
		}
		lanes = nil
	}
	switch len(lanes) {
	case 0:
		return Lane{}, thole.Errorf(thole.CodeNotFound, "no deliveries for thread %s", thread)
	case 1:
		return lanes[0], nil
	}
	e := thole.Errorf(thole.CodeConflict, "thread %s has deliveries at %d endpoints", thread, len(lanes))
	return Lane{}, e.WithHint("pass --endpoint, for example --endpoint %q", lanes[0].Endpoint)
}
