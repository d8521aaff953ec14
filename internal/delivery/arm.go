package delivery

import (
	"context"
	"strconv"
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
// learns nothing of the lease. observed is the installation's fingerprint now; a binding
// that is unfit, or whose heartbeat may still fire, gets thole.CodeConflict.
func (m *Machine) NoteArmPending(ctx context.Context, actor thole.Actor, f Fence, bridgeRequest, observed string) (lease ArmLease, stale bool, err error) {
	if bridgeRequest == "" {
		return ArmLease{}, false, thole.Errorf(thole.CodeInvalid, "note arm pending: no bridge request id")
	}
	stale, err = m.onAttempt(ctx, "note_arm_pending", actor, f, func(o *op, b *Batch, a *Attempt) (stale bool, err error) {
		lease, stale, err = o.armPending(b, a, bridgeRequest, observed)
		return stale, err
	})
	return lease, stale, err
}

func (o *op) armPending(b *Batch, a *Attempt, bridgeRequest, observed string) (lease ArmLease, stale bool, err error) {
	if a.State == thole.AttemptArmPending {
		if a.Arm.BridgeRequest != bridgeRequest {
			return lease, false, thole.Errorf(thole.CodeBusy, "another bridge request is arming this attempt").
				WithHint("after its lease: thole desktop reconcile --source-thread-id %s", o.lane.Thread)
		}
		return ArmLease{ID: a.Arm.Lease, Deadline: a.Arm.LeaseDeadline}, false, nil
	}
	open, err := o.OpenAttempt(a.LaneID)
	if err != nil {
		return lease, false, err
	}
	if a.State != thole.AttemptPrepared || b.Target != thole.TargetDesktop || decide(o.lane, b, open, o.now, o.m.limits).kind != stepReady {
		return lease, true, nil
	}
	in, binding, err := o.host()
	if err != nil {
		return lease, false, err
	}
	if why := in.Unfit(binding, observed); why != "" {
		return lease, false, thole.Errorf(thole.CodeConflict, "note arm pending: %s", why).WithHint("thole desktop binding list")
	}
	if !binding.Quiet() { // the lane says so, too; this is the row that decides
		return lease, true, nil
	}
	a.Ticket = o.lane.Ticket
	a.Arm.BridgeRequest, a.Arm.Lease, a.Arm.Binding, a.Arm.Automation = bridgeRequest, o.id(), binding.ID, binding.Automation
	a.Arm.LeaseDeadline, a.Arm.PendingSince, a.Arm.Deadline = o.now.Add(o.m.limits.ArmLease), o.now, o.now.Add(o.m.limits.ArmTimeout)
	lease = ArmLease{ID: a.Arm.Lease, Deadline: a.Arm.LeaseDeadline, Fresh: true}
	return lease, false, o.move(a, MoveBeginArm, map[string]string{
		"bridge_request": bridgeRequest, "deadline": stamp(a.Arm.Deadline), "binding": binding.ID, "automation": binding.Automation,
	})
}

// NoteArm settles an arming as done: the channel accepted the batch. In the same step the
// binding's heartbeat counts as armed for this generation, and no other one is armed until
// it is quiesced. Repeating it changes and counts nothing.
func (m *Machine) NoteArm(ctx context.Context, actor thole.Actor, f Fence, bridgeRequest, lease string) (again, stale bool, err error) {
	stale, err = m.onAttempt(ctx, "note_arm", actor, f, func(o *op, b *Batch, a *Attempt) (stale bool, err error) {
		if a.Arm.Lease != lease {
			return true, nil
		}
		again, stale, err = o.arm(b, a, bridgeRequest)
		return stale, err
	})
	return again && !stale, stale, err
}

func (o *op) arm(b *Batch, a *Attempt, bridgeRequest string) (again, stale bool, err error) {
	if a.Arm.BridgeRequest == "" || a.Arm.BridgeRequest != bridgeRequest {
		return false, true, nil
	}
	if a.State == thole.AttemptCooldown {
		return true, false, nil
	}
	if a.State != thole.AttemptArmPending {
		return false, true, nil
	}
	_, binding, err := o.host()
	if err != nil {
		return false, false, err
	}
	if binding == nil || binding.ID != a.Arm.Binding || binding.State != thole.BindingBound || !binding.Quiet() {
		return false, true, nil // the sweep of its binding abandons it
	}
	binding.Armed, binding.QuiescedAt, binding.UpdatedAt = a.Generation, time.Time{}, o.now
	binding.pauseFrom(o.now, o.m.limits)
	if err := o.UpdateBinding(binding); err != nil {
		return false, false, err
	}
	a.CooldownUntil, a.Arm.AutomationIs = o.now.Add(o.m.limits.Cooldown), thole.AutomationObserved
	o.lane.Blocked = blockedArmed
	return false, false, o.counted(b, a, MoveArm, map[string]string{
		"bridge_request": bridgeRequest, "lease": a.Arm.Lease, "cooldown_until": stamp(a.CooldownUntil),
		"armed_generation": strconv.FormatInt(binding.Armed, 10), "pause_not_before": stamp(binding.PauseNotBefore), "pause_deadline": stamp(binding.PauseDeadline),
	})
}

// Reconcile looks at an arming whose end nobody reported, with what its heartbeat's own file
// shows. Before its lease is over only the request that has it may ask.
//
//   - it was reported after all: armed
//   - the heartbeat is paused or gone: abandoned, and the batch stays automatic, because what
//     an abandoned attempt wakes finds nothing
//   - neither, and its deadline is over: abandoned, the batch held and the binding degraded
func (m *Machine) Reconcile(ctx context.Context, actor thole.Actor, f Fence, bridgeRequest string, seen thole.AutomationStatus) (out thole.DesktopOutcome, err error) {
	stale, err := m.onAttempt(ctx, "reconcile_arm", actor, f, func(o *op, b *Batch, a *Attempt) (stale bool, err error) {
		out, err = o.reconcile(b, a, bridgeRequest, seen)
		return out == thole.OutcomeStale || out == thole.OutcomeArmed || out == thole.OutcomeLeaseHeld || out == thole.OutcomeArmPending, err
	})
	if stale && out == "" {
		out = thole.OutcomeStale
	}
	return out, err
}

func (o *op) reconcile(b *Batch, a *Attempt, bridgeRequest string, seen thole.AutomationStatus) (thole.DesktopOutcome, error) {
	switch {
	case a.State == thole.AttemptCooldown:
		return thole.OutcomeArmed, nil
	case b.CloseReason == thole.CloseHandoffRecorded:
		return thole.OutcomeCrossedOnce, nil
	case a.State != thole.AttemptArmPending:
		return thole.OutcomeStale, nil
	case o.now.Before(a.Arm.LeaseDeadline) && a.Arm.BridgeRequest != bridgeRequest:
		return thole.OutcomeLeaseHeld, nil
	case seen.Quiet():
		o.rejoin(0)
		return thole.OutcomeAbandoned, o.move(a, MoveAbandon, map[string]string{
			"evidence": "heartbeat is " + string(seen), "automation": a.Arm.Automation, "eligible_after": stamp(o.lane.EligibleAfter),
		})
	case o.now.Before(a.Arm.Deadline):
		return thole.OutcomeArmPending, nil
	}
	_, binding, err := o.host()
	if err != nil {
		return "", err
	}
	if err := o.degrade(binding, degradedArm); err != nil {
		return "", err
	}
	return thole.OutcomeAbandoned, o.fail(b, a, thole.HoldArmUnknown, map[string]string{"why": "no proof before the arming deadline", "seen": string(seen)})
}
