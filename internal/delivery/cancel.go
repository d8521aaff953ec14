package delivery

import (
	"context"

	thole "github.com/tholehq/thole"
)

// Cancel ends a job and everything below it without a result. A result that is
// queued but not on its way is withdrawn with its batch if it travels alone.
func (m *Machine) Cancel(ctx context.Context, actor thole.Actor, id thole.JobID, request, reason string) (Job, error) {
	if err := checkText("cancel job", request, reason); err != nil {
		return Job{}, err
	}
	var job Job
	err := m.onJob(ctx, "cancel_job", actor, id, func(o *op, j *Job) error {
		if j.State == thole.JobCancelled {
			job = *j
			return nil
		}
		if j.State.Terminal() {
			if err := o.withdraw(j, reason); err != nil {
				return err
			}
		}
		if err := o.family(j, func(d *Job) error { return o.cancel(d, request, reason) }); err != nil {
			return err
		}
		fresh, err := o.Job(id)
		if err != nil {
			return err
		}
		job = *fresh
		if job.Parent != "" {
			parent, err := o.Job(job.Parent)
			if err != nil {
				return err
			}
			if _, err := o.release(parent); err != nil {
				return err
			}
		}
		return o.settle()
	})
	return job, err
}

// withdraw closes the batch of a finished job that was not delivered yet.
func (o *op) withdraw(j *Job, reason string) error {
	refuse := func(why string) error {
		return thole.Errorf(thole.CodeConflict, "job %s is %s and %s", j.ID, j.State, why).
			WithHint("thole batch inspect-head shows where its result is; thole batch close-head ends the batch")
	}
	if j.Batch == "" {
		return refuse("travels inside its parent")
	}
	b, err := o.Batch(j.Batch)
	if err != nil {
		return err
	}
	open, err := o.OpenAttempt(o.lane.ID)
	if err != nil {
		return err
	}
	switch {
	case b.State == thole.BatchClosed:
		return refuse("its batch is closed")
	case b.Jobs > 1:
		return refuse("shares a batch with other results")
	case open != nil && open.Batch == b.ID && open.State != thole.AttemptPrepared:
		return refuse("its batch is on its way")
	}
	return o.closeBatch(b, thole.CloseCancelled, map[string]string{"job": string(j.ID), "reason": reason})
}

func (o *op) cancel(j *Job, request, reason string) error {
	if j.State == thole.JobCancelled {
		return nil
	}
	from := j.State
	j.State, j.SettledBy, j.UpdatedAt, j.CompletedAt = thole.JobCancelled, request, o.now, later(j.CompletedAt, o.now)
	if err := o.UpdateJob(j); err != nil {
		return err
	}
	if j.Artifact != "" {
		if err := o.ReleaseArtifacts([]thole.ArtifactID{j.Artifact}, o.now); err != nil {
			return err
		}
	}
	return o.log("job.cancel", Audit{Job: j.ID, From: string(from), To: string(thole.JobCancelled), Proof: map[string]string{"request": request, "reason": reason}})
}
