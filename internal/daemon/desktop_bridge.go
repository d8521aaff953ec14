package daemon

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
)

// preflight begins a wake-up of a bridge: what is overdue is done first, then what awaits
// threads is published under a revision of its own. A bridge that gets no answer has no
// revision, and so reads nothing.
func (d *Desktop) preflight(ctx context.Context, _ thole.Actor, p wire.DesktopPreflightParams) (wire.DesktopSnapshot, error) {
	if p.BridgeThreadID == "" || p.PreflightID == "" {
		return wire.DesktopSnapshot{}, thole.Errorf(thole.CodeInvalid, "bridge preflight: a bridge thread and an id of the wake-up are required")
	}
	if err := d.Sweep(ctx); err != nil {
		return wire.DesktopSnapshot{}, err
	}
	d.publishing.Lock()
	defer d.publishing.Unlock()
	seen := d.Fingerprint()
	if err := d.Machine.PrepareHeartbeats(ctx, seen); err != nil {
		return wire.DesktopSnapshot{}, err
	}
	in, err := d.Machine.Inbox(ctx, seen, true)
	if err != nil {
		return wire.DesktopSnapshot{}, err
	}
	s := d.snapshot(in, "")
	s.BridgeThreadID, s.PreflightID = p.BridgeThreadID, p.PreflightID
	if err := d.Inbox.PublishInstallation(s.Installation); err != nil {
		return wire.DesktopSnapshot{}, err
	}
	if err := d.Inbox.Publish(s, d.Now()); err != nil {
		return wire.DesktopSnapshot{}, err
	}
	return s, nil
}

// peek shows what awaits the threads of a bridge, and changes nothing.
func (d *Desktop) peek(ctx context.Context, _ thole.Actor, p wire.DesktopPreflightParams) (wire.DesktopSnapshot, error) {
	if p.BridgeThreadID == "" {
		return wire.DesktopSnapshot{}, thole.Errorf(thole.CodeInvalid, "no bridge thread").WithHint("pass --bridge-thread-id")
	}
	in, err := d.Machine.Inbox(ctx, d.Fingerprint(), false)
	if err != nil {
		return wire.DesktopSnapshot{}, err
	}
	s := d.snapshot(in, p.BridgeThreadID)
	s.BridgeThreadID = p.BridgeThreadID
	return s, nil
}

// snapshot is the inbox in the words of the wire; bridge, if not "", selects its threads.
func (d *Desktop) snapshot(in delivery.Inbox, bridge string) wire.DesktopSnapshot {
	s := wire.DesktopSnapshot{
		SnapshotRevision: in.Revision, ManifestPath: d.Inbox.Manifest(), PublishedAt: in.At, Installation: d.installationView(in.Installation),
		Ready: []wire.DesktopReady{}, Arming: []wire.DesktopArming{}, PauseDue: []wire.DesktopPause{},
	}
	for _, r := range in.Ready {
		if bridge == "" || string(r.Binding.Bridge) == bridge {
			s.Ready = append(s.Ready, wire.DesktopReady{
				DesktopToken: token(r.Fence, r.Thread), BridgeThreadID: string(r.Binding.Bridge), SnapshotPath: d.Inbox.SnapshotPath(in.Revision),
				RequiresArtifactRead: r.ArtifactRead,
			})
		}
	}
	for _, a := range in.Arming {
		if bridge == "" || string(a.Binding.Bridge) == bridge {
			s.Arming = append(s.Arming, wire.DesktopArming{
				DesktopToken: token(a.Fence, a.Thread), BridgeThreadID: string(a.Binding.Bridge), AutomationID: a.Binding.Automation, Deadline: a.Deadline,
			})
		}
	}
	for _, b := range in.PauseDue {
		if bridge == "" || string(b.Bridge) == bridge {
			s.PauseDue = append(s.PauseDue, wire.DesktopPause{
				SourceThreadID: string(b.Thread), BridgeThreadID: string(b.Bridge), AutomationID: b.Automation, ArmedGeneration: b.Armed,
				PauseNotBefore: b.PauseNotBefore, PauseDeadline: b.PauseDeadline,
			})
		}
	}
	return s
}

func token(f delivery.Fence, thread thole.ThreadID) wire.DesktopToken {
	return wire.DesktopToken{
		SourceThreadID: string(thread), BatchID: string(f.Batch), AttemptID: string(f.Attempt), Generation: f.Generation, SnapshotRevision: f.Revision,
	}
}

// attempt is the one that a bridge names: its whole fence is that of the thread's attempt of
// that id and generation, if there is one.
func (d *Desktop) attempt(ctx context.Context, actor thole.Actor, p wire.DesktopArmParams) (f delivery.Fence, b delivery.Binding, err error) {
	lane, err := d.lane(ctx, actor, p.SourceThreadID, p.Endpoint)
	if err != nil {
		return f, b, err
	}
	all, err := d.Machine.Bindings(ctx, actor.User)
	for _, have := range all {
		if have.LaneID == lane {
			b = have
		}
	}
	if err != nil {
		return f, b, err
	}
	f = delivery.Fence{LaneID: lane, Attempt: thole.AttemptID(p.AttemptID), Generation: p.Generation, Revision: p.SnapshotRevision, Batch: thole.BatchID(p.BatchID)}
	if f.Batch == "" {
		f.Batch, err = d.Machine.BatchOf(ctx, f.Attempt)
	}
	return f, b, err
}

func answer(o thole.DesktopOutcome, p wire.DesktopArmParams, b delivery.Binding) wire.DesktopAnswer {
	return wire.DesktopAnswer{Outcome: string(o), DesktopToken: p.DesktopToken, AutomationID: b.Automation, BridgeRequest: p.BridgeRequest}
}

func (d *Desktop) noteArmPending(ctx context.Context, actor thole.Actor, p wire.DesktopArmParams) (wire.DesktopAnswer, error) {
	f, b, err := d.attempt(ctx, actor, p)
	if err != nil {
		return wire.DesktopAnswer{}, err
	}
	lease, stale, err := d.Machine.NoteArmPending(ctx, actor, f, p.BridgeRequest, d.Fingerprint())
	switch {
	case thole.CodeOf(err) == thole.CodeBusy:
		return answer(thole.OutcomeLeaseHeld, p, b), nil
	case thole.CodeOf(err) == thole.CodeConflict:
		a := answer(thole.OutcomeInvalid, p, b)
		a.Why = err.Error()
		return a, nil
	case err != nil:
		return wire.DesktopAnswer{}, err
	case stale:
		return answer(thole.OutcomeStale, p, b), nil
	}
	a := answer(thole.OutcomeArmPending, p, b)
	a.Lease, a.LeaseDeadline = lease.ID, lease.Deadline
	return a, nil
}

func (d *Desktop) noteArm(ctx context.Context, actor thole.Actor, p wire.DesktopArmParams) (wire.DesktopAnswer, error) {
	f, b, err := d.attempt(ctx, actor, p)
	if err != nil {
		return wire.DesktopAnswer{}, err
	}
	again, stale, err := d.Machine.NoteArm(ctx, actor, f, p.BridgeRequest, p.Lease)
	switch {
	case err != nil:
		return wire.DesktopAnswer{}, err
	case stale:
		return answer(thole.OutcomeStale, p, b), nil
	case again:
		return answer(thole.OutcomeAlreadyArmed, p, b), nil
	}
	return answer(thole.OutcomeArmed, p, b), nil
}

// reconcile settles an arming that nobody reported the end of, as far as its heartbeat's
// file proves it. Without an attempt id it is about the one that is being armed.
func (d *Desktop) reconcile(ctx context.Context, actor thole.Actor, p wire.DesktopArmParams) (wire.DesktopAnswer, error) {
	if p.AttemptID == "" {
		lane, err := d.lane(ctx, actor, p.SourceThreadID, p.Endpoint)
		if err != nil {
			return wire.DesktopAnswer{}, err
		}
		v, err := d.Machine.InspectHead(ctx, actor, lane)
		if err != nil {
			return wire.DesktopAnswer{}, err
		}
		if n := len(v.Attempts); n > 0 {
			p.AttemptID, p.Generation = string(v.Attempts[n-1].ID), v.Attempts[n-1].Generation
		}
	}
	f, b, err := d.attempt(ctx, actor, p)
	if err != nil {
		return wire.DesktopAnswer{}, err
	}
	seen := d.Automation(b)
	out, err := d.Machine.Reconcile(ctx, actor, f, p.BridgeRequest, seen)
	a := answer(out, p, b)
	a.Why = "the heartbeat is " + string(seen)
	return a, err
}

func (d *Desktop) notePaused(ctx context.Context, actor thole.Actor, p wire.DesktopArmParams) (wire.DesktopAnswer, error) {
	_, b, err := d.attempt(ctx, actor, p)
	if err != nil {
		return wire.DesktopAnswer{}, err
	}
	seen := d.Automation(b)
	out, err := d.Machine.NotePaused(ctx, actor, b.LaneID, p.Generation, seen)
	a := answer(out, p, b)
	a.Why = "the heartbeat is " + string(seen)
	return a, err
}

// cross hands the content of a batch to the thread that its heartbeat woke, once.
func (d *Desktop) cross(ctx context.Context, actor thole.Actor, p wire.DesktopArmParams) (wire.DesktopAnswer, error) {
	out, err := d.Machine.Cross(ctx, actor, delivery.Cross{
		Thread: thole.ThreadID(p.SourceThreadID), Batch: thole.BatchID(p.BatchID), Attempt: thole.AttemptID(p.AttemptID), Gen: p.Generation,
		Revision: p.SnapshotRevision, Observed: d.Fingerprint(), Compose: d.Compose,
	})
	if err != nil {
		return wire.DesktopAnswer{}, err
	}
	a := answer(out.Outcome, p, delivery.Binding{})
	a.Why, a.Payload = out.Why, out.Payload
	if out.Outcome == thole.OutcomeCrossedOnce {
		a.Why += "; thole batch inspect --batch-id " + p.BatchID + " shows it to an operator"
	}
	return a, nil
}
