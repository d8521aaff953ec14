package daemon

import (
	"context"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/inbox"
)

// Desktop answers the methods of the Desktop channel: what an operator says of the
// installation and of bindings, and what the bridge of the app and woken threads call.
type Desktop struct {
	// Enabled: without it nothing is armed, and only what is known is shown.
	Enabled bool
	Machine *delivery.Machine
	Inbox   inbox.Inbox
	// Look reads a heartbeat's own file.
	Look func(codexHome, automation string) (status thole.AutomationStatus, kind string, target thole.ThreadID, err error)
	// Fingerprint is of the installation as it is now.
	Fingerprint func() string
	// Compose writes what a woken thread reads.
	Compose func(delivery.Parcel) string
	// Sweep does everything that is overdue.
	Sweep func(ctx context.Context) error
	Now   func() time.Time

	publishing sync.Mutex // one revision after the other
}

// Methods lists what d answers.
func (d *Desktop) Methods() map[string]Method {
	return map[string]Method{
		wire.DesktopInstallation:       method(d.installation),
		wire.DesktopInstallationRepair: enabled(d, d.repairInstallation),
		wire.DesktopBindingRepair:      enabled(d, d.repairBinding),
		wire.DesktopBindingUnbind:      method(d.unbind),
		wire.DesktopBindingList:        method(d.bindings),
		wire.DesktopPreflight:          enabled(d, d.preflight),
		wire.DesktopPeek:               enabled(d, d.peek),
		wire.DesktopNoteArmPending:     enabled(d, d.noteArmPending),
		wire.DesktopNoteArm:            enabled(d, d.noteArm),
		wire.DesktopReconcile:          method(d.reconcile),
		wire.DesktopNotePaused:         method(d.notePaused),
		wire.DesktopCross:              enabled(d, d.cross),
	}
}

func enabled[P, R any](d *Desktop, f func(context.Context, thole.Actor, P) (R, error)) Method {
	return method(func(ctx context.Context, actor thole.Actor, p P) (r R, err error) {
		if !d.Enabled {
			return r, thole.Errorf(thole.CodeUnsupported, "the Desktop channel is off").
				WithHint("it was never seen with a real app; [desktop] enabled = true in config.toml turns it on")
		}
		return f(ctx, actor, p)
	})
}

// Automation is what the file of a binding's heartbeat shows.
func (d *Desktop) Automation(b delivery.Binding) thole.AutomationStatus {
	status, _, _, err := d.Look(b.Endpoint, b.Automation)
	if err != nil {
		return thole.AutomationUnclear
	}
	return status
}

func (d *Desktop) installation(ctx context.Context, _ thole.Actor, _ struct{}) (wire.DesktopInstall, error) {
	in, err := d.Machine.Installation(ctx)
	if err != nil {
		return wire.DesktopInstall{}, err
	}
	return d.installationView(in), nil
}

func (d *Desktop) installationView(in delivery.Installation) wire.DesktopInstall {
	seen := d.Fingerprint()
	c := in.Capabilities
	return wire.DesktopInstall{
		Enabled: d.Enabled, ReadTransport: string(in.Transport), Generation: in.Generation, DesktopCapabilities: capabilitiesView(c), Fingerprint: in.Fingerprint,
		Observed: seen, ValidatedAt: in.ValidatedAt, UpdatedBy: in.UpdatedBy,
		Valid: d.Enabled && seen != "" && seen == in.Fingerprint && c.Read == thole.CapabilityValidated && c.Writeback == thole.CapabilityValidated,
	}
}

func capabilitiesView(c delivery.Capabilities) wire.DesktopCapabilities {
	return wire.DesktopCapabilities{ReadTransport: string(c.Read), ArtifactRead: string(c.Artifact), Writeback: string(c.Writeback)}
}

func (d *Desktop) repairInstallation(ctx context.Context, actor thole.Actor, p wire.DesktopInstallationParams) (wire.DesktopInstall, error) {
	d.publishing.Lock()
	defer d.publishing.Unlock()
	// The inbox's directory is a part of what is validated: it is there before.
	have, err := d.Machine.Installation(ctx)
	if err != nil {
		return wire.DesktopInstall{}, err
	}
	if err := d.Inbox.PublishInstallation(d.installationView(have)); err != nil {
		return wire.DesktopInstall{}, err
	}
	seen := d.Fingerprint()
	if seen == "" {
		return wire.DesktopInstall{}, thole.Errorf(thole.CodeUnavailable, "repair installation: no codex program is found, so nothing can be validated").
			WithHint("set providers.codex to the program that the app runs")
	}
	unknown := func(c string) thole.Capability {
		if c == "" {
			return thole.CapabilityUnknown
		}
		return thole.Capability(c)
	}
	in, changed, err := d.Machine.RepairInstallation(ctx, actor, delivery.RepairInstallation{
		Transport: thole.ReadTransport(p.ReadTransport), Fingerprint: seen,
		Capabilities: delivery.Capabilities{Read: unknown(p.DesktopCapabilities.ReadTransport), Artifact: unknown(p.ArtifactRead), Writeback: unknown(p.Writeback)},
	})
	if err != nil {
		return wire.DesktopInstall{}, err
	}
	v := d.installationView(in)
	if err := d.Inbox.PublishInstallation(v); err != nil {
		return wire.DesktopInstall{}, err
	}
	v.Changed = changed
	return v, nil
}

func (d *Desktop) repairBinding(ctx context.Context, actor thole.Actor, p wire.DesktopBindingParams) (wire.DesktopBound, error) {
	status, kind, target, err := d.Look(p.Endpoint, p.AutomationID)
	switch {
	case err != nil:
		return wire.DesktopBound{}, thole.Errorf(thole.CodeNotFound, "repair binding: %w", err).WithHint("make a paused heartbeat for the thread in the app first")
	case status == thole.AutomationGone:
		return wire.DesktopBound{}, thole.Errorf(thole.CodeNotFound, "repair binding: no automation %s in %s", p.AutomationID, p.Endpoint).
			WithHint("make a paused heartbeat for the thread in the app first")
	case kind != "heartbeat" || string(target) != p.SourceThreadID:
		return wire.DesktopBound{}, thole.Errorf(thole.CodeConflict, "repair binding: automation %s is a %q of thread %q", p.AutomationID, kind, target).
			WithHint("a binding needs a heartbeat whose target is the thread itself")
	}
	owner := thole.DefaultOwner
	owner.User = actor.User
	addr := delivery.Address{User: actor.User, Endpoint: p.Endpoint, Thread: thole.ThreadID(p.SourceThreadID)}
	old := thole.AutomationUnclear
	all, err := d.Machine.Bindings(ctx, actor.User)
	if err != nil {
		return wire.DesktopBound{}, err
	}
	for _, b := range all {
		if b.Address == addr && b.Automation != p.AutomationID {
			old = d.Automation(b)
		}
	}
	out, err := d.Machine.RepairBinding(ctx, actor, delivery.RepairBinding{
		Owner: owner, Address: addr, Automation: p.AutomationID, Bridge: thole.ThreadID(p.BridgeThreadID), Seen: status, SeenOld: old,
	})
	if err != nil {
		return wire.DesktopBound{}, err
	}
	v := d.bindingView(&out.Installation, out.Binding)
	v.Changed, v.Replaced, v.OldQuiesced, v.FreshGeneration = out.Changed, out.Replaced, out.OldQuiesced, out.FreshGeneration
	held, err := d.Machine.Batches(ctx, actor, delivery.BatchFilter{Thread: addr.Thread, Held: true})
	for _, b := range held {
		if b.Batch.HeldFor == thole.HoldNoChannel && b.Lane.Endpoint == addr.Endpoint {
			v.Next = append(v.Next, "thole batch deliver "+string(b.Batch.ID)+"   # it was held for want of a binding")
		}
	}
	return v, err
}

func (d *Desktop) bindingView(in *delivery.Installation, b delivery.Binding) wire.DesktopBound {
	v := wire.DesktopBound{
		BindingID: b.ID, SourceThreadID: string(b.Thread), Endpoint: b.Endpoint, State: string(b.State), DegradedFor: b.DegradedFor, AutomationID: b.Automation,
		BridgeThreadID: string(b.Bridge), ReadTransport: string(b.Transport), Generation: b.TransportGeneration, DesktopCapabilities: capabilitiesView(b.Capabilities),
		Fingerprint: b.Fingerprint, ArmedGeneration: b.Armed, QuiescedAt: b.QuiescedAt, PauseNotBefore: b.PauseNotBefore, PauseDeadline: b.PauseDeadline,
		CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt, LastVerifiedAt: b.VerifiedAt, Problem: in.Unfit(&b, d.Fingerprint()),
	}
	if !d.Enabled {
		v.Problem = "the Desktop channel is off"
	}
	return v
}

func (d *Desktop) unbind(ctx context.Context, actor thole.Actor, p wire.DesktopBindingParams) (wire.DesktopBound, error) {
	if p.Delete {
		return wire.DesktopBound{}, thole.Errorf(thole.CodeUnsupported, "unbind: only the app can delete an automation").
			WithHint("delete it there, and call this with --delete-automation false")
	}
	lane, err := d.lane(ctx, actor, p.SourceThreadID, p.Endpoint)
	if err != nil {
		return wire.DesktopBound{}, err
	}
	b, changed, err := d.Machine.Unbind(ctx, actor, lane)
	if err != nil {
		return wire.DesktopBound{}, err
	}
	in, err := d.Machine.Installation(ctx)
	v := d.bindingView(&in, b)
	v.Changed = changed
	return v, err
}

// lane is the one of a bound thread.
func (d *Desktop) lane(ctx context.Context, actor thole.Actor, thread, endpoint string) (string, error) {
	all, err := d.Machine.Bindings(ctx, actor.User)
	if err != nil {
		return "", err
	}
	found := ""
	for _, b := range all {
		if string(b.Thread) != thread || endpoint != "" && b.Endpoint != endpoint {
			continue
		}
		if found != "" {
			return "", thole.Errorf(thole.CodeConflict, "thread %s has bindings at several endpoints", thread).WithHint("pass --endpoint")
		}
		found = b.LaneID
	}
	if found == "" {
		return "", thole.Errorf(thole.CodeNotFound, "thread %s is bound to no heartbeat", thread).WithHint("thole desktop binding list")
	}
	return found, nil
}

func (d *Desktop) bindings(ctx context.Context, actor thole.Actor, _ struct{}) ([]wire.DesktopBound, error) {
	in, err := d.Machine.Installation(ctx)
	if err != nil {
		return nil, err
	}
	all, err := d.Machine.Bindings(ctx, actor.User)
	out := make([]wire.DesktopBound, 0, len(all))
	for _, b := range all {
		out = append(out, d.bindingView(&in, b))
	}
	return out, err
}
