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
	// Command is run in the box of the thread.
	Command *Command
	// Plugin is what a plugin's result is delivered by.
	Plugin *thole.PluginTarget
}

// Bounds of commands that run in the box of a thread.
const (
	maxCommands    = 16 // of one thread at a time
	maxCommandArgs = 1024
	maxCommandText = 64 << 10
)

// check refuses a command that no box could run.
func (c *Command) check() error {
	bad := func(format string, args ...any) error {
		return thole.Errorf(thole.CodeInvalid, "submit job: "+format, args...)
	}
	size := 0
	for _, a := range c.Argv {
		size += len(a)
	}
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return bad("no command to run")
	case len(c.Argv) > maxCommandArgs || size > maxCommandText:
		return bad("the command has %d arguments with %d bytes; at most %d with %d are taken", len(c.Argv), size, maxCommandArgs, maxCommandText)
	case c.Timeout < 0:
		return bad("the timeout is negative")
	}
	return checkText("submit job", append([]string{string(c.Turn)}, c.Argv...)...)
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
	case p.Plugin != nil && p.Target != thole.TargetCLI:
		return thole.Errorf(thole.CodeInvalid, "submit job: a plugin's result goes to a thread of an app-server")
	case p.Command != nil && (p.Supervised || p.Target != thole.TargetThole):
		return thole.Errorf(thole.CodeInvalid, "submit job: only a job of thole's own threads runs in the box of its thread").WithHint("use --target thole")
	}
	if p.Command != nil {
		if err := p.Command.check(); err != nil {
			return err
		}
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
		j, first, err := o.submit(p)
		if err == nil {
			job, fresh = *j, first
		}
		return err
	})
	return job, fresh, err
}

// Enqueue records a job that has ended already, in one step: it is there with its result,
// or not at all. The second result is false when a job with the same id was there; that job
// is returned as it is.
func (m *Machine) Enqueue(ctx context.Context, actor thole.Actor, p Submit, f Finish) (Job, bool, error) {
	if err := p.validate(); err != nil {
		return Job{}, false, err
	}
	if err := checkText("enqueue job", f.Summary, f.Request, f.Inline); err != nil {
		return Job{}, false, err
	}
	var job Job
	var fresh bool
	err := m.update(ctx, "enqueue_job", actor, func(o *op) error {
		j, first, err := o.submit(p)
		if err == nil && first {
			err = o.finish(j, f)
		}
		if err != nil {
			return err
		}
		if job, fresh = *j, first; !first {
			return nil
		}
		return o.settle()
	})
	return job, fresh, err
}

// submit records a running job of a lane, which it locks, or finds the one that is there.
func (o *op) submit(p Submit) (j *Job, fresh bool, err error) {
	if err := o.ensureLane(p.Owner, p.Address); err != nil {
		return nil, false, err
	}
	have, err := o.Job(p.ID)
	if err == nil && have == nil && p.DedupeKey != "" {
		have, err = o.JobByDedupe(o.lane.ID, p.DedupeKey)
	}
	if err != nil {
		return nil, false, err
	}
	if have != nil {
		if have.LaneID != o.lane.ID {
			return nil, false, thole.Errorf(thole.CodeConflict, "submit job: job id %s is in use for another thread", p.ID)
		}
		return have, false, nil
	}
	if p.Parent != "" {
		if err := o.checkParent(p); err != nil {
			return nil, false, err
		}
	}
	if p.Command != nil {
		if err := o.checkCommands(); err != nil {
			return nil, false, err
		}
		o.AfterCommit(func() { o.m.wake(nil) }) // it can be run
	}
	j = &Job{
		ID: p.ID, LaneID: o.lane.ID, Owner: p.Owner, Target: p.Target, Endpoint: p.Address.Endpoint, Thread: p.Address.Thread,
		Parent: p.Parent, State: thole.JobRunning, TaskKind: p.TaskKind, TaskSummary: p.Summary, Metadata: p.Metadata,
		DedupeKey: p.DedupeKey, Policy: p.Policy, Supervised: p.Supervised, Command: p.Command, Plugin: p.Plugin, ExitCode: -1, CreatedAt: o.now, UpdatedAt: o.now,
	}
	if err := o.InsertJob(j); err != nil {
		return nil, false, err
	}
	proof := map[string]string{"dedupe_key": p.DedupeKey, "parent": string(p.Parent)}
	if p.Plugin != nil {
		proof["plugin"], proof["idempotency_key"], proof["managed_session_id"] = p.Plugin.Plugin, p.Plugin.Key, string(p.Plugin.Session)
	}
	return j, true, o.log("job.submit", Audit{Job: j.ID, To: string(thole.JobRunning), Proof: proof})
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

// checkCommands bounds what one thread runs: an agent asks for it.
func (o *op) checkCommands() error {
	running, err := o.Jobs(JobFilter{Commands: true, LaneID: o.lane.ID, Limit: maxCommands})
	if err == nil && len(running) >= maxCommands {
		err = thole.Errorf(thole.CodeOverloaded, "submit job: %d jobs of this thread run already", len(running)).
			WithHint("wait until one has ended, or cancel one: thole job list --thread-id %s --status running", o.lane.Thread)
	}
	return err
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
