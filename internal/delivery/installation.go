package delivery

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

// Capabilities are what was found out about a Desktop installation.
type Capabilities struct{ Read, Artifact, Writeback thole.Capability }

func (c Capabilities) valid() bool {
	return c.Read.Valid() && c.Artifact.Valid() && c.Writeback.Valid()
}

func (c Capabilities) any(v thole.Capability) bool {
	return c.Read == v || c.Artifact == v || c.Writeback == v
}

// Installation is the one Desktop app of a home. Only its repair writes capabilities, and
// each change of it is a new generation.
type Installation struct {
	Name         string
	Transport    thole.ReadTransport
	Generation   int64
	Capabilities Capabilities
	// Fingerprint is of the app, of our helpers and of the files' modes when it was
	// validated. Another one than is seen now validates nothing.
	Fingerprint string
	ValidatedAt time.Time
	UpdatedBy   string
	UpdatedAt   time.Time
	Version     int64
}

// RepairInstallation is an operator's word about the installation: all of it.
type RepairInstallation struct {
	Transport    thole.ReadTransport
	Capabilities Capabilities
	Fingerprint  string // as it is seen now
}

// RepairInstallation replaces what is known of the installation. The same again changes
// nothing. Every binding that was made for another state of it is degraded in the same step.
func (m *Machine) RepairInstallation(ctx context.Context, actor thole.Actor, p RepairInstallation) (in Installation, changed bool, err error) {
	switch {
	case !p.Transport.Valid():
		return in, false, thole.Errorf(thole.CodeInvalid, "repair installation: unknown read transport %q", p.Transport).WithHint("use direct_file_read or helper_cli_read")
	case !p.Capabilities.valid():
		return in, false, thole.Errorf(thole.CodeInvalid, "repair installation: a capability is unknown, validated or unavailable")
	case p.Fingerprint == "":
		return in, false, thole.Errorf(thole.CodeInvalid, "repair installation: the installation has no fingerprint")
	}
	err = m.update(ctx, "repair_installation", actor, func(o *op) error {
		o.now, changed = o.Now(), false
		have, err := o.LockInstallation()
		if err != nil {
			return err
		}
		if have.Transport == p.Transport && have.Capabilities == p.Capabilities && have.Fingerprint == p.Fingerprint {
			in = *have
			return nil
		}
		changed = true
		have.Transport, have.Capabilities, have.Fingerprint = p.Transport, p.Capabilities, p.Fingerprint
		have.Generation++
		have.ValidatedAt, have.UpdatedBy, have.UpdatedAt = time.Time{}, string(actor.User), o.now
		if p.Capabilities.any(thole.CapabilityValidated) {
			have.ValidatedAt = o.now
		}
		if err := o.UpdateInstallation(have); err != nil {
			return err
		}
		in = *have
		return o.DegradeOtherBindings(*have, degradedInstallation, o.now)
	})
	if err == nil {
		_, err = m.sweepBindings(ctx)
	}
	return in, changed, err
}

// Installation returns what is known of the installation.
func (m *Machine) Installation(ctx context.Context) (in Installation, err error) {
	err = m.store.View(ctx, func(tx Tx) error {
		have, err := tx.Installation()
		if err == nil {
			in = *have
		}
		return err
	})
	return in, err
}

// Unfit says why nothing is armed for a binding, "" if something is. observed is the
// installation's fingerprint now.
func (in *Installation) Unfit(b *Binding, observed string) string {
	switch {
	case b == nil || b.State == thole.BindingUnbound:
		return "the thread is bound to no heartbeat"
	case b.State == thole.BindingDegraded:
		return "the binding is degraded: " + b.DegradedFor
	case b.Transport != in.Transport || b.TransportGeneration != in.Generation || b.Fingerprint != in.Fingerprint:
		return "the binding was made for another state of the installation"
	case observed == "" || in.Fingerprint != observed:
		return "the Desktop installation is not the one that was validated"
	case in.Capabilities.Read != thole.CapabilityValidated || in.Capabilities.Writeback != thole.CapabilityValidated:
		return "the Desktop installation is not validated"
	}
	return ""
}
