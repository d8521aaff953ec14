package delivery_test

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// print is the fingerprint of the installation that tests have.
const print = "fingerprint"

func installation(c thole.Capability) delivery.RepairInstallation {
	return delivery.RepairInstallation{
		Transport: thole.TransportFile, Fingerprint: print,
		Capabilities: delivery.Capabilities{Read: c, Artifact: thole.CapabilityUnknown, Writeback: c},
	}
}

func binding(thread string) delivery.RepairBinding {
	return delivery.RepairBinding{
		Owner: thole.DefaultOwner, Address: address(thread), Automation: "auto-" + thread, Bridge: "bridge thread",
		Seen: thole.AutomationUnclear, SeenOld: thole.AutomationUnclear,
	}
}

// bind makes a thread's results wake its heartbeat.
func (r *rig) bind(thread string) {
	r.t.Helper()
	_, _, err := r.RepairInstallation(context.Background(), actor, installation(thole.CapabilityValidated))
	r.ok(err)
	_, err = r.RepairBinding(context.Background(), actor, binding(thread))
	r.ok(err)
}

func (r *rig) binding(thread string) delivery.Binding {
	r.t.Helper()
	all, err := r.Bindings(context.Background(), thole.LocalUser)
	r.ok(err)
	for _, b := range all {
		if string(b.Thread) == thread {
			return b
		}
	}
	r.t.Fatal("no binding of " + thread)
	return delivery.Binding{}
}

func crossing(thread string, f delivery.Fence) delivery.Cross {
	return delivery.Cross{
		Thread: thole.ThreadID(thread), Batch: f.Batch, Attempt: f.Attempt, Gen: f.Generation, Revision: f.Revision, Observed: print,
		Compose: func(p delivery.Parcel) string { return "content of " + string(p.Batch.ID) },
	}
}

// token is what the heartbeat of a thread was armed with.
func (r *rig) token(thread string) delivery.Cross {
	r.t.Helper()
	a := r.head(thread).Attempts
	return crossing(thread, a[len(a)-1].Fence())
}

// armed takes the head of a Desktop thread all the way to a heartbeat that is armed.
func (r *rig) armed(thread string) delivery.Attempt {
	r.t.Helper()
	v := r.head(thread)
	p, err := r.Prepare(context.Background(), actor, v.Lane.ID, v.Batch.ID)
	r.ok(err)
	lease, _, err := r.NoteArmPending(context.Background(), actor, p.Attempt.Fence(), "req", print)
	r.ok(err)
	_, stale, err := r.NoteArm(context.Background(), actor, p.Attempt.Fence(), "req", lease.ID)
	r.ok(err)
	if stale {
		r.t.Fatal("the arming was stale")
	}
	return p.Attempt
}
