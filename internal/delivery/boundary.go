package delivery

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// maxEnvelope bounds what is handed over and kept for recovery in a batch's row.
const maxEnvelope = 256 << 10

// Envelope is what was handed over, for an operator to recover.
type Envelope struct {
	Batch         thole.BatchID      `json:"batch_id"`
	Thread        thole.ThreadID     `json:"source_thread_id"`
	Attempt       thole.AttemptID    `json:"attempt_id"`
	Generation    int64              `json:"generation"`
	Revision      int64              `json:"snapshot_revision"`
	ClosedAt      time.Time          `json:"closed_at"`
	Reason        thole.CloseReason  `json:"close_reason"`
	Payload       string             `json:"inline_payload_summary"`
	Artifacts     []thole.ArtifactID `json:"artifact_ids"`
	CreatedAt     time.Time          `json:"created_at"`
	RetainedUntil time.Time          `json:"retention_until"`
}

// Cross is a waking thread's request for the content of its batch.
type Cross struct {
	Thread   thole.ThreadID
	Batch    thole.BatchID
	Attempt  thole.AttemptID
	Gen      int64
	Revision int64
	// Observed is the installation's fingerprint now.
	Observed string
	// Compose writes what the thread reads. It must be a pure function.
	Compose func(Parcel) string
}

// Crossed is the answer: only a fresh crossing has the payload.
type Crossed struct {
	Outcome thole.DesktopOutcome
	Why     string
	Payload string
}

// Cross hands a batch over: in one step it writes the recovery envelope, closes the batch as
// handoff_recorded for good and returns its content. That happens once for a batch, however
// often it is asked for; every other answer changes nothing and has no content.
func (m *Machine) Cross(ctx context.Context, actor thole.Actor, p Cross) (out Crossed, err error) {
	err = m.update(ctx, "note_boundary_crossed", actor, func(o *op) error {
		out = Crossed{Outcome: thole.OutcomeStale, Why: "no such attempt of this thread"}
		a, err := o.Tx.Attempt(p.Attempt)
		if err != nil || a == nil {
			return err
		}
		if err := o.onLane(a.LaneID); err != nil {
			return err
		}
		if o.lane.User != actor.User || o.lane.Thread != p.Thread {
			return nil
		}
		out, err = o.cross(p)
		if err != nil || out.Outcome != thole.OutcomeCrossed {
			return err
		}
		return o.settle()
	})
	if err != nil {
		return Crossed{}, err
	}
	return out, nil
}

// cross decides and hands over. Its checks are those of the design, in its order: the
// whole token, the attempt, the heartbeat, the binding, the installation, the batch.
func (o *op) cross(p Cross) (Crossed, error) {
	no := func(outcome thole.DesktopOutcome, why string) (Crossed, error) {
		return Crossed{Outcome: outcome, Why: why}, nil
	}
	a, err := o.Attempt(p.Attempt)
	if err != nil {
		return Crossed{}, err
	}
	f := Fence{LaneID: o.lane.ID, Batch: p.Batch, Attempt: p.Attempt, Generation: p.Gen, Revision: p.Revision}
	if p.Revision == 0 || !f.matches(a) {
		return no(thole.OutcomeStale, "the token is of another attempt")
	}
	b, err := o.Batch(a.Batch)
	if err != nil {
		return Crossed{}, err
	}
	if b.Boundary.State != thole.BoundaryNotCrossed {
		return no(thole.OutcomeCrossedOnce, "its content was handed over at "+stamp(b.Boundary.CrossedAt))
	}
	head, err := o.HeadBatch(o.lane.ID)
	if err != nil {
		return Crossed{}, err
	}
	if b.State == thole.BatchClosed || head == nil || head.ID != b.ID || b.HeadAttempt != a.ID || b.Replay != thole.ReplayAutomatic || b.Target != thole.TargetDesktop {
		return no(thole.OutcomeStale, "the batch is not first, not automatic or closed")
	}
	switch a.State {
	case thole.AttemptCooldown:
	case thole.AttemptPrepared, thole.AttemptArmPending, thole.AttemptAcceptPending:
		return no(thole.OutcomeNotReady, "the attempt is "+string(a.State))
	default:
		return no(thole.OutcomeStale, "the attempt is "+string(a.State))
	}
	in, binding, err := o.host()
	if err != nil {
		return Crossed{}, err
	}
	if why := in.Unfit(binding, p.Observed); why != "" {
		return no(thole.OutcomeInvalid, why)
	}
	if binding.Armed != a.Generation {
		return no(thole.OutcomeStale, "the heartbeat is armed for another generation")
	}
	if b.RequiresArtifactRead || !o.now.Before(b.WindowEndsAt) {
		return no(thole.OutcomeStale, "the batch is not for a heartbeat, or its window is over")
	}
	return o.handOver(p, b, a)
}

// handOver writes everything of a crossing.
func (o *op) handOver(p Cross, b *Batch, a *Attempt) (Crossed, error) {
	jobs, err := o.contents(b.ID)
	if err != nil {
		return Crossed{}, err
	}
	carried := *a
	carried.RPC.Marker = "thole-" + string(a.ID)
	payload := p.Compose(Parcel{Lane: *o.lane, Batch: *b, Attempt: carried, Jobs: jobs})
	retained := later(o.now.Add(o.m.limits.RecoveryKeep), b.Boundary.PinUntil)
	env := Envelope{
		Batch: b.ID, Thread: o.lane.Thread, Attempt: a.ID, Generation: a.Generation, Revision: a.SnapshotRevision, ClosedAt: o.now,
		Reason: thole.CloseHandoffRecorded, Payload: payload, Artifacts: artifactsOf(jobs), CreatedAt: o.now, RetainedUntil: retained,
	}
	text, err := json.Marshal(env)
	if err != nil {
		return Crossed{}, err
	}
	if payload == "" || len(text) > maxEnvelope {
		return Crossed{}, thole.Errorf(thole.CodeConflict, "cross boundary: the content is empty or larger than %d bytes", maxEnvelope).
			WithHint("thole batch inspect --batch-id %s; then close it", b.ID)
	}
	b.Boundary = Boundary{
		State: thole.BoundaryCrossed, CrossedAt: o.now, Attempt: a.ID, Generation: a.Generation, SnapshotRevision: a.SnapshotRevision,
		Envelope: string(text), EnvelopeBytes: int64(len(text)), RetentionUntil: retained,
	}
	b.Replay, b.HeldFor = thole.ReplayManual, thole.HoldHandedOver
	proof := map[string]string{
		"snapshot_revision": strconv.FormatInt(a.SnapshotRevision, 10), "envelope_bytes": strconv.Itoa(len(text)), "retention_until": stamp(retained),
	}
	if err := o.closeBatch(b, thole.CloseHandoffRecorded, proof); err != nil {
		return Crossed{}, err
	}
	return Crossed{Outcome: thole.OutcomeCrossed, Payload: payload}, nil
}

func artifactsOf(jobs []ParcelJob) []thole.ArtifactID {
	ids := []thole.ArtifactID{}
	for _, j := range jobs {
		if j.Artifact != "" {
			ids = append(ids, j.Artifact)
		}
		ids = append(ids, artifactsOf(j.Children)...)
	}
	return ids
}
