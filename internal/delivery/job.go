package delivery

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
)

// Submit asks for a job.
type Submit struct {
	// ID is chosen by the caller, so that repeating a request whose answer was
	// lost returns the job instead of making a second one.
	ID        thole.JobID
	Owner     thole.Owner
	Address   Address
	Target    thole.Target
	Parent    thole.JobID
	TaskKind  string
	Summary   string
	Metadata  string
	DedupeKey string
	Policy    thole.DeliveryPolicy
	// Supervised jobs are ended by their supervisor, or by whoever finds it dead.
	Supervised bool
}

func (p Submit) validate() error {
	switch {
	case !thole.ValidUUID(string(p.ID)):
		return thole.Errorf(thole.CodeInvalid, "submit job: the job id is not a UUID")
	case !p.Target.Valid():
		return thole.Errorf(thole.CodeInvalid, "submit job: unknown target %q", p.Target).WithHint("use --target cli, desktop or thole")
	case p.Address.Thread == "":
		return thole.Errorf(thole.CodeInvalid, "submit job: no thread id").WithHint("pass --thread-id")
	case p.Address.User == "":
		return thole.Errorf(thole.CodeUnauthorized, "submit job: no owner")
	}
	return checkText("submit job", string(p.Address.Thread), p.Address.Endpoint, p.TaskKind, p.Summary, p.Metadata, p.DedupeKey)
}

// checkText refuses what not every engine can store.
func checkText(what string, texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return thole.Errorf(thole.CodeInvalid, "%s: a text is not valid UTF-8 or holds a zero byte", what)
		}
	}
	return nil
}

// Submit records a running job. The second result is false when a job with the
// same id or dedupe key existed; that job is returned.
func (m *Machine) Submit(ctx context.Context, actor thole.Actor, p Submit) (Job, bool, error) {
	if err := p.validate(); err != nil {
		return Job{}, false, err
	}
	var job Job
	var fresh bool
	err := m.update(ctx, "submit_job", actor, func(o *op) error {
		if err := o.ensureLane(p.Owner, p.Address); err != nil {
			return err
		}
		have, err := o.Job(p.ID)
		if err == nil && have == nil && p.DedupeKey != "" {
			have, err = o.JobByDedupe(o.lane.ID, p.DedupeKey)
		}
		if err != nil {
			return err
		}
		if have != nil {
			if have.LaneID != o.lane.ID {
				return thole.Errorf(thole.CodeConflict, "submit job: job id %s is in use for another thread", p.ID)
			}
			job, fresh = *have, false
			return nil
		}
		if p.Parent != "" {
			if err := o.checkParent(p); err != nil {
				return err
			}
		}
		job = Job{
			ID: p.ID, LaneID: o.lane.ID, Owner: p.Owner, Target: p.Target, Endpoint: p.Address.Endpoint, Thread: p.Address.Thread,
			Parent: p.Parent, State: thole.JobRunning, TaskKind: p.TaskKind, TaskSummary: p.Summary, Metadata: p.Metadata,
			DedupeKey: p.DedupeKey, Policy: p.Policy, Supervised: p.Supervised, ExitCode: -1, CreatedAt: o.now, UpdatedAt: o.now,
		}
		fresh = true
		if err := o.InsertJob(&job); err != nil {
			return err
		}
		return o.log("job.submit", Audit{Job: job.ID, To: string(thole.JobRunning), Proof: map[string]string{"dedupe_key": p.DedupeKey, "parent": string(p.Parent)}})
	})
	return job, fresh, err
}

func (o *op) ensureLane(owner thole.Owner, a Address) error {
	id := a.LaneID()
	lane, err := o.LockLane(id)
	if err != nil {
		return err
	}
	if lane == nil {
		if err := o.InsertLane(&Lane{ID: id, Owner: owner, Address: a, NextSeq: 1}); err != nil {
			return err
		}
		if lane, err = o.LockLane(id); err != nil {
			return err
		}
	}
	o.lane, o.now = lane, o.Now()
	return nil
}

func (o *op) checkParent(p Submit) error {
	parent, err := o.Job(p.Parent)
	switch {
	case err != nil:
		return err
	case parent == nil || parent.Owner.User != p.Owner.User:
		return thole.Errorf(thole.CodeNotFound, "submit job: no parent job %s", p.Parent)
	case parent.LaneID != o.lane.ID || parent.Target != p.Target:
		return thole.Errorf(thole.CodeInvalid, "submit job: a child belongs to the thread and target of its parent")
	case parent.State.Terminal():
		return thole.Errorf(thole.CodeConflict, "submit job: parent job %s is %s", p.Parent, parent.State)
	}
	return nil
}

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
		switch {
		case p.Request != "" && j.SettledBy == p.Request:
			job = *j
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
		if err != nil {
			return err
		}
		job = *j
		return o.settle()
	})
	return job, err
}

// onJob locks the lane of a job the actor owns and gives fn the fresh row.
func (m *Machine) onJob(ctx context.Context, name string, actor thole.Actor, id thole.JobID, fn func(*op, *Job) error) error {
	return m.update(ctx, name, actor, func(o *op) error {
		j, err := o.Job(id)
		if err != nil {
			return err
		}
		if j == nil || j.Owner.User != actor.User {
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
	fresh := !joins(b, j, bytes, j.ReadyAt, o.m.limits)
	if fresh {
		b = &Batch{
			ID: thole.BatchID(o.id()), LaneID: o.lane.ID, Seq: o.lane.NextSeq, Target: j.Target, Mode: modeOf(j.Target),
			State: thole.BatchQueued, Replay: thole.ReplayAutomatic, Policy: policy, FirstReadyAt: j.ReadyAt,
			MaxAttempts: o.m.limits.MaxAttempts, Boundary: Boundary{State: thole.BoundaryNotCrossed}, CreatedAt: o.now,
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

// withdraw closes the batch of a finished job that nobody was told about yet.
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
