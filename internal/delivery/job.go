package delivery

import (
	"context"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/authz"
)

// Finish ends a job's own work.
type Finish struct {
	Job     thole.JobID
	State   thole.JobState // ready or failed
	Summary string
	// ExitCode of a supervised command; nil for none.
	ExitCode *int64
	// Request identifies the call: repeating it returns the job unchanged.
	Request string
	// Result was made durable before this call; nil for none.
	Result *artifact.Record
	Inline string
	// ArtifactOnly says that the result is too large or not text: the receiver
	// has to read the artifact.
	ArtifactOnly bool
}

// Finish settles a running job. A job with open children stays running, its
// result stored, until the last of them ends.
func (m *Machine) Finish(ctx context.Context, actor thole.Actor, p Finish) (Job, error) {
	if !p.State.Deliverable() {
		return Job{}, thole.Errorf(thole.CodeInternal, "finish job: %q is not an outcome", p.State)
	}
	if err := checkText("finish job", p.Summary, p.Request, p.Inline); err != nil {
		return Job{}, err
	}
	var job Job
	err := m.onJob(ctx, "finish_job", actor, p.Job, func(o *op, j *Job) error {
		if err := o.finish(j, p); err != nil {
			return err
		}
		job = *j
		return o.settle()
	})
	return job, err
}

// finish settles a job of the locked lane. Repeating it changes nothing.
func (o *op) finish(j *Job, p Finish) error {
	switch {
	case p.Request != "" && j.SettledBy == p.Request:
		return nil
	case j.State.Terminal():
		return thole.Errorf(thole.CodeConflict, "job %s is already %s", j.ID, j.State)
	case j.Settled != "":
		return thole.Errorf(thole.CodeConflict, "job %s is already finished and waits for its children", j.ID)
	}
	j.Settled, j.SettledBy, j.ResultSummary, j.CompletedAt, j.UpdatedAt = p.State, p.Request, p.Summary, o.now, o.now
	j.Inline, j.InlineBytes, j.RequiresArtifactRead = p.Inline, int64(len(p.Inline)+len(p.Summary)), p.ArtifactOnly
	proof := map[string]string{"request": p.Request, "outcome": string(p.State)}
	if p.ExitCode != nil {
		j.ExitCode = *p.ExitCode
		proof["exit_code"] = strconv.FormatInt(*p.ExitCode, 10)
	}
	if p.Result != nil {
		j.Artifact = p.Result.ID
		if err := o.InsertArtifact(p.Result); err != nil {
			return err
		}
		proof["artifact"], proof["sha256"] = string(p.Result.ID), p.Result.SHA256
	}
	if err := o.log("job.finish", Audit{Job: j.ID, From: string(thole.JobRunning), To: string(p.State), Proof: proof}); err != nil {
		return err
	}
	released, err := o.release(j)
	if err == nil && !released {
		err = o.UpdateJob(j)
	}
	return err
}

// Place records that a job's command is given to an executor, before it is: what was
// recorded runs there or nowhere. CodeConflict: it went to another one, or is over.
func (m *Machine) Place(ctx context.Context, actor thole.Actor, id thole.JobID, x thole.ExecutorID) error {
	return m.onJob(ctx, "place_job", actor, id, func(o *op, j *Job) error {
		switch {
		case j.Command == nil || x == "":
			return thole.Errorf(thole.CodeInternal, "place job %s: no command, or no executor", j.ID)
		case j.State.Terminal():
			return thole.Errorf(thole.CodeConflict, "job %s is already %s", j.ID, j.State)
		case j.Executor == x:
			return nil
		case j.Executor != "":
			return thole.Errorf(thole.CodeConflict, "job %s was given to executor %s", j.ID, j.Executor)
		}
		j.Executor, j.UpdatedAt = x, o.now
		if err := o.UpdateJob(j); err != nil {
			return err
		}
		return o.log("job.place", Audit{Job: j.ID, Proof: map[string]string{"executor": string(x)}})
	})
}

// onJob locks the lane of a job the actor owns and gives fn the fresh row.
func (m *Machine) onJob(ctx context.Context, name string, actor thole.Actor, id thole.JobID, fn func(*op, *Job) error) error {
	may, err := m.reach(ctx, actor, authz.ReportJob)
	if err != nil {
		return err
	}
	return m.update(ctx, name, actor, func(o *op) error {
		j, err := o.Job(id)
		if err != nil {
			return err
		}
		if j == nil || !may.to(j.Owner) {
			return thole.Errorf(thole.CodeNotFound, "no job %s", id)
		}
		if err := o.onLane(j.LaneID); err != nil {
			return err
		}
		if j, err = o.Job(id); err != nil {
			return err
		}
		return fn(o, j)
	})
}

// release lets a settled job go once it has no open child: into the queue if it
// has no parent, otherwise its parent is asked again. It reports whether it did,
// and has then written the job.
func (o *op) release(j *Job) (released bool, err error) {
	for {
		children, err := o.Children(j.ID)
		if err != nil {
			return released, err
		}
		for _, c := range children {
			if c.State == thole.JobRunning {
				return released, nil
			}
		}
		if j.Settled == "" || j.State != thole.JobRunning {
			return released, nil
		}
		released = true
		j.State, j.UpdatedAt = j.Settled, o.now
		o.lane.LastReadyAt = later(o.lane.LastReadyAt, o.now)
		j.ReadyAt = o.lane.LastReadyAt
		if j.Parent == "" {
			return true, o.enqueue(j, children)
		}
		if err := o.UpdateJob(j); err != nil {
			return true, err
		}
		if j, err = o.Job(j.Parent); err != nil || j == nil {
			return true, err
		}
	}
}

// enqueue puts a ready job into the lane's last batch, or into a new one.
func (o *op) enqueue(j *Job, children []Job) error {
	policy, bytes, artifacts, reads := j.Policy, int64(0), int64(0), false
	err := o.familyOf(j, children, func(d *Job) error {
		if d.ID != j.ID && !d.State.Deliverable() {
			return nil
		}
		policy = policy.Join(d.Policy)
		bytes += d.InlineBytes
		reads = reads || d.RequiresArtifactRead
		if d.Artifact != "" {
			artifacts++
		}
		return nil
	})
	if err != nil {
		return err
	}
	b, err := o.TailBatch(o.lane.ID)
	if err != nil {
		return err
	}
	head, err := o.HeadBatch(o.lane.ID)
	if err != nil {
		return err
	}
	first := b != nil && head != nil && head.ID == b.ID
	fresh := !joins(b, first, j, bytes, j.ReadyAt, o.m.limits)
	if fresh {
		b = &Batch{
			ID: thole.BatchID(o.id()), LaneID: o.lane.ID, Seq: o.lane.NextSeq, Target: j.Target, Mode: modeOf(j.Target),
			State: thole.BatchQueued, Replay: thole.ReplayAutomatic, Policy: policy, FirstReadyAt: j.ReadyAt,
			MaxAttempts: o.m.limits.MaxAttempts, Boundary: Boundary{State: thole.BoundaryNotCrossed}, CreatedAt: o.now,
		}
		if j.Plugin.Owned() {
			b.Plugin = j.Plugin
		}
		o.lane.NextSeq++
	}
	b.Jobs++
	b.InlineBytes += bytes
	b.ArtifactCount += artifacts
	b.Policy = b.Policy.Join(policy)
	b.RequiresArtifactRead = b.RequiresArtifactRead || reads
	b.LastReadyAt, b.UpdatedAt = j.ReadyAt, o.now
	if fresh {
		err = o.InsertBatch(b)
	} else {
		err = o.UpdateBatch(b)
	}
	if err != nil {
		return err
	}
	j.Batch, j.BatchOrder = b.ID, b.Jobs
	if err := o.UpdateJob(j); err != nil {
		return err
	}
	return o.log("job.enqueue", Audit{Job: j.ID, Batch: b.ID, To: string(j.State), Proof: map[string]string{
		"order": strconv.FormatInt(b.Jobs, 10), "ready_at": stamp(j.ReadyAt),
	}})
}
