package delivery

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

// ArmLease lets one bridge run arm one attempt.
type ArmLease struct {
	ID       string
	Deadline time.Time
	Fresh    bool // false: the same request got its own lease back
}

// NoteArmPending is the barrier before a heartbeat is armed. One request wins;
// the same request gets the same lease again, another one gets thole.CodeBusy and
// learns nothing of the lease.
func (m *Machine) NoteArmPending(ctx context.Context, actor thole.Actor, f Fence, bridgeRequest, binding string) (lease ArmLease, stale bool, err error) {
	if bridgeRequest == "" {
		return ArmLease{}, false, thole.Errorf(thole.CodeInvalid, "note arm pending: no bridge request id")
	}
	stale, err = m.onAttempt(ctx, "note_arm_pending", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if a.State == thole.AttemptArmPending {
			if a.Arm.BridgeRequest != bridgeRequest {
				return false, thole.Errorf(thole.CodeBusy, "another bridge request is arming this attempt")
			}
			lease = ArmLease{ID: a.Arm.Lease, Deadline: a.Arm.LeaseDeadline}
			return false, nil
		}
		open, err := o.OpenAttempt(a.LaneID)
		if err != nil {
			return false, err
		}
		if a.State != thole.AttemptPrepared || decide(o.lane, b, open, o.now, m.limits).kind != stepReady {
			return true, nil
		}
		a.Ticket = o.lane.Ticket
		a.Arm.BridgeRequest, a.Arm.Lease, a.Arm.Binding = bridgeRequest, o.id(), binding
		a.Arm.LeaseDeadline, a.Arm.PendingSince, a.Arm.Deadline = o.now.Add(m.limits.ArmLease), o.now, o.now.Add(m.limits.ArmTimeout)
		lease = ArmLease{ID: a.Arm.Lease, Deadline: a.Arm.LeaseDeadline, Fresh: true}
		return false, o.move(a, MoveBeginArm, map[string]string{"bridge_request": bridgeRequest, "deadline": stamp(a.Arm.Deadline)})
	})
	return lease, stale, err
}

// NoteArm settles an arming as done: the channel accepted the batch. Repeating it
// changes and counts nothing.
func (m *Machine) NoteArm(ctx context.Context, actor thole.Actor, f Fence, bridgeRequest, lease, automation string) (stale bool, err error) {
	return m.onAttempt(ctx, "note_arm", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if a.Arm.BridgeRequest == "" || a.Arm.BridgeRequest != bridgeRequest || a.Arm.Lease != lease {
			return true, nil
		}
		if a.State == thole.AttemptCooldown {
			return false, nil
		}
		if a.State != thole.AttemptArmPending {
			return true, nil
		}
		a.CooldownUntil = o.now.Add(m.limits.Cooldown)
		if automation != "" {
			a.Arm.Automation, a.Arm.AutomationIs = automation, thole.AutomationObserved
		}
		return false, o.counted(b, a, MoveArm, map[string]string{"bridge_request": bridgeRequest, "lease": lease, "cooldown_until": stamp(a.CooldownUntil)})
	})
}

// ArmRefused settles an arming that is proven never to have taken effect: the
// batch stays automatic and may be tried again with a new generation.
func (m *Machine) ArmRefused(ctx context.Context, actor thole.Actor, f Fence, evidence string) (stale bool, err error) {
	return m.onAttempt(ctx, "arm_refused", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if a.State != thole.AttemptArmPending {
			return true, nil
		}
		o.rejoin(0)
		return false, o.move(a, MoveAbandon, map[string]string{"evidence": evidence, "eligible_after": stamp(o.lane.EligibleAfter)})
	})
}

// ArmUnknown settles an arming that can be proven neither way: held.
func (m *Machine) ArmUnknown(ctx context.Context, actor thole.Actor, f Fence, why string) (stale bool, err error) {
	return m.onAttempt(ctx, "arm_unknown", actor, f, func(o *op, b *Batch, a *Attempt) (bool, error) {
		if a.State != thole.AttemptArmPending {
			return true, nil
		}
		return false, o.fail(b, a, thole.HoldArmUnknown, map[string]string{"why": why})
	})
}

// Block sets or clears a safety item of the thread's host. While one is set the
// lane is in no fair order; windows and deadlines run on.
func (m *Machine) Block(ctx context.Context, actor thole.Actor, laneID, reason string) error {
	return m.update(ctx, "block_lane", actor, func(o *op) error {
		if err := o.onLane(laneID); err != nil {
			return err
		}
		if o.lane.Blocked == reason {
			return nil
		}
		from := o.lane.Blocked
		o.lane.Blocked = reason
		if err := o.log("lane.block", Audit{From: from, To: reason}); err != nil {
			return err
		}
		return o.settle()
	})
}
