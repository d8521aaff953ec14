package delivery

import (
	"context"

	thole "github.com/tholehq/thole"
)

// CloseHead lets a human end the first batch of a thread. expect, if set, must be
// that batch: between looking and closing another one may have become first. A
// batch that may still start a turn is not closed.
func (m *Machine) CloseHead(ctx context.Context, actor thole.Actor, laneID string, expect thole.BatchID, reason thole.CloseReason) (Batch, error) {
	if !reason.Operator() {
		return Batch{}, thole.Errorf(thole.CodeInvalid, "close head: %q is not an operator's reason", reason).
			WithHint("use operator_closed_unconfirmed, operator_confirmed_delivery or cancelled")
	}
	var out Batch
	err := m.update(ctx, "close_head", actor, func(o *op) error {
		if err := o.onLane(laneID); err != nil {
			return err
		}
		if o.lane.User != actor.User {
			return thole.Errorf(thole.CodeNotFound, "no deliveries for this thread")
		}
		b, err := o.HeadBatch(laneID)
		if err != nil {
			return err
		}
		if b == nil {
			return thole.Errorf(thole.CodeNotFound, "close head: no open batch for this thread")
		}
		if expect != "" && b.ID != expect {
			return thole.Errorf(thole.CodeConflict, "close head: the first batch is %s, not %s", b.ID, expect)
		}
		open, err := o.OpenAttempt(laneID)
		if err != nil {
			return err
		}
		if open != nil && open.State == thole.AttemptAcceptPending {
			return thole.Errorf(thole.CodeBusy, "close head: batch %s was sent at %s and may still start a turn", b.ID, stamp(open.RPC.StartedAt)).
				WithHint("%s", unsettledHint(b, open))
		}
		if err := o.closeBatch(b, reason, map[string]string{"operator": string(actor.User), "via": actor.Via}); err != nil {
			return err
		}
		out = *b
		return o.settle()
	})
	return out, err
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
