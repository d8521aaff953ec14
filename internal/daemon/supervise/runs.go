package supervise

import (
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
}

// NewRuns prepares the directory.
func NewRuns(home string, m *delivery.Machine, k *artifact.Keeper) (*Runs, error) {
	if err := os.MkdirAll(dirOf(home), 0o700); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "supervised jobs: %w", err)
	}
	return &Runs{home, m, k}, nil
}

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
// run at any time.
func (r *Runs) Sweep(ctx context.Context) error {
	running, err := r.machine.Supervised(ctx)
	if err != nil {
		return err
	}
	open := map[thole.JobID]bool{}
	for _, j := range running {
		open[j.ID] = true
		if err := r.settle(ctx, j); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dirOf(r.home))
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "supervised jobs: %w", err)
	}
	for _, e := range entries {
		job, suffix, _ := strings.Cut(e.Name(), ".")
		if suffix != "json" || open[thole.JobID(job)] {
			continue
		}
		if id, ok := r.identity(thole.JobID(job)); ok && id.Alive() == nil {
			r.stopIfOver(ctx, thole.JobID(job))
		} else if fi, err := e.Info(); err == nil && time.Since(fi.ModTime()) > startGrace {
			forget(r.home, thole.JobID(job))
		}
	}
	return nil
}

// stopIfOver ends the command of a job that was cancelled while nobody could tell
// its supervisor.
func (r *Runs) stopIfOver(ctx context.Context, id thole.JobID) {
	if j, _, err := r.machine.Job(ctx, thole.SystemActor, id); err == nil && j.State == thole.JobCancelled {
		r.Cancel(id)
	}
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
	code := int64(res.ExitCode)
	f := delivery.Finish{Job: j.ID, State: res.State, Summary: res.Summary, Request: "supervisor-" + string(j.ID), ExitCode: &code}
	if _, err := os.Stat(OutputFile(r.home, j.ID)); err == nil {
		in, err := r.keeper.Ingest(ctx, OutputFile(r.home, j.ID), j.ID, j.Owner, time.Now().UTC().Truncate(time.Millisecond))
		if err != nil {
			return err
		}
		f.Result, f.Inline, f.ArtifactOnly = &in.Record, in.Inline, in.ReadNeeded
	} else if !errors.Is(err, fs.ErrNotExist) {
		return thole.Errorf(thole.CodeUnavailable, "supervised jobs: %w", err)
	}
	_, err = r.machine.Finish(ctx, thole.Actor{User: j.Owner.User, Via: "system"}, f)
	if err == nil || thole.CodeOf(err) == thole.CodeConflict {
		forget(r.home, j.ID)
		return nil
	}
	return err
}
