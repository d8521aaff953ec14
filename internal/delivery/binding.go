package delivery

import (
	"context"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// Why a binding is degraded.
const (
	degradedInstallation = "installation_changed"
	degradedArm          = "arm_unknown"
	degradedPause        = "not_paused_in_time"
)

// blockedArmed keeps a thread out of the fair order while its heartbeat may fire.
const blockedArmed = "heartbeat_armed"

// Binding is the heartbeat that wakes a thread. Its copy of the installation's state is from
// its last repair.
type Binding struct {
	ID     string
	LaneID string
	Address
	State       thole.BindingState
	DegradedFor string
	Automation  string
	Bridge      thole.ThreadID

	Transport           thole.ReadTransport
	TransportGeneration int64
	Capabilities        Capabilities
	Fingerprint         string

	// Armed is the generation that the heartbeat was armed for, 0 for none. Until it is
	// quiesced no other one is armed.
	Armed          int64
	QuiescedAt     time.Time
	PauseNotBefore time.Time
	PauseDeadline  time.Time

	CreatedAt  time.Time
	UpdatedAt  time.Time
	VerifiedAt time.Time
	Version    int64
}

// Quiet reports whether the heartbeat is proven not to fire for an older generation.
func (b *Binding) Quiet() bool { return b.Armed == 0 || !b.QuiescedAt.IsZero() }

// RepairBinding is an operator's word about a thread's heartbeat.
type RepairBinding struct {
	Owner      thole.Owner
	Address    Address
	Automation string
	Bridge     thole.ThreadID
	// Seen is what the present automation's file shows, SeenOld that of the one it replaces.
	Seen, SeenOld thole.AutomationStatus
}

// Repaired is what a repair did.
type Repaired struct {
	Binding      Binding
	Installation Installation
	Changed      bool
	// Replaced is the automation that was bound before, OldQuiesced whether it is proven
	// not to fire. A fresh generation is forced then: an old wake-up finds nothing.
	Replaced        string
	OldQuiesced     bool
	FreshGeneration bool
}

// RepairBinding binds a thread to its heartbeat, or brings a degraded binding back. It copies
// the installation's state and never writes it. The same again changes nothing.
func (m *Machine) RepairBinding(ctx context.Context, actor thole.Actor, p RepairBinding) (out Repaired, err error) {
	if p.Automation == "" || p.Bridge == "" || p.Address.Thread == "" || p.Address.User == "" {
		return out, thole.Errorf(thole.CodeInvalid, "repair binding: a thread, its automation and the bridge's thread are required")
	}
	if err := checkText("repair binding", p.Automation, string(p.Bridge), string(p.Address.Thread), p.Address.Endpoint); err != nil {
		return out, err
	}
	err = m.update(ctx, "repair_binding", actor, func(o *op) error {
		out = Repaired{}
		if err := o.ensureLane(p.Owner, p.Address); err != nil {
			return err
		}
		in, b, err := o.host()
		if err != nil {
			return err
		}
		out.Installation = *in
		if in.Generation == 0 {
			return thole.Errorf(thole.CodeConflict, "repair binding: nothing is known of the Desktop installation").
				WithHint("thole desktop installation-state repair --read-transport direct_file_read")
		}
		fresh := b == nil
		if fresh {
			b = &Binding{ID: o.id(), LaneID: o.lane.ID, Address: p.Address, State: thole.BindingUnbound, CreatedAt: o.now}
		}
		quieted := b.Armed != 0 && b.QuiescedAt.IsZero() && b.Automation == p.Automation && p.Seen.Quiet()
		if b.State == thole.BindingBound && b.Automation == p.Automation && b.Bridge == p.Bridge && b.mirrors(in) && !quieted {
			out.Binding = *b
			return nil
		}
		out.Changed = true
		was := b.State
		if b.Automation != "" && b.Automation != p.Automation {
			out.Replaced, out.OldQuiesced = b.Automation, b.Quiet() || p.SeenOld.Quiet()
			b.Armed, b.QuiescedAt, b.PauseNotBefore, b.PauseDeadline = 0, time.Time{}, time.Time{}, time.Time{}
		}
		b.State, b.DegradedFor, b.Automation, b.Bridge = thole.BindingBound, "", p.Automation, p.Bridge
		b.Transport, b.TransportGeneration, b.Capabilities, b.Fingerprint = in.Transport, in.Generation, in.Capabilities, in.Fingerprint
		b.UpdatedAt, b.VerifiedAt = o.now, o.now
		if quieted {
			b.QuiescedAt = o.now
		} else if !b.Quiet() { // the person has the usual time again
			b.pauseFrom(o.now, m.limits)
		}
		if out.Replaced != "" || was == thole.BindingDegraded {
			if out.FreshGeneration, err = o.abandonHeartbeat("binding repaired"); err != nil {
				return err
			}
		}
		if fresh {
			err = o.InsertBinding(b)
		} else {
			err = o.UpdateBinding(b)
		}
		if err != nil {
			return err
		}
		err = o.log("binding.repair", Audit{From: string(was), To: string(b.State), Proof: map[string]string{
			"automation": b.Automation, "bridge": string(b.Bridge), "replaced": out.Replaced, "old_quiesced": strconv.FormatBool(out.Replaced != "" && out.OldQuiesced),
			"read_transport_generation": strconv.FormatInt(b.TransportGeneration, 10), "armed_generation": strconv.FormatInt(b.Armed, 10),
		}})
		if err != nil {
			return err
		}
		out.Binding = *b
		return o.guard(b)
	})
	return out, err
}

func (b *Binding) mirrors(in *Installation) bool {
	return b.Transport == in.Transport && b.TransportGeneration == in.Generation && b.Capabilities == in.Capabilities && b.Fingerprint == in.Fingerprint
}

// pauseFrom sets when the heartbeat may and must be paused: it fires within one of its
// periods and the scheduler's delay.
func (b *Binding) pauseFrom(now time.Time, l Limits) {
	b.PauseNotBefore = now.Add(l.PauseDelay)
	b.PauseDeadline = b.PauseNotBefore.Add(l.PauseTime)
}

// Unbind takes a thread's heartbeat away: nothing is armed for it any more.
func (m *Machine) Unbind(ctx context.Context, actor thole.Actor, laneID string) (out Binding, changed bool, err error) {
	err = m.onBinding(ctx, "unbind", actor, laneID, func(o *op, _ *Installation, b *Binding) error {
		changed = b.State != thole.BindingUnbound
		if !changed {
			out = *b
			return nil
		}
		was := b.State
		b.State, b.DegradedFor, b.UpdatedAt = thole.BindingUnbound, "", o.now
		b.Armed, b.QuiescedAt, b.PauseNotBefore, b.PauseDeadline = 0, time.Time{}, time.Time{}, time.Time{}
		if _, err := o.abandonHeartbeat("unbound"); err != nil {
			return err
		}
		if err := o.UpdateBinding(b); err != nil {
			return err
		}
		if err := o.log("binding.unbind", Audit{From: string(was), To: string(b.State), Proof: map[string]string{"automation": b.Automation}}); err != nil {
			return err
		}
		out = *b
		return o.guard(b)
	})
	return out, changed, err
}

// Bindings lists the bindings of a user.
func (m *Machine) Bindings(ctx context.Context, user thole.UserID) (all []Binding, err error) {
	err = m.store.View(ctx, func(tx Tx) error {
		all, err = tx.Bindings(user)
		return err
	})
	return all, err
}

// onBinding gives fn the locked binding of a lane.
func (m *Machine) onBinding(ctx context.Context, name string, actor thole.Actor, laneID string, fn func(*op, *Installation, *Binding) error) error {
	return m.update(ctx, name, actor, func(o *op) error {
		if err := o.onLane(laneID); err != nil {
			return err
		}
		in, b, err := o.host()
		if err != nil {
			return err
		}
		if b == nil || b.User != actor.User && actor != thole.SystemActor {
			return thole.Errorf(thole.CodeNotFound, "thread %s is bound to no heartbeat", o.lane.Thread).WithHint("thole desktop binding list")
		}
		return fn(o, in, b)
	})
}

// host locks what the lane's heartbeat depends on; the binding is nil if there is none.
func (o *op) host() (*Installation, *Binding, error) {
	in, err := o.LockInstallation()
	if err != nil {
		return nil, nil, err
	}
	b, err := o.LockBinding(o.lane.ID)
	return in, b, err
}

// guard records on the lane whether its heartbeat may fire for an older generation, and
// settles it. A binding that is not bound wakes nobody: its old generations find nothing.
func (o *op) guard(b *Binding) error {
	why := ""
	if b.State == thole.BindingBound && !b.Quiet() {
		why = blockedArmed
	}
	if from := o.lane.Blocked; from != why {
		o.lane.Blocked = why
		if err := o.log("lane.block", Audit{From: from, To: why, Generation: b.Armed}); err != nil {
			return err
		}
	}
	return o.settle()
}

// abandonHeartbeat ends an open attempt of a heartbeat, so that the next one has a new
// generation. Whatever the old one wakes finds nothing, so its batch stays automatic.
func (o *op) abandonHeartbeat(why string) (bool, error) {
	a, err := o.OpenAttempt(o.lane.ID)
	if err != nil || a == nil {
		return false, err
	}
	b, err := o.Batch(a.Batch)
	if err != nil || b.Target != thole.TargetDesktop || a.RPC.Kind != "" {
		return false, err
	}
	if b.State == thole.BatchCooldown {
		b.State, b.UpdatedAt = thole.BatchMaterialized, o.now
		if err := o.UpdateBatch(b); err != nil {
			return false, err
		}
	}
	o.rejoin(0)
	return true, o.move(a, MoveAbandon, map[string]string{"why": why})
}

// degrade takes a binding's automatic use away until a person repairs it.
func (o *op) degrade(b *Binding, why string) error {
	if b == nil || b.State != thole.BindingBound {
		return nil
	}
	b.State, b.DegradedFor, b.UpdatedAt = thole.BindingDegraded, why, o.now
	if err := o.UpdateBinding(b); err != nil {
		return err
	}
	if o.lane.Blocked != "" {
		from := o.lane.Blocked
		o.lane.Blocked = ""
		if err := o.log("lane.block", Audit{From: from, Generation: b.Armed}); err != nil {
			return err
		}
	}
	o.AfterCommit(o.m.held)
	return o.log("binding.degrade", Audit{From: string(thole.BindingBound), To: string(thole.BindingDegraded), Generation: b.Armed, Proof: map[string]string{"why": why, "automation": b.Automation}})
}

// quiesce records that the heartbeat is proven not to fire for the generation it was armed for.
func (o *op) quiesce(b *Binding, seen thole.AutomationStatus) error {
	b.QuiescedAt, b.UpdatedAt, b.VerifiedAt = o.now, o.now, o.now
	if err := o.UpdateBinding(b); err != nil {
		return err
	}
	if err := o.log("binding.quiesce", Audit{Generation: b.Armed, Proof: map[string]string{"automation": b.Automation, "seen": string(seen)}}); err != nil {
		return err
	}
	return o.guard(b)
}

// NotePaused records that the heartbeat was paused for the generation it was armed for. seen
// is what its own file shows; nothing else proves it. A cleanup of an older generation
// changes nothing.
func (m *Machine) NotePaused(ctx context.Context, actor thole.Actor, laneID string, generation int64, seen thole.AutomationStatus) (out thole.DesktopOutcome, err error) {
	err = m.onBinding(ctx, "note_paused", actor, laneID, func(o *op, _ *Installation, b *Binding) error {
		switch {
		case b.State == thole.BindingUnbound || b.Armed != generation || generation == 0:
			out = thole.OutcomeStale
		case !b.QuiescedAt.IsZero():
			out = thole.OutcomeUnchanged
		case o.now.Before(b.PauseNotBefore):
			out = thole.OutcomeTooEarly
		case !seen.Quiet():
			out = thole.OutcomeNotQuiet
		default:
			out = thole.OutcomeQuiesced
			return o.quiesce(b, seen)
		}
		return nil
	})
	return out, err
}

// sweepBindings brings bindings and their lanes together: what a repair of the installation
// degraded, heartbeats that are found paused, and those that nobody paused in time.
func (m *Machine) sweepBindings(ctx context.Context) (moved int, err error) {
	var all []Binding
	if err := m.store.View(ctx, func(tx Tx) (err error) {
		all, err = tx.RestlessBindings(tx.Now(), far(tx.Now(), m.limits.PauseDelay))
		return err
	}); err != nil {
		return 0, err
	}
	for i := range all {
		seen := thole.AutomationUnclear
		if all[i].State == thole.BindingBound {
			seen = m.automation(all[i])
		}
		did := false
		err := m.onBinding(ctx, "sweep_binding", thole.SystemActor, all[i].LaneID, func(o *op, _ *Installation, b *Binding) (err error) {
			did, err = o.tend(b, all[i].Version, seen)
			return err
		})
		if err != nil {
			return moved, err
		}
		if did {
			moved++
		}
	}
	return moved, nil
}

// tend is the sweep of one binding. What was seen counts only for the binding as it was then.
func (o *op) tend(b *Binding, version int64, seen thole.AutomationStatus) (bool, error) {
	switch {
	case b.State != thole.BindingBound:
		if b.State == thole.BindingUnbound {
			return false, nil
		}
		abandoned, err := o.abandonHeartbeat("binding degraded: " + b.DegradedFor)
		if err != nil || !abandoned && o.lane.Blocked == "" {
			return false, err
		}
		return true, o.guard(b)
	case b.Quiet() || b.Version != version:
		return false, nil
	case b.PauseNotBefore.After(o.now.Add(o.m.limits.PauseDelay)): // the clock went back
		b.pauseFrom(o.now, o.m.limits)
		return true, o.UpdateBinding(b)
	case o.now.Before(b.PauseNotBefore):
		return false, nil
	case seen.Quiet():
		return true, o.quiesce(b, seen)
	case o.now.Before(b.PauseDeadline.Add(o.m.limits.PauseRetry)):
		return false, nil
	}
	if err := o.degrade(b, degradedPause); err != nil {
		return false, err
	}
	if _, err := o.abandonHeartbeat("binding degraded: " + degradedPause); err != nil {
		return false, err
	}
	return true, o.settle()
}
