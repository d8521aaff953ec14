package thole

import "slices"

// JobState is where outside work stands. A job leaves running once and never
// returns to it.
type JobState string

const (
	JobRunning   JobState = "running"
	JobReady     JobState = "ready"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Terminal reports whether the work is over.
func (s JobState) Terminal() bool { return s != JobRunning }

// Deliverable reports whether the job joins its thread's queue: a failure is a
// result like any other, a cancellation is not.
func (s JobState) Deliverable() bool { return s == JobReady || s == JobFailed }

// Target names the kind of host a thread lives in, and so the channels that can
// reach it.
type Target string

const (
	TargetCLI     Target = "cli"
	TargetDesktop Target = "desktop"
	TargetThole   Target = "thole"
)

// Targets lists every target there is.
func Targets() []Target { return []Target{TargetCLI, TargetDesktop, TargetThole} }

// Valid reports whether t is a known target.
func (t Target) Valid() bool { return slices.Contains(Targets(), t) }

// DeliveryPolicy says what the turn that receives a result may need. A batch
// takes the most demanding value of its jobs in each dimension.
type DeliveryPolicy struct {
	ReadOnly            bool
	RequiresApproval    bool
	RequiresNetwork     bool
	RequiresWriteAccess bool
}

// UnknownDeliveryPolicy is what an unstated policy means: assume the worst.
var UnknownDeliveryPolicy = DeliveryPolicy{
	ReadOnly: false, RequiresApproval: true, RequiresNetwork: true, RequiresWriteAccess: true,
}

// Join returns the policy of a delivery that carries both.
func (p DeliveryPolicy) Join(q DeliveryPolicy) DeliveryPolicy {
	return DeliveryPolicy{
		ReadOnly:            p.ReadOnly && q.ReadOnly,
		RequiresApproval:    p.RequiresApproval || q.RequiresApproval,
		RequiresNetwork:     p.RequiresNetwork || q.RequiresNetwork,
		RequiresWriteAccess: p.RequiresWriteAccess || q.RequiresWriteAccess,
	}
}

// Objections lists, by their public names, the dimensions that keep the policy
// from being strictly safe. None means strictly safe.
func (p DeliveryPolicy) Objections() []string {
	var o []string
	if !p.ReadOnly {
		o = append(o, "delivery_read_only=false")
	}
	if p.RequiresApproval {
		o = append(o, "delivery_requires_approval=true")
	}
	if p.RequiresNetwork {
		o = append(o, "delivery_requires_network=true")
	}
	if p.RequiresWriteAccess {
		o = append(o, "delivery_requires_write_access=true")
	}
	return o
}
