package supervise

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/strictjson"
)

// startGrace is how long a supervisor may take to say who it is.
const startGrace = 30 * time.Second

// Runs is the owner's view of its supervised commands.
type Runs struct {
	home    string
	machine *delivery.Machine
	keeper  *artifact.Keeper
	// unsure reports an error that leaves open whether a change was committed.
	unsure func(error) bool
}

// NewRuns prepares the directory.
func NewRuns(home string, m *delivery.Machine, k *artifact.Keeper, unsure func(error) bool) (*Runs, error) {
	if err := os.MkdirAll(dirOf(home), 0o700); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "supervised jobs: %w", err)
	}
	return &Runs{home, m, k, unsure}, nil
}

// Output is where the output of a job's command is captured.
func (r *Runs) Output(job thole.JobID) string { return OutputFile(r.home, job) }

// Cancel ends the command of a job. Its supervisor kills every descendant.
func (r *Runs) Cancel(job thole.JobID) {
	if id, ok := r.identity(job); ok && id.Alive() == nil {
		_ = syscall.Kill(id.PID, syscall.SIGTERM)
	}
}

func (r *Runs) identity(job thole.JobID) (procid.Identity, bool) {
	var id procid.Identity
	b, err := os.ReadFile(file(r.home, job, ".json"))
	return id, err == nil && strictjson.Unmarshal(b, &id) == nil
}

// Sweep ends jobs whose supervisor is gone and commands whose job is over. It may
// run at any time. One job that cannot be ended keeps no other from it.
func (r *Runs) Sweep(ctx context.Context) error {
	running, err := r.machine.Supervised(ctx)
	if err != nil {
		return err
	}
	open := map[thole.JobID]bool{}
	for _, j := range running {
		open[j.ID] = true
		err = cmp.Or(err, r.settle(ctx, j))
	}
	entries, e := os.ReadDir(dirOf(r.home))
	if e != nil {
		return cmp.Or[error](err, thole.Errorf(thole.CodeUnavailable, "supervised jobs: %w", e))
	}
	for _, e := range entries {
		job, suffix, _ := strings.Cut(e.Name(), ".")
		if suffix == "json" && !open[thole.JobID(job)] {
			err = cmp.Or(err, r.tidy(ctx, thole.JobID(job), e))
		}
	}
	return err
}

// tidy removes what is left of a job that is over, and ends its command if it was
// cancelled while its supervisor could not be reached. The job itself is asked: that a
// list did not name it says nothing.
func (r *Runs) tidy(ctx context.Context, job thole.JobID, e fs.DirEntry) error {
	state, err := r.machine.StateOf(ctx, job)
	if err != nil || state == thole.JobRunning {
		return err
	}
	if id, ok := r.identity(job); ok && id.Alive() == nil {
		if state == thole.JobCancelled {
			r.Cancel(job)
		}
	} else if fi, err := e.Info(); err == nil && time.Since(fi.ModTime()) > startGrace {
		forget(r.home, job)
	}
	return nil
}

func (r *Runs) settle(ctx context.Context, j delivery.Job) error {
	var res Result
	b, err := os.ReadFile(file(r.home, j.ID, ".result"))
	id, known := r.identity(j.ID)
	switch {
	case err == nil && strictjson.Unmarshal(b, &res) == nil && res.State.Deliverable():
		if known && id.Alive() == nil {
			return nil // it is reporting just now
		}
	case known && id.Alive() == nil:
		return nil
	case !known && time.Since(j.CreatedAt) < startGrace:
		return nil
	case !known:
		res = Result{State: thole.JobFailed, ExitCode: -1, Summary: "the supervisor never started"}
	default:
		res = Result{State: thole.JobFailed, ExitCode: -1, Summary: "the supervisor ended without a result; the command's fate is unknown"}
	}
	_ = os.Remove(file(r.home, j.ID, ".room")) // for the end, which is now
	code := int64(res.ExitCode)
	f := delivery.Finish{Job: j.ID, State: res.State, Summary: res.Summary, Request: "supervisor-" + string(j.ID), ExitCode: &code}
	if _, err := os.Stat(OutputFile(r.home, j.ID)); err == nil {
		in, err := r.keeper.Take(ctx, OutputFile(r.home, j.ID), j.ID, j.Owner, time.Now().UTC().Truncate(time.Millisecond))
		if err != nil {
			return err
		}
		f.Result, f.Inline, f.ArtifactOnly = &in.Record, in.Inline, in.ReadNeeded
	} else if !errors.Is(err, fs.ErrNotExist) {
		return thole.Errorf(thole.CodeUnavailable, "supervised jobs: %w", err)
	}
	done, err := r.machine.Finish(ctx, thole.Actor{User: j.Owner.User, Via: "system"}, f)
	if f.Result != nil && (err != nil || done.Artifact != f.Result.ID) && !r.unsure(err) {
		r.keeper.Discard(*f.Result)
	}
	if err == nil || thole.CodeOf(err) == thole.CodeConflict {
		forget(r.home, j.ID)
		return nil
	}
	return err
}
