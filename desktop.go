package thole

// ReadTransport is how the bridge of a Desktop app reads what is ready.
type ReadTransport string

const (
	TransportFile   ReadTransport = "direct_file_read"
	TransportHelper ReadTransport = "helper_cli_read"
)

// Valid reports whether t is a known transport.
func (t ReadTransport) Valid() bool { return t == TransportFile || t == TransportHelper }

// Capability is what was found out about an ability of a Desktop installation. Only
// validated permits.
type Capability string

const (
	CapabilityUnknown     Capability = "unknown"
	CapabilityValidated   Capability = "validated"
	CapabilityUnavailable Capability = "unavailable"
)

// Valid reports whether c is a known value.
func (c Capability) Valid() bool {
	return c == CapabilityUnknown || c == CapabilityValidated || c == CapabilityUnavailable
}

// BindingState says whether a thread's results may wake its heartbeat. A degraded
// binding waits for a person to repair it.
type BindingState string

const (
	BindingUnbound  BindingState = "unbound"
	BindingBound    BindingState = "bound"
	BindingDegraded BindingState = "degraded"
)

// AutomationStatus is what a look at a heartbeat's own file showed.
type AutomationStatus string

const (
	AutomationActive  AutomationStatus = "active"
	AutomationPaused  AutomationStatus = "paused"
	AutomationGone    AutomationStatus = "deleted"
	AutomationUnclear AutomationStatus = "unknown"
)

// Quiet reports whether the heartbeat is proven not to fire. Unclear is not quiet.
func (s AutomationStatus) Quiet() bool { return s == AutomationPaused || s == AutomationGone }

// DesktopOutcome is how a Desktop call ended.
type DesktopOutcome string

const (
	OutcomeUnchanged    DesktopOutcome = "unchanged"
	OutcomeArmPending   DesktopOutcome = "arm_pending"
	OutcomeArmed        DesktopOutcome = "armed"
	OutcomeAlreadyArmed DesktopOutcome = "already_armed"
	OutcomeLeaseHeld    DesktopOutcome = "lease_held"
	OutcomeAbandoned    DesktopOutcome = "abandoned"
	OutcomeQuiesced     DesktopOutcome = "quiesced"
	OutcomeTooEarly     DesktopOutcome = "too_early"
	OutcomeNotQuiet     DesktopOutcome = "not_quiesced"
	OutcomeCrossed      DesktopOutcome = "crossed"
	OutcomeNotReady     DesktopOutcome = "transient_not_ready"
	OutcomeStale        DesktopOutcome = "stale_or_superseded"
	OutcomeCrossedOnce  DesktopOutcome = "already_crossed_or_handoff_recorded"
	OutcomeInvalid      DesktopOutcome = "binding_or_capability_invalid"
	OutcomeHelperFailed DesktopOutcome = "unknown_after_helper_failure"
)
