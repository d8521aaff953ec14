package thole

// BatchState is where a batch stands. queued collects jobs, materialized is
// fixed and waits to be sent, cooldown was accepted by a channel, closed will
// never be sent again.
type BatchState string

const (
	BatchQueued       BatchState = "queued"
	BatchMaterialized BatchState = "materialized"
	BatchCooldown     BatchState = "cooldown"
	BatchClosed       BatchState = "closed"
)

// ReplayPolicy is the durable permission to send a batch without a human. By itself it
// only moves from automatic to manual; a person alone moves it back.
type ReplayPolicy string

const (
	ReplayAutomatic ReplayPolicy = "automatic"
	ReplayManual    ReplayPolicy = "manual_resolution_only"
)

// CloseReason says why a batch will never be sent again.
type CloseReason string

const (
	// CloseDelivered: a trusted channel observed the receiving turn complete.
	CloseDelivered CloseReason = "delivered"
	// CloseSuperseded: another batch or an operator took its place. A newer
	// attempt on the same batch is not this.
	CloseSuperseded CloseReason = "superseded"
	// CloseOperatorConfirmed: a human found proof that it arrived.
	CloseOperatorConfirmed CloseReason = "operator_confirmed_delivery"
	// CloseOperatorUnconfirmed: a human stopped the tracking and claims nothing.
	CloseOperatorUnconfirmed CloseReason = "operator_closed_unconfirmed"
	// CloseCancelled: the work or the user cancelled it.
	CloseCancelled CloseReason = "cancelled"
	// CloseWindowExhausted: still automatic when its window ended.
	CloseWindowExhausted CloseReason = "redelivery_window_exhausted"
	// CloseManualExpired: held, and no human came before its window ended.
	CloseManualExpired CloseReason = "manual_resolution_expired"
	// CloseMaxAttempts: the channel accepted it as often as is allowed.
	CloseMaxAttempts CloseReason = "max_attempts_exhausted"
	// CloseHandoffRecorded: the payload and its recovery envelope were handed
	// over durably. It does not prove that a user saw anything.
	CloseHandoffRecorded CloseReason = "handoff_recorded"
)

// HoldReason says why a batch waits for a human.
type HoldReason string

const (
	// HoldPolicy: what the result may need, or what the session lets a turn do, is more
	// than goes without a human.
	HoldPolicy HoldReason = "policy"
	// HoldNoThread: the thread does not exist.
	HoldNoThread HoldReason = "no_thread"
	// HoldOtherHome: the thread belongs to a home that this process does not reach.
	HoldOtherHome HoldReason = "other_home"
	// HoldUnfitThread: the thread is of a kind that takes no deliveries.
	HoldUnfitThread HoldReason = "unfit_thread"
	// HoldNoChannel: no channel reaches the target.
	HoldNoChannel HoldReason = "no_channel"
	// HoldNoServer: the server that the result brought with it cannot be started.
	HoldNoServer HoldReason = "no_server"
	// HoldAcceptanceUnknown: the call can be proven neither taken nor not taken.
	HoldAcceptanceUnknown HoldReason = "acceptance_unknown"
	// HoldArmUnknown: the same of a heartbeat.
	HoldArmUnknown HoldReason = "arm_unknown"
	// HoldObservationLost: the stream of the accepted turn broke.
	HoldObservationLost HoldReason = "observation_lost"
	// HoldObservationExpired: the accepted turn did not end in time.
	HoldObservationExpired HoldReason = "observation_expired"
	// HoldTurnFailed, HoldTurnInterrupted, HoldTurnReplaced: so the accepted turn ended.
	HoldTurnFailed      HoldReason = "turn_failed"
	HoldTurnInterrupted HoldReason = "turn_interrupted"
	HoldTurnReplaced    HoldReason = "turn_replaced"
	// HoldSteered: of versions that did not follow a message into a running turn.
	HoldSteered HoldReason = "steered"
	// HoldHandedOver: its content was given to the waking thread once; the batch is closed.
	HoldHandedOver HoldReason = "handed_over"
)

// HoldReasons lists every reason there is.
func HoldReasons() []HoldReason {
	return []HoldReason{
		HoldPolicy, HoldNoThread, HoldOtherHome, HoldUnfitThread, HoldNoChannel, HoldNoServer, HoldAcceptanceUnknown, HoldArmUnknown,
		HoldObservationLost, HoldObservationExpired, HoldTurnFailed, HoldTurnInterrupted, HoldTurnReplaced, HoldSteered, HoldHandedOver,
	}
}

// Operator reports whether a human may give the reason.
func (r CloseReason) Operator() bool {
	return r == CloseOperatorConfirmed || r == CloseOperatorUnconfirmed || r == CloseCancelled
}

// BoundaryState records whether a receiver was let past the point from which the
// batch may have had effects.
type BoundaryState string

const (
	BoundaryNotCrossed BoundaryState = "not_crossed"
	BoundaryCrossed    BoundaryState = "crossed_unacknowledged"
	// BoundaryAcknowledged is reserved; nothing sets it.
	BoundaryAcknowledged BoundaryState = "acknowledged"
)

// DeliveryMode is the channel a batch goes through.
type DeliveryMode string

const (
	ModeTurnStart DeliveryMode = "cli_turn_start"
	ModeTurnSteer DeliveryMode = "cli_turn_steer"
	ModeHeartbeat DeliveryMode = "desktop_heartbeat"
)

// Observed reports whether the mode follows the receiving turn to its end. Only
// the heartbeat does not, and so only the heartbeat sends again after cooldown.
func (m DeliveryMode) Observed() bool { return m == ModeTurnStart || m == ModeTurnSteer }
