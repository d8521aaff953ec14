package store

import (
	"sync"

	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
)

var (
	laneTable = sync.OnceValue(func() *table {
		return newTable("delivery_lanes", laneColumns(new(delivery.Lane)), "app_id", "project_id", "user_id", "endpoint", "thread_id")
	})
	jobTable = sync.OnceValue(func() *table {
		return newTable("delivery_jobs", jobColumns(new(delivery.Job)), "lane_id", "app_id", "project_id", "user_id", "target_kind", "endpoint", "thread_id",
			"parent_job_id", "task_kind", "task_summary", "metadata", "dedupe_key", "read_only", "needs_approval", "needs_network", "needs_write", "supervised", "command", "plugin_target", "created_at")
	})
	batchTable = sync.OnceValue(func() *table {
		return newTable("delivery_batches", batchColumns(new(delivery.Batch)), "lane_id", "target_kind", "plugin_target", "created_at")
	})
	attemptTable = sync.OnceValue(func() *table {
		return newTable("delivery_attempts", attemptColumns(new(delivery.Attempt)), "lane_id", "batch_id", "generation", "snapshot_revision", "created_at")
	})
	artifactTable = sync.OnceValue(func() *table { return newTable("artifacts", artifactColumns(new(artifact.Record))) })
)

func laneColumns(l *delivery.Lane) []column {
	return []column{
		{"lane_id", &l.ID}, {"app_id", &l.Owner.App}, {"project_id", &l.Owner.Project}, {"user_id", &l.User},
		{"endpoint", &l.Endpoint}, {"thread_id", &l.Thread}, {"generation", &l.Generation}, {"next_seq", &l.NextSeq},
		{"last_ready_at", millis{&l.LastReadyAt}}, {"not_before", millis{&l.NotBefore}}, {"eligible_after", millis{&l.EligibleAfter}},
		{"failures", &l.Failures}, {"blocked", &l.Blocked}, {"due_at", millis{&l.DueAt}}, {"ticket", &l.Ticket}, {"scope", &l.Scope},
		{"version", &l.Version},
	}
}

func jobColumns(j *delivery.Job) []column {
	return []column{
		{"job_id", &j.ID}, {"lane_id", &j.LaneID}, {"app_id", &j.Owner.App}, {"project_id", &j.Owner.Project}, {"user_id", &j.Owner.User},
		{"target_kind", &j.Target}, {"endpoint", &j.Endpoint}, {"thread_id", &j.Thread}, {"parent_job_id", &j.Parent}, {"status", &j.State},
		{"task_kind", &j.TaskKind}, {"task_summary", &j.TaskSummary}, {"metadata", &j.Metadata}, {"dedupe_key", &j.DedupeKey},
		{"read_only", &j.Policy.ReadOnly}, {"needs_approval", &j.Policy.RequiresApproval}, {"needs_network", &j.Policy.RequiresNetwork},
		{"needs_write", &j.Policy.RequiresWriteAccess}, {"supervised", &j.Supervised}, {"command", command{&j.Command}}, {"executor_id", &j.Executor}, {"plugin_target", pluginTarget{&j.Plugin}}, {"settled", &j.Settled}, {"settled_by", &j.SettledBy},
		{"result_summary", &j.ResultSummary}, {"exit_code", &j.ExitCode}, {"artifact_id", &j.Artifact}, {"inline_payload", &j.Inline}, {"inline_bytes", &j.InlineBytes},
		{"artifact_read", &j.RequiresArtifactRead}, {"batch_id", &j.Batch}, {"batch_order", &j.BatchOrder},
		{"created_at", millis{&j.CreatedAt}}, {"ready_at", millis{&j.ReadyAt}}, {"updated_at", millis{&j.UpdatedAt}},
		{"completed_at", millis{&j.CompletedAt}}, {"version", &j.Version},
	}
}

func batchColumns(b *delivery.Batch) []column {
	return []column{
		{"batch_id", &b.ID}, {"lane_id", &b.LaneID}, {"seq", &b.Seq}, {"target_kind", &b.Target}, {"delivery_mode", &b.Mode},
		{"state", &b.State}, {"replay_policy", &b.Replay}, {"summary", &b.Summary}, {"held_for", &b.HeldFor}, {"jobs", &b.Jobs},
		{"artifact_count", &b.ArtifactCount}, {"inline_bytes", &b.InlineBytes}, {"read_only", &b.Policy.ReadOnly},
		{"needs_approval", &b.Policy.RequiresApproval}, {"needs_network", &b.Policy.RequiresNetwork}, {"needs_write", &b.Policy.RequiresWriteAccess},
		{"artifact_read", &b.RequiresArtifactRead}, {"first_ready_at", millis{&b.FirstReadyAt}}, {"last_ready_at", millis{&b.LastReadyAt}},
		{"materialized_at", millis{&b.MaterializedAt}}, {"last_attempt_at", millis{&b.LastAttemptAt}}, {"not_before", millis{&b.NotBefore}},
		{"window_ends_at", millis{&b.WindowEndsAt}}, {"max_attempts", &b.MaxAttempts}, {"attempt_count", &b.AttemptCount},
		{"head_attempt_id", &b.HeadAttempt}, {"generation", &b.Generation}, {"released_by", &b.ReleasedBy}, {"released_generation", &b.ReleasedGeneration},
		{"plugin_target", pluginTarget{&b.Plugin}}, {"boundary_state", &b.Boundary.State},
		{"boundary_crossed_at", millis{&b.Boundary.CrossedAt}}, {"boundary_attempt_id", &b.Boundary.Attempt},
		{"boundary_generation", &b.Boundary.Generation}, {"boundary_revision", &b.Boundary.SnapshotRevision},
		{"boundary_envelope_ref", &b.Boundary.EnvelopeRef}, {"boundary_envelope", &b.Boundary.Envelope}, {"boundary_envelope_bytes", &b.Boundary.EnvelopeBytes},
		{"boundary_retention_until", millis{&b.Boundary.RetentionUntil}}, {"boundary_pin_until", millis{&b.Boundary.PinUntil}},
		{"closed_at", millis{&b.ClosedAt}}, {"close_reason", &b.CloseReason}, {"created_at", millis{&b.CreatedAt}},
		{"updated_at", millis{&b.UpdatedAt}}, {"version", &b.Version},
	}
}

// attemptColumns leaves out deadline_at, which is derived on every write.
func attemptColumns(a *delivery.Attempt) []column {
	return []column{
		{"attempt_id", &a.ID}, {"lane_id", &a.LaneID}, {"batch_id", &a.Batch}, {"generation", &a.Generation}, {"state", &a.State},
		{"ticket", &a.Ticket}, {"holder", &a.Holder}, {"lease_until", millis{&a.LeaseUntil}}, {"rpc_request_id", &a.RPC.RequestID},
		{"rpc_kind", &a.RPC.Kind}, {"rpc_started_at", millis{&a.RPC.StartedAt}}, {"rpc_state", &a.RPC.State}, {"rpc_marker", &a.RPC.Marker},
		{"turn_id", &a.Observation.Turn}, {"attachment_id", &a.Observation.Attachment}, {"epoch", &a.Observation.Epoch},
		{"accepted_at", millis{&a.Observation.AcceptedAt}}, {"observation_state", &a.Observation.State},
		{"observation_until", millis{&a.Observation.Deadline}}, {"last_event", &a.Observation.LastEvent},
		{"last_event_at", millis{&a.Observation.LastEventAt}}, {"bridge_request_id", &a.Arm.BridgeRequest}, {"arm_lease_id", &a.Arm.Lease},
		{"arm_lease_until", millis{&a.Arm.LeaseDeadline}}, {"arm_pending_since", millis{&a.Arm.PendingSince}},
		{"arm_deadline", millis{&a.Arm.Deadline}}, {"binding_id", &a.Arm.Binding}, {"automation_id", &a.Arm.Automation},
		{"automation_state", &a.Arm.AutomationIs}, {"snapshot_path", &a.SnapshotPath}, {"snapshot_revision", &a.SnapshotRevision},
		{"delivery_deadline", millis{&a.DeliveryDeadline}}, {"cooldown_until", millis{&a.CooldownUntil}}, {"deadline_at", deadline{a}},
		{"created_at", millis{&a.CreatedAt}}, {"updated_at", millis{&a.UpdatedAt}}, {"version", &a.Version},
	}
}

func artifactColumns(r *artifact.Record) []column {
	return []column{
		{"artifact_id", &r.ID}, {"job_id", &r.Job}, {"app_id", &r.Owner.App}, {"project_id", &r.Owner.Project}, {"user_id", &r.Owner.User},
		{"path", &r.Path}, {"manifest", &r.Manifest}, {"name", &r.Name}, {"content_type", &r.ContentType}, {"size_bytes", &r.Size},
		{"sha256", &r.SHA256}, {"created_at", millis{&r.CreatedAt}}, {"held", &r.Held}, {"last_closed_at", millis{&r.LastClosedAt}},
		{"pin_until", millis{&r.PinUntil}}, {"removed_at", millis{&r.RemovedAt}}, {"version", &r.Version},
	}
}
