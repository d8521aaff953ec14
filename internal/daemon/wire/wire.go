// Package wire is the data of our own methods on a home's socket. The socket is
// internal: only the command line's flags and JSON output are stable, and the
// views here are that output.
package wire

import (
	"encoding/json"
	"time"
)

// Methods.
const (
	Hello         = "thole/hello"
	DaemonStatus  = "thole/daemon/status"
	DaemonStop    = "thole/daemon/stop"
	JobSubmit     = "thole/job/submit"
	JobComplete   = "thole/job/complete"
	JobFail       = "thole/job/fail"
	JobCancel     = "thole/job/cancel"
	JobQuery      = "thole/job/query"
	JobList       = "thole/job/list"
	JobWait       = "thole/job/wait"
	BatchInspect  = "thole/batch/inspect"
	BatchHead     = "thole/batch/inspect_head"
	BatchClose    = "thole/batch/close_head"
	BatchDeliver  = "thole/batch/deliver"
	BatchList     = "thole/batch/list"
	AuditList     = "thole/audit/list"
	Check         = "thole/check"
	ArtifactLease = "thole/artifact/lease"
	ArtifactRead  = "thole/artifact/read"
	ArtifactPin   = "thole/artifact/pin"

	ArtifactInspect = "thole/artifact/inspect"
	ArtifactRevoke  = "thole/artifact/revoke"
)

// ErrorData is the data member of an error answer.
type ErrorData struct {
	Code string `json:"code"`
	Hint string `json:"hint,omitempty"`
}

type HelloParams struct {
	Version string `json:"version"`
}

// Status is who owns the home and why it is still there.
type Status struct {
	Version   string    `json:"version"`
	PID       int       `json:"pid"`
	Home      string    `json:"home"`
	Role      string    `json:"role"`
	StartedAt time.Time `json:"started_at"`
	Clients   int       `json:"clients"`
	// Staying says what keeps the daemon alive; empty when it may go idle.
	Staying string    `json:"staying,omitempty"`
	ExitsAt time.Time `json:"exits_at,omitzero"`
}

type StopParams struct {
	// Handover: a newer owner is waiting; leave supervised work alive.
	Handover bool `json:"handover,omitempty"`
	// Unless names a role that does not end: two that start at once do not end each
	// other.
	Unless string `json:"unless_role,omitempty"`
}

// Policy holds only what the submitter stated; nil means unstated.
type Policy struct {
	ReadOnly            *bool `json:"read_only,omitempty"`
	RequiresApproval    *bool `json:"requires_approval,omitempty"`
	RequiresNetwork     *bool `json:"requires_network,omitempty"`
	RequiresWriteAccess *bool `json:"requires_write_access,omitempty"`
}

type SubmitParams struct {
	JobID      string          `json:"job_id"`
	Target     string          `json:"target"`
	Endpoint   string          `json:"endpoint"`
	ThreadID   string          `json:"thread_id"`
	ParentID   string          `json:"parent_job_id,omitempty"`
	TaskKind   string          `json:"task_kind"`
	Summary    string          `json:"summary"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	DedupeKey  string          `json:"dedupe_key,omitempty"`
	Policy     Policy          `json:"policy"`
	Supervised bool            `json:"supervised,omitempty"`
	// Command runs in the box of the thread.
	Command *Command `json:"command,omitempty"`
}

// Command is what a job runs in the box of its thread.
type Command struct {
	Argv    []string      `json:"argv"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Submitted is the answer to submit.
type Submitted struct {
	JobID        string    `json:"job_id"`
	Status       string    `json:"status"`
	AcceptedAt   time.Time `json:"accepted_at"`
	Deduplicated bool      `json:"deduplicated"`
	Delivery     Forecast  `json:"delivery"`
}

// Forecast says whether a result would be delivered without a human. The reasons
// say why not, or what an automatic delivery would still wait for.
type Forecast struct {
	Automatic bool     `json:"automatic"`
	Reasons   []string `json:"reasons,omitempty" doc:"sentences for people"`
	Codes     []string `json:"reason_codes,omitempty" doc:"the same, in one word each"`
}

type FinishParams struct {
	JobID      string `json:"job_id"`
	RequestID  string `json:"request_id"`
	Summary    string `json:"summary,omitempty"`
	Reason     string `json:"reason,omitempty"`
	ResultFile string `json:"result_file,omitempty"`
	// ResultPath is ResultFile of a name that is not UTF-8, which JSON would change.
	ResultPath []byte `json:"result_path,omitempty"`
	ExitCode   *int64 `json:"exit_code,omitempty"`
}

type JobParams struct {
	JobID string `json:"job_id"`
}

type JobListParams struct {
	ThreadID string `json:"thread_id,omitempty"`
	Status   string `json:"status,omitempty"`
	After    string `json:"after,omitempty"` // the last job of the page before
	Limit    int    `json:"limit,omitempty"`
}

type WaitParams struct {
	JobIDs []string `json:"job_ids"`
}

// Job is a job as the command line shows it.
type Job struct {
	JobID          string          `json:"job_id"`
	TargetKind     string          `json:"target_kind"`
	Endpoint       string          `json:"endpoint,omitempty"`
	SourceThreadID string          `json:"source_thread_id"`
	ParentJobID    string          `json:"parent_job_id,omitempty"`
	Status         string          `json:"status" enum:"running,ready,failed,cancelled"`
	TaskKind       string          `json:"task_kind"`
	TaskSummary    string          `json:"task_summary"`
	MetadataRef    json.RawMessage `json:"metadata_ref,omitempty"`
	ArtifactID     string          `json:"artifact_id,omitempty"`
	ResultSummary  string          `json:"result_summary,omitempty"`
	DedupeKey      string          `json:"dedupe_key,omitempty"`
	ExitCode       *int64          `json:"exit_code,omitempty"`
	// WaitsForChildren: its own work is over, its children's is not.
	WaitsForChildren bool           `json:"waits_for_children,omitempty"`
	Supervised       bool           `json:"supervised,omitempty"`
	Command          []string       `json:"command,omitempty" doc:"runs in the box of the thread"`
	ExecutorID       string         `json:"executor_id,omitempty"`
	Policy           DeliveryPolicy `json:"delivery_policy"`
	InlineBytes      int64          `json:"inline_payload_bytes"`
	ArtifactRead     bool           `json:"requires_artifact_read"`
	BatchID          string         `json:"batch_id,omitempty"`
	CreatedAt        time.Time      `json:"created_at"`
	ReadyAt          time.Time      `json:"ready_at,omitzero"`
	UpdatedAt        time.Time      `json:"updated_at"`
	CompletedAt      time.Time      `json:"completed_at,omitzero"`
	Children         []Job          `json:"children,omitempty"`
	Batch            *Batch         `json:"batch,omitempty"`
}

type DeliveryPolicy struct {
	ReadOnly            bool `json:"delivery_read_only"`
	RequiresApproval    bool `json:"delivery_requires_approval"`
	RequiresNetwork     bool `json:"delivery_requires_network"`
	RequiresWriteAccess bool `json:"delivery_requires_write_access"`
}

type BatchParams struct {
	BatchID        string `json:"batch_id,omitempty"`
	SourceThreadID string `json:"source_thread_id,omitempty"`
	Endpoint       string `json:"endpoint,omitempty"`
	Reason         string `json:"reason,omitempty"`
}

// DeliverParams name a held batch. Anyway sends it although it may have arrived.
type DeliverParams struct {
	BatchID string `json:"batch_id"`
	Anyway  bool   `json:"anyway,omitempty"`
}

type BatchListParams struct {
	ThreadID string `json:"thread_id,omitempty"`
	Open     bool   `json:"open,omitempty"`
	Held     bool   `json:"held,omitempty"`
	After    string `json:"after,omitempty"` // the last batch of the page before
	Limit    int    `json:"limit,omitempty"`
}

// Batch is a batch as the command line shows it.
type Batch struct {
	BatchID                string         `json:"batch_id"`
	SourceThreadID         string         `json:"source_thread_id"`
	Endpoint               string         `json:"endpoint,omitempty"`
	TargetKind             string         `json:"target_kind"`
	Head                   bool           `json:"head"`
	JobIDs                 []string       `json:"job_ids,omitempty"`
	ArtifactIDs            []string       `json:"artifact_ids,omitempty"`
	State                  string         `json:"state"`
	Summary                string         `json:"summary"`
	FirstReadyAt           time.Time      `json:"first_ready_at"`
	LastReadyAt            time.Time      `json:"last_ready_at"`
	MaterializedAt         time.Time      `json:"materialized_at,omitzero"`
	LastDeliveryAttemptAt  time.Time      `json:"last_delivery_attempt_at,omitzero"`
	NextDeliveryNotBefore  time.Time      `json:"next_delivery_not_before,omitzero"`
	EligibleAfter          time.Time      `json:"eligible_after,omitzero"`
	RedeliveryWindowEndsAt time.Time      `json:"redelivery_window_ends_at,omitzero"`
	MaxDeliveryAttempts    int64          `json:"max_delivery_attempts"`
	DeliveryAttemptCount   int64          `json:"delivery_attempt_count"`
	HeadAttemptID          string         `json:"head_attempt_id,omitempty"`
	Generation             int64          `json:"generation"`
	BoundaryState          string         `json:"continuation_boundary_state"`
	ReplayPolicy           string         `json:"replay_policy" enum:"automatic,manual_resolution_only"`
	HeldFor                string         `json:"held_for,omitempty"`
	ReleasedBy             string         `json:"released_by,omitempty" doc:"who had it sent although it was held"`
	ClosedAt               time.Time      `json:"closed_at,omitzero"`
	CloseReason            string         `json:"close_reason,omitempty"`
	DeliveryMode           string         `json:"delivery_mode"`
	Policy                 DeliveryPolicy `json:"delivery_policy"`
	InlinePayloadBytes     int64          `json:"inline_payload_bytes"`
	ArtifactCount          int64          `json:"artifact_count"`
	RequiresArtifactRead   bool           `json:"requires_artifact_read"`
	// Recovery is what a heartbeat was given.
	Recovery *Recovery `json:"boundary_recovery,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
	Jobs     []Job     `json:"jobs,omitempty"`
	Ledger   []Audit   `json:"ledger,omitempty"`
	// Next is what to type about a batch that does not go on by itself.
	Next []string `json:"next,omitempty"`
}

// Attempt is an attempt as the command line shows it.
type Attempt struct {
	AttemptID                string    `json:"attempt_id"`
	Generation               int64     `json:"generation"`
	State                    string    `json:"state"`
	DeliveryRPCRequestID     string    `json:"delivery_rpc_request_id,omitempty"`
	DeliveryRPCKind          string    `json:"delivery_rpc_kind,omitempty"`
	DeliveryRPCStartedAt     time.Time `json:"delivery_rpc_started_at,omitzero"`
	DeliveryRPCState         string    `json:"delivery_rpc_state,omitempty"`
	DeliveryRPCMarker        string    `json:"delivery_rpc_correlation_marker,omitempty"`
	DeliveryTurnID           string    `json:"delivery_turn_id,omitempty"`
	ManagedSessionID         string    `json:"managed_session_id,omitempty"`
	SessionEpoch             int64     `json:"session_epoch,omitempty"`
	DeliveryAcceptedAt       time.Time `json:"delivery_accepted_at,omitzero"`
	DeliveryObservationState string    `json:"delivery_observation_state,omitempty"`
	DeliveryObservationUntil time.Time `json:"delivery_observation_deadline,omitzero"`
	LastObservedTurnEvent    string    `json:"last_observed_turn_event,omitempty"`
	LastObservedTurnEventAt  time.Time `json:"last_observed_turn_event_at,omitzero"`
	BindingID                string    `json:"binding_id,omitempty"`
	AutomationID             string    `json:"automation_id,omitempty"`
	AutomationBindingState   string    `json:"automation_binding_state"`
	ArmPendingSince          time.Time `json:"arm_pending_since,omitzero"`
	ArmPendingDeadline       time.Time `json:"arm_pending_deadline,omitzero"`
	SnapshotRevision         int64     `json:"snapshot_revision"`
	DeliveryDeadline         time.Time `json:"delivery_deadline,omitzero"`
	CooldownUntil            time.Time `json:"cooldown_until,omitzero"`
	CreatedAt                time.Time `json:"created_at"`
	UpdatedAt                time.Time `json:"updated_at"`
}

// Audit is a ledger row.
type Audit struct {
	At         time.Time         `json:"at"`
	Actor      string            `json:"actor"`
	Via        string            `json:"via"`
	Event      string            `json:"event"`
	JobID      string            `json:"job_id,omitempty"`
	BatchID    string            `json:"batch_id,omitempty"`
	AttemptID  string            `json:"attempt_id,omitempty"`
	Generation int64             `json:"generation,omitempty"`
	From       string            `json:"from,omitempty"`
	To         string            `json:"to,omitempty"`
	Proof      map[string]string `json:"proof,omitempty"`
}

type AuditParams struct {
	JobID          string `json:"job_id,omitempty"`
	BatchID        string `json:"batch_id,omitempty"`
	SourceThreadID string `json:"source_thread_id,omitempty"`
	Endpoint       string `json:"endpoint,omitempty"`
	Limit          int    `json:"limit,omitempty"`
}

// Checked is the result of thole check.
type Checked struct {
	Violations []Violation `json:"violations"`
	// Notes are what could not be checked, and why.
	Notes []string `json:"notes,omitempty"`
}

type Violation struct {
	Rule string `json:"rule"`
	Row  string `json:"row"`
}

type ArtifactParams struct {
	ArtifactID string    `json:"artifact_id,omitempty"`
	LeaseID    string    `json:"artifact_read_lease_id,omitempty"`
	Offset     int64     `json:"offset,omitempty"`
	Limit      int       `json:"limit,omitempty"`
	PinUntil   time.Time `json:"pin_until,omitzero"`
}

// Lease permits reading an artifact in chunks.
type Lease struct {
	LeaseID     string    `json:"artifact_recovery_lease_id"`
	Deadline    time.Time `json:"artifact_recovery_lease_deadline"`
	ArtifactID  string    `json:"artifact_id"`
	Name        string    `json:"name"`
	ContentType string    `json:"content_type"`
	SizeBytes   int64     `json:"size_bytes"`
	SHA256      string    `json:"sha256"`
}

// Artifact is a result file as the command line shows it.
type Artifact struct {
	ArtifactID       string    `json:"artifact_id"`
	SourceJobID      string    `json:"source_job_id"`
	Name             string    `json:"name"`
	ContentType      string    `json:"content_type"`
	SizeBytes        int64     `json:"size_bytes"`
	SHA256           string    `json:"sha256"`
	ManagedPath      string    `json:"managed_path"`
	ManifestPath     string    `json:"manifest_path"`
	CreatedAt        time.Time `json:"created_at"`
	Held             bool      `json:"held" doc:"a running job or an open batch refers to it"`
	LastBatchClosed  time.Time `json:"last_batch_closed_at,omitzero"`
	OperatorPinUntil time.Time `json:"operator_pin_until,omitzero"`
	RetentionUntil   time.Time `json:"retention_until,omitzero" doc:"when it may be removed; absent while it is held"`
	RemovedAt        time.Time `json:"removed_at,omitzero"`
	Damage           string    `json:"damage,omitempty" doc:"why its bytes are not those that were stored"`
}

type Chunk struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
	Last   bool   `json:"last"`
}
