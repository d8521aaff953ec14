package wire

import (
	"encoding/json"
	"time"
)

// Methods of the Desktop channel.
const (
	DesktopInstallation       = "thole/desktop/installation"
	DesktopInstallationRepair = "thole/desktop/installation_repair"
	DesktopBindingRepair      = "thole/desktop/binding_repair"
	DesktopBindingUnbind      = "thole/desktop/binding_unbind"
	DesktopBindingList        = "thole/desktop/binding_list"
	DesktopPreflight          = "thole/desktop/preflight"
	DesktopPeek               = "thole/desktop/peek"
	DesktopNoteArmPending     = "thole/desktop/note_arm_pending"
	DesktopNoteArm            = "thole/desktop/note_arm"
	DesktopReconcile          = "thole/desktop/reconcile"
	DesktopNotePaused         = "thole/desktop/note_paused"
	DesktopCross              = "thole/desktop/note_boundary_crossed"
)

// DesktopCapabilities are unknown, validated or unavailable.
type DesktopCapabilities struct {
	ReadTransport string `json:"read_transport_capability" enum:"unknown,validated,unavailable"`
	ArtifactRead  string `json:"artifact_read_capability" enum:"unknown,validated,unavailable"`
	Writeback     string `json:"writeback_capability" enum:"unknown,validated,unavailable"`
}

// DesktopInstallationParams is all that an operator says of the installation.
type DesktopInstallationParams struct {
	ReadTransport string `json:"read_transport"`
	DesktopCapabilities
}

// DesktopInstall is the installation as the command line and the inbox show it.
type DesktopInstall struct {
	SnapshotRevision int64  `json:"snapshot_revision,omitempty" doc:"of the inbox's file"`
	Enabled          bool   `json:"enabled" doc:"desktop.enabled in the configuration"`
	ReadTransport    string `json:"read_transport,omitempty"`
	Generation       int64  `json:"read_transport_generation"`
	DesktopCapabilities
	Fingerprint string    `json:"validation_fingerprint,omitempty"`
	Observed    string    `json:"observed_fingerprint,omitempty" doc:"as it is seen now; another one than the validated one permits nothing"`
	Valid       bool      `json:"valid" doc:"heartbeats may be armed on this installation"`
	ValidatedAt time.Time `json:"validated_at,omitzero"`
	UpdatedBy   string    `json:"updated_by_bootstrap_or_repair,omitempty"`
	Changed     bool      `json:"changed"`
}

// DesktopBindingParams names a thread and its heartbeat.
type DesktopBindingParams struct {
	SourceThreadID string `json:"source_thread_id"`
	Endpoint       string `json:"endpoint,omitempty"`
	AutomationID   string `json:"caller_automation_id,omitempty"`
	BridgeThreadID string `json:"bridge_thread_id,omitempty"`
	Delete         bool   `json:"delete_automation,omitempty"`
}

// DesktopBound is a binding as the command line shows it.
type DesktopBound struct {
	BindingID      string `json:"binding_id"`
	SourceThreadID string `json:"source_thread_id"`
	Endpoint       string `json:"endpoint"`
	State          string `json:"binding_state" enum:"unbound,bound,degraded"`
	DegradedFor    string `json:"degraded_for,omitempty"`
	Problem        string `json:"problem,omitempty" doc:"why nothing is armed for it now"`
	AutomationID   string `json:"caller_automation_id"`
	BridgeThreadID string `json:"bridge_thread_id"`
	ReadTransport  string `json:"read_transport"`
	Generation     int64  `json:"read_transport_generation"`
	DesktopCapabilities
	Fingerprint     string    `json:"validation_fingerprint"`
	ArmedGeneration int64     `json:"armed_generation,omitempty"`
	QuiescedAt      time.Time `json:"armed_generation_quiesced_at,omitzero"`
	PauseNotBefore  time.Time `json:"pause_not_before,omitzero"`
	PauseDeadline   time.Time `json:"pause_deadline,omitzero"`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
	LastVerifiedAt  time.Time `json:"last_verified_at,omitzero"`
	Changed         bool      `json:"changed"`
	// Of a repair that replaced the automation.
	Replaced        string `json:"replaced_automation_id,omitempty"`
	OldQuiesced     bool   `json:"replaced_automation_quiesced,omitempty"`
	FreshGeneration bool   `json:"fresh_generation_forced,omitempty"`
	// Waiting are results that were held for want of a binding.
	Next []string `json:"next,omitempty"`
}

// DesktopToken names exactly one attempt: it is what a heartbeat's prompt carries.
type DesktopToken struct {
	SourceThreadID   string `json:"source_thread_id"`
	BatchID          string `json:"batch_id,omitempty"`
	AttemptID        string `json:"attempt_id"`
	Generation       int64  `json:"generation"`
	SnapshotRevision int64  `json:"snapshot_revision,omitempty"`
}

// DesktopReady is an attempt that a bridge may arm.
type DesktopReady struct {
	DesktopToken
	BridgeThreadID       string `json:"bridge_thread_id"`
	SnapshotPath         string `json:"snapshot_path"`
	RequiresArtifactRead bool   `json:"requires_artifact_read"`
}

// DesktopArming is an attempt whose heartbeat is being armed.
type DesktopArming struct {
	DesktopToken
	BridgeThreadID string    `json:"bridge_thread_id"`
	AutomationID   string    `json:"caller_automation_id"`
	Deadline       time.Time `json:"arm_pending_deadline"`
}

// DesktopPause is a heartbeat that should be paused.
type DesktopPause struct {
	SourceThreadID  string    `json:"source_thread_id"`
	BridgeThreadID  string    `json:"bridge_thread_id"`
	AutomationID    string    `json:"caller_automation_id"`
	ArmedGeneration int64     `json:"armed_generation"`
	PauseNotBefore  time.Time `json:"pause_not_before"`
	PauseDeadline   time.Time `json:"pause_deadline"`
}

// DesktopManifest is inbox/current-snapshot.json. Its files are those of one revision.
type DesktopManifest struct {
	SnapshotRevision int64     `json:"snapshot_revision"`
	PreflightID      string    `json:"preflight_id"`
	BridgeThreadID   string    `json:"bridge_thread_id"`
	PublishedAt      time.Time `json:"published_at"`
	ReadyThreads     string    `json:"ready_threads"`
	ArmPending       string    `json:"arm_pending_bindings"`
	PauseDue         string    `json:"pause_due_bindings"`
	Installation     string    `json:"desktop_installation_state"`
}

// DesktopSnapshot is what a manifest and its files say.
type DesktopSnapshot struct {
	SnapshotRevision int64           `json:"snapshot_revision"`
	ManifestPath     string          `json:"snapshot_manifest_path,omitempty"`
	PreflightID      string          `json:"preflight_id,omitempty"`
	BridgeThreadID   string          `json:"bridge_thread_id"`
	PublishedAt      time.Time       `json:"published_at"`
	Ready            []DesktopReady  `json:"ready_threads"`
	Arming           []DesktopArming `json:"arm_pending_bindings"`
	PauseDue         []DesktopPause  `json:"pause_due_bindings"`
	Installation     DesktopInstall  `json:"desktop_installation_state"`
}

// DesktopPreflightParams is one wake-up of a bridge.
type DesktopPreflightParams struct {
	BridgeThreadID string `json:"bridge_thread_id"`
	PreflightID    string `json:"preflight_id,omitempty"`
}

// DesktopArmParams name an attempt and who arms it.
type DesktopArmParams struct {
	DesktopToken
	Endpoint      string `json:"endpoint,omitempty"`
	BridgeRequest string `json:"bridge_request_id,omitempty"`
	Lease         string `json:"bridge_arm_lease_id,omitempty"`
}

// DesktopAnswer is how a Desktop call ended.
type DesktopAnswer struct {
	Outcome string `json:"outcome" enum:"unchanged,arm_pending,armed,already_armed,lease_held,abandoned,quiesced,too_early,not_quiesced,crossed,transient_not_ready,stale_or_superseded,already_crossed_or_handoff_recorded,binding_or_capability_invalid,unknown_after_helper_failure"`
	Why     string `json:"why,omitempty"`
	DesktopToken
	AutomationID  string    `json:"caller_automation_id,omitempty"`
	BridgeRequest string    `json:"bridge_request_id,omitempty"`
	Lease         string    `json:"bridge_arm_lease_id,omitempty"`
	LeaseDeadline time.Time `json:"bridge_arm_lease_deadline,omitzero"`
	// Payload is what the thread reads; only a fresh crossing has it.
	Payload string `json:"inline_payload_summary,omitempty"`
}

// Recovery is what a heartbeat was given, for an operator.
type Recovery struct {
	CrossedAt        time.Time       `json:"continuation_boundary_crossed_at"`
	AttemptID        string          `json:"boundary_attempt_id"`
	Generation       int64           `json:"boundary_generation"`
	SnapshotRevision int64           `json:"boundary_snapshot_revision"`
	EnvelopeBytes    int64           `json:"boundary_recovery_envelope_bytes"`
	RetentionUntil   time.Time       `json:"boundary_recovery_retention_until"`
	Envelope         json.RawMessage `json:"boundary_recovery_envelope"`
	Leases           []Lease         `json:"artifact_leases,omitempty"`
}
