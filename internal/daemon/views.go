package daemon

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/strictjson"
)

func policyView(p thole.DeliveryPolicy) wire.DeliveryPolicy {
	return wire.DeliveryPolicy{ReadOnly: p.ReadOnly, RequiresApproval: p.RequiresApproval, RequiresNetwork: p.RequiresNetwork, RequiresWriteAccess: p.RequiresWriteAccess}
}

func jobView(j delivery.Job) wire.Job {
	v := wire.Job{
		JobID: string(j.ID), TargetKind: string(j.Target), Endpoint: j.Endpoint, SourceThreadID: string(j.Thread), ParentJobID: string(j.Parent),
		Status: string(j.State), TaskKind: j.TaskKind, TaskSummary: j.TaskSummary, ArtifactID: string(j.Artifact), ResultSummary: j.ResultSummary,
		DedupeKey: j.DedupeKey, WaitsForChildren: j.State == thole.JobRunning && j.Settled != "", Supervised: j.Supervised,
		Policy: policyView(j.Policy), InlineBytes: j.InlineBytes, ArtifactRead: j.RequiresArtifactRead, BatchID: string(j.Batch),
		CreatedAt: j.CreatedAt, ReadyAt: j.ReadyAt, UpdatedAt: j.UpdatedAt, CompletedAt: j.CompletedAt,
	}
	if j.Command != nil {
		v.Command, v.ExecutorID = j.Command.Argv, string(j.Executor)
	}
	if j.ExitCode >= 0 {
		v.ExitCode = &j.ExitCode
	}
	if j.Metadata != "" {
		v.MetadataRef = json.RawMessage(j.Metadata)
	}
	return v
}

func parcelView(jobs []delivery.ParcelJob) []wire.Job {
	out := make([]wire.Job, 0, len(jobs))
	for _, j := range jobs {
		v := jobView(j.Job)
		v.Children = parcelView(j.Children)
		out = append(out, v)
	}
	return out
}

// batchView shows a batch; kind names keep the words of the stable surface.
func batchView(b delivery.BatchView) wire.Batch {
	v := wire.Batch{
		BatchID: string(b.Batch.ID), SourceThreadID: string(b.Lane.Thread), Endpoint: b.Lane.Endpoint, TargetKind: string(b.Batch.Target), Head: b.Head,
		State: string(b.Batch.State), Summary: b.Batch.Summary, FirstReadyAt: b.Batch.FirstReadyAt, LastReadyAt: b.Batch.LastReadyAt,
		MaterializedAt: b.Batch.MaterializedAt, LastDeliveryAttemptAt: b.Batch.LastAttemptAt, NextDeliveryNotBefore: b.Batch.NotBefore,
		RedeliveryWindowEndsAt: b.Batch.WindowEndsAt, MaxDeliveryAttempts: b.Batch.MaxAttempts, DeliveryAttemptCount: b.Batch.AttemptCount,
		HeadAttemptID: string(b.Batch.HeadAttempt), Generation: b.Batch.Generation, BoundaryState: string(b.Batch.Boundary.State),
		ReplayPolicy: string(b.Batch.Replay), HeldFor: string(b.Batch.HeldFor), ReleasedBy: string(b.Batch.ReleasedBy), ClosedAt: b.Batch.ClosedAt, CloseReason: string(b.Batch.CloseReason),
		DeliveryMode: string(b.Batch.Mode), Policy: policyView(b.Batch.Policy), InlinePayloadBytes: b.Batch.InlineBytes,
		ArtifactCount: b.Batch.ArtifactCount, RequiresArtifactRead: b.Batch.RequiresArtifactRead, Jobs: parcelView(b.Jobs),
	}
	v.Next = b.Next()
	if r := b.Batch.Boundary; r.State != thole.BoundaryNotCrossed && r.Envelope != "" {
		v.Recovery = &wire.Recovery{
			CrossedAt: r.CrossedAt, AttemptID: string(r.Attempt), Generation: r.Generation, SnapshotRevision: r.SnapshotRevision,
			EnvelopeBytes: r.EnvelopeBytes, RetentionUntil: r.RetentionUntil, Envelope: json.RawMessage(r.Envelope),
		}
	}
	if b.Head {
		v.EligibleAfter = b.Lane.EligibleAfter
	}
	for _, j := range b.Jobs {
		v.JobIDs = append(v.JobIDs, string(j.ID))
		v.ArtifactIDs = append(v.ArtifactIDs, artifacts(j)...)
	}
	for _, a := range b.Attempts {
		v.Attempts = append(v.Attempts, attemptView(a))
	}
	for _, a := range b.Ledger {
		v.Ledger = append(v.Ledger, auditView(a))
	}
	return v
}

func artifacts(j delivery.ParcelJob) (ids []string) {
	if j.Artifact != "" {
		ids = append(ids, string(j.Artifact))
	}
	for _, c := range j.Children {
		ids = append(ids, artifacts(c)...)
	}
	return ids
}

func rpcKind(m thole.DeliveryMode) string {
	switch m {
	case thole.ModeTurnStart:
		return "turn_start"
	case thole.ModeTurnSteer:
		return "turn_steer"
	}
	return ""
}

func attemptView(a delivery.Attempt) wire.Attempt {
	return wire.Attempt{
		AttemptID: string(a.ID), Generation: a.Generation, State: string(a.State), DeliveryRPCRequestID: a.RPC.RequestID,
		DeliveryRPCKind: rpcKind(a.RPC.Kind), DeliveryRPCStartedAt: a.RPC.StartedAt, DeliveryRPCState: string(a.RPC.State),
		DeliveryRPCMarker: a.RPC.Marker, DeliveryTurnID: string(a.Observation.Turn), ManagedSessionID: string(a.Observation.Attachment),
		SessionEpoch: a.Observation.Epoch, DeliveryAcceptedAt: a.Observation.AcceptedAt, DeliveryObservationState: string(a.Observation.State),
		DeliveryObservationUntil: a.Observation.Deadline, LastObservedTurnEvent: string(a.Observation.LastEvent),
		LastObservedTurnEventAt: a.Observation.LastEventAt, BindingID: a.Arm.Binding, AutomationID: a.Arm.Automation,
		AutomationBindingState: string(a.Arm.AutomationIs), ArmPendingSince: a.Arm.PendingSince, ArmPendingDeadline: a.Arm.Deadline,
		SnapshotRevision: a.SnapshotRevision, DeliveryDeadline: a.DeliveryDeadline, CooldownUntil: a.CooldownUntil,
		CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}
}

func auditView(a delivery.Audit) wire.Audit {
	proof := map[string]string{}
	for k, v := range a.Proof {
		if v != "" {
			proof[k] = v
		}
	}
	return wire.Audit{
		At: a.At, Actor: string(a.Actor.User), Via: a.Actor.Via, Event: a.Event, JobID: string(a.Job), BatchID: string(a.Batch),
		AttemptID: string(a.Attempt), Generation: a.Generation, From: a.From, To: a.To, Proof: proof,
	}
}

// normalize turns a stated policy into a whole one: flags, then the metadata
// document, then the worst case.
func normalize(flags wire.Policy, metadata json.RawMessage) (thole.DeliveryPolicy, error) {
	var doc struct {
		Policy wire.Policy `json:"delivery_policy"`
	}
	if len(metadata) > 0 {
		if err := strictjson.Unmarshal(metadata, &doc); err != nil {
			return thole.DeliveryPolicy{}, thole.Errorf(thole.CodeInvalid, "metadata: %w", err).
				WithHint(`the file holds a JSON object such as {"delivery_policy":{"read_only":true}}`)
		}
	}
	pick := func(flag, file *bool, worst bool) bool {
		switch {
		case flag != nil:
			return *flag
		case file != nil:
			return *file
		}
		return worst
	}
	w := thole.UnknownDeliveryPolicy
	return thole.DeliveryPolicy{
		ReadOnly:            pick(flags.ReadOnly, doc.Policy.ReadOnly, w.ReadOnly),
		RequiresApproval:    pick(flags.RequiresApproval, doc.Policy.RequiresApproval, w.RequiresApproval),
		RequiresNetwork:     pick(flags.RequiresNetwork, doc.Policy.RequiresNetwork, w.RequiresNetwork),
		RequiresWriteAccess: pick(flags.RequiresWriteAccess, doc.Policy.RequiresWriteAccess, w.RequiresWriteAccess),
	}, nil
}

// Staying is the delivery part of the idle rules: running jobs, followed turns and
// whatever falls due within the idle timeout keep the process; long windows do
// not, because the next start sweeps them first, and neither does a receiver that is
// away: what brings it back starts the daemon.
func Staying(p delivery.Pending, now time.Time, idle time.Duration, served func(thole.Target) bool) string {
	switch {
	case p.RunningJobs > 0:
		return "jobs are running"
	case p.Observing.After(now):
		return "a delivery on its way is being followed"
	case !p.Near.IsZero() && !p.Near.After(now.Add(idle)):
		return "delivery work falls due soon"
	}
	for t, n := range p.Ready {
		if n > 0 && served(t) {
			return "deliveries are waiting for their turn"
		}
	}
	return ""
}
