package delivery

import (
	"context"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
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
	// Supervised jobs are ended by their supervisor, or by the sweep that finds it dead.
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
