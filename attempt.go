package thole

// AttemptState is where one fenced try to deliver a batch stands:
//
//	prepared → accept_pending → cooldown → closed
//	prepared → arm_pending    → cooldown → closed
//	accept_pending → prepared               (proven not accepted)
//	any open state → abandoned | superseded
//
// accept_pending and arm_pending are durable before the channel is called: what
// happened after them is proven, or a human decides.
type AttemptState string

const (
	AttemptPrepared      AttemptState = "prepared"
	AttemptAcceptPending AttemptState = "accept_pending"
	AttemptArmPending    AttemptState = "arm_pending"
	AttemptCooldown      AttemptState = "cooldown"
	AttemptClosed        AttemptState = "closed"
	AttemptSuperseded    AttemptState = "superseded"
	AttemptAbandoned     AttemptState = "abandoned"
)

// AttemptStates is every attempt state.
var AttemptStates = []AttemptState{
	AttemptPrepared, AttemptAcceptPending, AttemptArmPending, AttemptCooldown,
	AttemptClosed, AttemptSuperseded, AttemptAbandoned,
}

// Open reports whether the attempt is not over. A thread has at most one open
// attempt.
func (s AttemptState) Open() bool {
	//exhaustive:enforce
	switch s {
	case AttemptPrepared, AttemptAcceptPending, AttemptArmPending, AttemptCooldown:
		return true
	case AttemptClosed, AttemptSuperseded, AttemptAbandoned:
	}
	return false
}

// Barrier reports whether the channel may have been called without a durable
// answer.
func (s AttemptState) Barrier() bool {
	return s == AttemptAcceptPending || s == AttemptArmPending
}

// RPCState is what is known of the call that accept_pending stands for.
type RPCState string

const (
	RPCPending  RPCState = "pending_acceptance"
	RPCAccepted RPCState = "accepted"
	RPCRejected RPCState = "rejected_before_accept"
	RPCUnknown  RPCState = "acceptance_unknown"
)

// ObservationState is how the accepted turn is being followed.
type ObservationState string

const (
	ObservationTracking ObservationState = "tracking"
	ObservationLost     ObservationState = "lost"
	ObservationExpired  ObservationState = "expired"
)

// TurnEvent is what was seen happening to the accepted turn.
type TurnEvent string

const (
	TurnEventStarted     TurnEvent = "turn_started"
	TurnEventCompleted   TurnEvent = "turn_completed"
	TurnEventFailed      TurnEvent = "turn_failed"
	TurnEventInterrupted TurnEvent = "turn_interrupted"
	TurnEventReplaced    TurnEvent = "turn_replaced"
)

// Terminal reports whether the turn is over.
func (e TurnEvent) Terminal() bool { return e != TurnEventStarted && e != "" }

// Acceptance is what a channel can say of a proposal. Unknown is not no: it
// holds the batch for a human.
type Acceptance string

const (
	Accepted          Acceptance = "accepted"
	Rejected          Acceptance = "rejected"
	AcceptanceUnknown Acceptance = "unknown"
)

// AutomationBinding is how far a heartbeat's automation id is known.
type AutomationBinding string

const (
	AutomationUnknown    AutomationBinding = "unknown"
	AutomationObserved   AutomationBinding = "observed"
	AutomationReconciled AutomationBinding = "reconciled"
)
