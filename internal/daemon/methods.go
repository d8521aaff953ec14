package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/strictjson"
)

// Delivery answers the job, batch, audit and artifact methods.
type Delivery struct {
	Machine *delivery.Machine
	Keeper  *artifact.Keeper
	// Forecast says whether a result with this policy would reach the target
	// without a human.
	Forecast func(ctx context.Context, a delivery.Address, t thole.Target, p thole.DeliveryPolicy) wire.Forecast
	// Known is CodeNotFound, with the command that lists threads, for a thread that is
	// proven not to exist.
	Known func(ctx context.Context, a delivery.Address, t thole.Target) error
	// Inside says that commands can run in the boxes of threads.
	Inside bool
	// Changed returns a channel that is closed at the next committed change.
	Changed func() <-chan struct{}
	// Cancelled receives a cancelled job whose command must end.
	Cancelled func(job thole.JobID)
	// Output is where a supervised command's output is captured; nobody writes to
	// it any more when it is handed in, so that it is taken and not copied.
	Output func(job thole.JobID) string
	// Unsure reports an error that leaves open whether a change was committed.
	Unsure func(error) bool
	Check  func(ctx context.Context) (wire.Checked, error)
	Now    func() time.Time
}

// Methods lists what d answers.
func (d *Delivery) Methods() map[string]Method {
	return map[string]Method{
		wire.JobSubmit:     method(d.submit),
		wire.JobComplete:   method(d.complete),
		wire.JobFail:       method(d.fail),
		wire.JobCancel:     method(d.cancel),
		wire.JobQuery:      method(d.Query),
		wire.JobList:       method(d.jobs),
		wire.JobWait:       method(d.wait),
		wire.BatchInspect:  method(d.recover),
		wire.BatchHead:     method(d.inspectHead),
		wire.BatchClose:    method(d.closeHead),
		wire.BatchDeliver:  method(d.deliver),
		wire.BatchList:     method(d.batches),
		wire.AuditList:     method(d.audit),
		wire.Check:         method(d.check),
		wire.ArtifactLease: method(d.lease),
		wire.ArtifactRead:  method(d.read),
		wire.ArtifactPin:   method(d.pin),

		wire.ArtifactInspect: method(d.inspectArtifact),
		wire.ArtifactRevoke:  method(d.revoke),
	}
}

// method decodes strictly: a field we do not know may be one the caller relies on.
func method[P, R any](f func(context.Context, thole.Actor, P) (R, error)) Method {
	return func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
		var p P
		if err := strictjson.UnmarshalKnown(params, &p); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "params: %w", err)
		}
		return f(ctx, actor, p)
	}
}

func (d *Delivery) submit(ctx context.Context, actor thole.Actor, p wire.SubmitParams) (wire.Submitted, error) {
	policy, err := normalize(p.Policy, p.Metadata)
	if err != nil {
		return wire.Submitted{}, err
	}
	owner := thole.DefaultOwner
	owner.User = actor.User
	addr := delivery.Address{User: actor.User, Endpoint: p.Endpoint, Thread: thole.ThreadID(p.ThreadID)}
	if err := d.Known(ctx, addr, thole.Target(p.Target)); err != nil {
		return wire.Submitted{}, err
	}
	var command *delivery.Command
	if p.Command != nil {
		if !d.Inside {
			return wire.Submitted{}, thole.Errorf(thole.CodeUnsupported, "executors last for one turn here, so no command can run in the box of a thread").
				WithHint("set executor.scope = \"thread\", or leave --in-thread out")
		}
		command = &delivery.Command{Argv: p.Command.Argv, Timeout: p.Command.Timeout}
	}
	j, fresh, err := d.Machine.Submit(ctx, actor, delivery.Submit{
		ID: thole.JobID(p.JobID), Owner: owner, Address: addr, Target: thole.Target(p.Target), Parent: thole.JobID(p.ParentID),
		TaskKind: p.TaskKind, Summary: p.Summary, Metadata: string(p.Metadata), DedupeKey: p.DedupeKey, Policy: policy, Supervised: p.Supervised, Command: command,
	})
	if err != nil {
		return wire.Submitted{}, err
	}
	return wire.Submitted{
		JobID: string(j.ID), Status: string(j.State), AcceptedAt: j.CreatedAt, Deduplicated: !fresh && string(j.ID) != p.JobID,
		Delivery: d.Forecast(ctx, addr, j.Target, j.Policy),
	}, nil
}

func (d *Delivery) complete(ctx context.Context, actor thole.Actor, p wire.FinishParams) (wire.Job, error) {
	return d.finish(ctx, actor, thole.JobReady, p)
}

func (d *Delivery) fail(ctx context.Context, actor thole.Actor, p wire.FinishParams) (wire.Job, error) {
	if p.Summary == "" {
		p.Summary = p.Reason
	}
	return d.finish(ctx, actor, thole.JobFailed, p)
}

// finish makes the result durable before the job may end.
func (d *Delivery) finish(ctx context.Context, actor thole.Actor, state thole.JobState, p wire.FinishParams) (wire.Job, error) {
	if len(p.ResultPath) > 0 {
		p.ResultFile = string(p.ResultPath)
	}
	have, _, err := d.Machine.Job(ctx, actor, thole.JobID(p.JobID))
	if err != nil {
		return wire.Job{}, err
	}
	if have.Command != nil && !have.State.Terminal() {
		return wire.Job{}, thole.Errorf(thole.CodeConflict, "job %s runs in the box of its thread, and its command ends it", have.ID).
			WithHint("thole job cancel --job-id %s ends it without a result", have.ID)
	}
	if outcome := cmp.Or(have.Settled, have.State); outcome.Deliverable() && have.SettledBy != p.RequestID {
		return d.finishedAlready(ctx, actor, have, outcome, state, p)
	}
	f := delivery.Finish{Job: have.ID, State: state, Summary: p.Summary, Request: p.RequestID, ExitCode: p.ExitCode}
	if p.ResultFile != "" && !have.State.Terminal() {
		if !filepath.IsAbs(p.ResultFile) {
			return wire.Job{}, thole.Errorf(thole.CodeInvalid, "result file %s is not an absolute path", p.ResultFile)
		}
		ingest := d.Keeper.Ingest
		if have.Supervised && p.ResultFile == d.Output(have.ID) {
			ingest = d.Keeper.Take
		}
		in, err := ingest(ctx, p.ResultFile, have.ID, have.Owner, d.Now().UTC().Truncate(time.Millisecond))
		if err != nil {
			return wire.Job{}, err
		}
		f.Result, f.Inline, f.ArtifactOnly = &in.Record, in.Inline, in.ReadNeeded
	}
	j, err := d.Machine.Finish(ctx, actor, f)
	if f.Result != nil && (err != nil || j.Artifact != f.Result.ID) && !d.Unsure(err) {
		d.Keeper.Discard(*f.Result) // proven unused; what is unsure is left to the sweep
	}
	if err != nil {
		return wire.Job{}, err
	}
	return jobView(j), nil
}

// finishedAlready answers a repeated ending: one that says the same is no error.
func (d *Delivery) finishedAlready(ctx context.Context, actor thole.Actor, have delivery.Job, outcome, state thole.JobState, p wire.FinishParams) (wire.Job, error) {
	differs := ""
	switch {
	case outcome != state:
		differs = "not " + string(state)
	case have.ResultSummary != p.Summary:
		differs = fmt.Sprintf("with the summary %q", have.ResultSummary)
	case p.ExitCode != nil && *p.ExitCode != have.ExitCode:
		differs = fmt.Sprintf("with exit status %d", have.ExitCode)
	case (p.ResultFile == "") != (have.Artifact == ""):
		differs = "without a result file"
		if have.Artifact != "" {
			differs = "with a result file"
		}
	case p.ResultFile != "":
		kept, err := d.Keeper.Get(ctx, actor, have.Artifact)
		if err != nil {
			return wire.Job{}, err
		}
		same, err := d.Keeper.Same(p.ResultFile, kept)
		if err != nil {
			return wire.Job{}, err
		}
		if !same {
			differs = "with another result file"
		}
	}
	if differs == "" {
		return jobView(have), nil
	}
	return wire.Job{}, thole.Errorf(thole.CodeConflict, "job %s is already %s, %s", have.ID, outcome, differs).
		WithHint("thole job query %s shows what was reported; a job ends once, so report a further result as a job of its own", have.ID)
}

func (d *Delivery) cancel(ctx context.Context, actor thole.Actor, p wire.FinishParams) (wire.Job, error) {
	j, err := d.Machine.Cancel(ctx, actor, thole.JobID(p.JobID), p.RequestID, p.Reason)
	if err != nil {
		return wire.Job{}, err
	}
	if d.Cancelled != nil {
		d.Cancelled(j.ID)
	}
	return jobView(j), nil
}

// Query shows a job with its batch and attempts.
func (d *Delivery) Query(ctx context.Context, actor thole.Actor, p wire.JobParams) (wire.Job, error) {
	j, b, err := d.Machine.Job(ctx, actor, thole.JobID(p.JobID))
	if err != nil {
		return wire.Job{}, err
	}
	v := jobView(j)
	if b != nil {
		full, err := d.Machine.Inspect(ctx, actor, b.ID)
		if err != nil {
			return wire.Job{}, err
		}
		bv := batchView(full)
		bv.Ledger, bv.Jobs = nil, nil
		v.Batch = &bv
	}
	return v, nil
}

func (d *Delivery) jobs(ctx context.Context, actor thole.Actor, p wire.JobListParams) ([]wire.Job, error) {
	switch thole.JobState(p.Status) {
	case "", thole.JobRunning, thole.JobReady, thole.JobFailed, thole.JobCancelled:
	default:
		return nil, thole.Errorf(thole.CodeInvalid, "no job has the status %q", p.Status).WithHint("use running, ready, failed or cancelled")
	}
	jobs, err := d.Machine.Jobs(ctx, actor, delivery.JobFilter{Thread: thole.ThreadID(p.ThreadID), State: thole.JobState(p.Status), After: thole.JobID(p.After), Limit: p.Limit})
	out := make([]wire.Job, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, jobView(j))
	}
	return out, err
}

// wait answers when every job has ended. A lost connection only ends the waiting.
func (d *Delivery) wait(ctx context.Context, actor thole.Actor, p wire.WaitParams) ([]wire.Job, error) {
	for {
		changed := d.Changed()
		out, open := make([]wire.Job, 0, len(p.JobIDs)), false
		for _, id := range p.JobIDs {
			j, _, err := d.Machine.Job(ctx, actor, thole.JobID(id))
			if err != nil {
				return nil, err
			}
			open = open || !j.State.Terminal()
			out = append(out, jobView(j))
		}
		if !open {
			return out, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (d *Delivery) inspect(ctx context.Context, actor thole.Actor, p wire.BatchParams) (wire.Batch, error) {
	v, err := d.Machine.Inspect(ctx, actor, thole.BatchID(p.BatchID))
	if err != nil {
		return wire.Batch{}, err
	}
	return batchView(v), nil
}

// recover is inspect with permissions to read what a heartbeat was given by reference.
func (d *Delivery) recover(ctx context.Context, actor thole.Actor, p wire.BatchParams) (wire.Batch, error) {
	b, err := d.inspect(ctx, actor, p)
	if err != nil || b.Recovery == nil {
		return b, err
	}
	for _, id := range b.ArtifactIDs {
		l, err := d.lease(ctx, actor, wire.ArtifactParams{ArtifactID: id})
		if thole.CodeOf(err) == thole.CodeGone || thole.CodeOf(err) == thole.CodeNotFound {
			continue // its retention is over
		}
		if err != nil {
			return wire.Batch{}, err
		}
		b.Recovery.Leases = append(b.Recovery.Leases, l)
	}
	return b, nil
}

func (d *Delivery) inspectHead(ctx context.Context, actor thole.Actor, p wire.BatchParams) (wire.Batch, error) {
	lane, err := d.Machine.FindLane(ctx, actor, thole.ThreadID(p.SourceThreadID), p.Endpoint)
	if err != nil {
		return wire.Batch{}, err
	}
	v, err := d.Machine.InspectHead(ctx, actor, lane.ID)
	if err != nil {
		return wire.Batch{}, err
	}
	return batchView(v), nil
}

func (d *Delivery) closeHead(ctx context.Context, actor thole.Actor, p wire.BatchParams) (wire.Batch, error) {
	lane, err := d.Machine.FindLane(ctx, actor, thole.ThreadID(p.SourceThreadID), p.Endpoint)
	if err != nil {
		return wire.Batch{}, err
	}
	b, err := d.Machine.CloseHead(ctx, actor, lane.ID, thole.BatchID(p.BatchID), thole.CloseReason(p.Reason))
	if err != nil {
		return wire.Batch{}, err
	}
	return d.inspect(ctx, actor, wire.BatchParams{BatchID: string(b.ID)})
}

// deliver sends a held batch because a person says so.
func (d *Delivery) deliver(ctx context.Context, actor thole.Actor, p wire.DeliverParams) (wire.Batch, error) {
	b, err := d.Machine.Release(ctx, actor, thole.BatchID(p.BatchID), p.Anyway)
	if err != nil {
		return wire.Batch{}, err
	}
	return d.inspect(ctx, actor, wire.BatchParams{BatchID: string(b.ID)})
}

func (d *Delivery) batches(ctx context.Context, actor thole.Actor, p wire.BatchListParams) ([]wire.Batch, error) {
	list, err := d.Machine.Batches(ctx, actor, delivery.BatchFilter{Thread: thole.ThreadID(p.ThreadID), Open: p.Open, Held: p.Held, After: thole.BatchID(p.After), Limit: p.Limit})
	out := make([]wire.Batch, 0, len(list))
	for _, b := range list {
		out = append(out, batchView(b))
	}
	return out, err
}

// maxAudit bounds an answer to someone who named no bound.
const maxAudit = 10_000

func (d *Delivery) audit(ctx context.Context, actor thole.Actor, p wire.AuditParams) ([]wire.Audit, error) {
	f := delivery.AuditFilter{Job: thole.JobID(p.JobID), Batch: thole.BatchID(p.BatchID), Limit: p.Limit}
	if f.Limit <= 0 {
		f.Limit = maxAudit
	}
	if p.SourceThreadID != "" {
		lane, err := d.Machine.FindLane(ctx, actor, thole.ThreadID(p.SourceThreadID), p.Endpoint)
		if err != nil {
			return nil, err
		}
		f.LaneID = lane.ID
	}
	rows, err := d.Machine.Ledger(ctx, actor, f)
	out := make([]wire.Audit, 0, len(rows))
	for _, a := range rows {
		out = append(out, auditView(a))
	}
	return out, err
}

func (d *Delivery) check(ctx context.Context, _ thole.Actor, _ struct{}) (wire.Checked, error) {
	out, err := d.Check(ctx)
	if out.Violations == nil {
		out.Violations = []wire.Violation{}
	}
	return out, err
}
