// Package threadjob runs the commands of jobs in the boxes of their threads: it has the
// executor started, gives it the command once, keeps the output as it comes, and ends
// the job with what the command came to.
//
// The command runs under executord, next to turns, and outlives the owner of the home.
// Which executor it went to is recorded before it goes, so that it never runs twice:
// where that executor is gone, the job fails with the reason. It holds no durable truth
// of its own but the output that it has read so far.
package threadjob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
)

// Threads is what is asked of threads.
type Threads interface {
	Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error)
}

// Config makes a Runner.
type Config struct {
	Machine *delivery.Machine
	Keeper  *artifact.Keeper
	Threads Threads
	Rows    executor.Rows
	Driver  executor.Driver
	// Ready returns the thread's executor once it runs with its files.
	Ready func(ctx context.Context, id thole.ThreadID) (executor.Row, error)
	// Engine is the one whose executors are on this machine. A job of another's is left to
	// the runner there.
	Engine string
	// Sync has the thread's files saved.
	Sync func(ctx context.Context, id thole.ThreadID) error
	// Changed returns a channel that is closed at the next change of a job.
	Changed func() <-chan struct{}
	// Dir holds the output of commands that run.
	Dir string
	// Unsure reports an error that leaves open whether a change was committed.
	Unsure func(error) bool
	Log    *slog.Logger
}

const (
	// lookEvery finds a job whose change got lost.
	lookEvery = 15 * time.Second
	// sweepEvery is how often executors are asked for commands whose job is over.
	sweepEvery = time.Minute
	// recordTime bounds the record of an end when the owner stops.
	recordTime = 10 * time.Second
)

// Runner follows the jobs of one home.
type Runner struct {
	cfg Config

	mu sync.Mutex // guards what follows
	by map[thole.JobID]context.CancelCauseFunc
	wg sync.WaitGroup
}

// New makes a runner; it works while Run runs.
func New(cfg Config) (*Runner, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "jobs in threads: %w", err)
	}
	return &Runner{cfg: cfg, by: map[thole.JobID]context.CancelCauseFunc{}}, nil
}

// errCancelled: the job was cancelled.
var errCancelled = errors.New("the job was cancelled")

// Cancel ends the command of a job that was cancelled.
func (r *Runner) Cancel(id thole.JobID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.by[id]; cancel != nil {
		cancel(errCancelled)
	}
}

// Run follows jobs until ctx ends. Their commands go on.
func (r *Runner) Run(ctx context.Context) {
	defer r.wg.Wait()
	look, sweep := time.NewTicker(lookEvery), time.NewTicker(sweepEvery)
	defer look.Stop()
	defer sweep.Stop()
	r.sweep(ctx)
	for {
		changed := r.cfg.Changed()
		running, err := r.cfg.Machine.Commands(ctx)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Error("list jobs in threads", "err", err)
		}
		for _, j := range running {
			r.start(ctx, j)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-look.C:
		case <-sweep.C:
			r.sweep(ctx)
		}
	}
}

// start follows a job, unless it is followed.
func (r *Runner) start(ctx context.Context, j delivery.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[j.ID] != nil {
		return
	}
	held, cancel := context.WithCancelCause(ctx)
	r.by[j.ID] = cancel
	r.wg.Go(func() {
		defer func() {
			cancel(nil)
			r.mu.Lock()
			delete(r.by, j.ID)
			r.mu.Unlock()
		}()
		err := r.follow(held, j)
		if errors.Is(context.Cause(held), errCancelled) {
			err = r.drop(ctx, j)
		}
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("job in a thread", "job", j.ID, "thread", j.Thread, "err", err)
		}
	})
}

// follow takes a job to its end. An error leaves it for the next look.
func (r *Runner) follow(ctx context.Context, j delivery.Job) error {
	th, err := r.cfg.Threads.Get(authz.Doing(ctx, authz.RunThread), system(j), j.Thread)
	if code := thole.CodeOf(err); code == thole.CodeNotFound || code == thole.CodeForbidden {
		_, err := r.cfg.Machine.Cancel(ctx, system(j), j.ID, request(j), "its thread was deleted, or is not its owner's to use")
		return err
	}
	if err != nil {
		return err
	}
	if j.Executor == "" {
		row, err := r.cfg.Ready(ctx, j.Thread)
		if err != nil {
			return r.unplaced(ctx, j, err)
		}
		if row.Engine != r.cfg.Engine { // it came up there meanwhile
			return nil
		}
		if info, err := r.cfg.Driver.Inspect(ctx, row.ID); err == nil && info.Old {
			return r.unplaced(ctx, j, thole.Errorf(thole.CodeUnavailable, "the thread's executor was started by an earlier version of thole").
				WithHint("a message to the thread starts it again, and so does the command after thole thread close %s", j.Thread))
		}
		if err := r.cfg.Machine.Place(ctx, system(j), j.ID, row.ID); err != nil {
			return err // it is over, or the next look finds it
		}
		j.Executor = row.ID
	}
	return r.attend(ctx, j, th)
}

// unplaced ends a job whose thread has no executor to run it.
func (r *Runner) unplaced(ctx context.Context, j delivery.Job, why error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := why.Error()
	if hint := thole.HintOf(why); hint != "" {
		text += " (" + hint + ")"
	}
	return r.finish(ctx, j, wire.Job{ExitCode: -1, Summary: "the command did not begin: " + text})
}

// attend gives the command to its executor, or finds it there, and reads its output to
// the end.
func (r *Runner) attend(ctx context.Context, j delivery.Job, th fold.Thread) error {
	again := (backoff.Policy{Min: 100 * time.Millisecond, Max: 5 * time.Second}).Begin()
	for {
		client, err := r.reach(ctx, j.Executor)
		if errors.Is(err, errGone) {
			return r.finish(ctx, j, wire.Job{ExitCode: -1, Summary: "the executor was stopped while the command ran; how far it came is not known"})
		}
		var end wire.Job
		if err == nil {
			end, err = r.read(ctx, client, j, th)
			client.Close()
		}
		switch code := thole.CodeOf(err); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			return r.end(ctx, j, end)
		case code != thole.CodeUnavailable && code != thole.CodeInternal && code != thole.CodeOverloaded:
			return r.finish(ctx, j, wire.Job{ExitCode: -1, Summary: "the executor refused the command: " + err.Error()})
		}
		if err := again.Wait(ctx); err != nil {
			return context.Cause(ctx)
		}
	}
}

// errGone: the executor does not run, and what it ran with it.
var errGone = errors.New("threadjob: executor gone")

// reach returns a client for an executor that runs. Unknown is an error, never errGone.
func (r *Runner) reach(ctx context.Context, id thole.ExecutorID) (*executorclient.Client, error) {
	info, err := r.cfg.Driver.Inspect(ctx, id)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "look for the executor: %w", err)
	}
	if info.State != executor.Running {
		return nil, errGone
	}
	return executorclient.Dial(info.Endpoint, info.Token), nil
}

// read has the command started and keeps its output, from where an earlier reader came.
func (r *Runner) read(ctx context.Context, client *executorclient.Client, j delivery.Job, th fold.Thread) (wire.Job, error) {
	_, err := client.StartJob(ctx, wire.JobRequest{ID: j.ID, Argv: j.Command.Argv, Timeout: j.Command.Timeout, Network: th.Settings.Network})
	if err != nil {
		return wire.Job{}, err
	}
	f, err := os.OpenFile(r.output(j.ID), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return wire.Job{}, thole.Errorf(thole.CodeUnavailable, "keep output: %w", err)
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = client.JobOutput(ctx, j.ID, have, f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return wire.Job{}, err
	}
	return client.Job(ctx, j.ID)
}

func (r *Runner) output(id thole.JobID) string { return filepath.Join(r.cfg.Dir, string(id)+".out") }

// end records the result, has executord forget the command and the files saved.
func (r *Runner) end(ctx context.Context, j delivery.Job, end wire.Job) error {
	if !end.Ended {
		return thole.Errorf(thole.CodeUnavailable, "the executor ended the output of a command that runs")
	}
	if err := r.finish(ctx, j, end); err != nil {
		return err
	}
	r.forget(ctx, j, "")
	return nil
}

// finish ends a job with what its command came to, and has the thread's files saved.
func (r *Runner) finish(ctx context.Context, j delivery.Job, end wire.Job) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer done()
	code := int64(end.ExitCode)
	f := delivery.Finish{Job: j.ID, State: thole.JobReady, Summary: end.Summary, Request: request(j), ExitCode: &code}
	if end.ExitCode != 0 {
		f.State = thole.JobFailed
	}
	out := r.output(j.ID)
	if fi, err := os.Stat(out); err == nil && fi.Size() > 0 {
		in, err := r.cfg.Keeper.Take(ctx, out, j.ID, j.Owner, time.Now().UTC().Truncate(time.Millisecond))
		if err != nil {
			return err
		}
		f.Result, f.Inline, f.ArtifactOnly = &in.Record, in.Inline, in.ReadNeeded
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return thole.Errorf(thole.CodeUnavailable, "read output: %w", err)
	}
	ended, err := r.cfg.Machine.Finish(ctx, system(j), f)
	if f.Result != nil && (err != nil || ended.Artifact != f.Result.ID) && !r.cfg.Unsure(err) {
		r.cfg.Keeper.Discard(*f.Result)
	}
	if err != nil && thole.CodeOf(err) != thole.CodeConflict {
		return err
	}
	_ = os.Remove(out)
	if j.Executor != "" {
		if err := r.cfg.Sync(ctx, j.Thread); err != nil {
			r.cfg.Log.Warn("save the files of a job", "job", j.ID, "thread", j.Thread, "err", err) // the sweep does
		}
	}
	return nil
}

// drop ends the command of a job that was cancelled.
func (r *Runner) drop(ctx context.Context, j delivery.Job) error {
	now, _, err := r.cfg.Machine.Job(ctx, system(j), j.ID)
	if err != nil {
		return err
	}
	r.forget(ctx, now, "cancelled")
	_ = os.Remove(r.output(j.ID))
	return nil
}

// forget has executord end a command and keep nothing of it. What cannot be asked now
// is found by the next sweep.
func (r *Runner) forget(ctx context.Context, j delivery.Job, why string) {
	if j.Executor == "" {
		return
	}
	client, err := r.reach(ctx, j.Executor)
	if err == nil {
		defer client.Close()
		_, err = client.EndJob(ctx, wire.JobEnd{ID: j.ID, Why: why, Forget: true})
	}
	if err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
		r.cfg.Log.Debug("forget a job's command", "job", j.ID, "executor", j.Executor, "err", err)
	}
}

// sweep ends commands whose job is over, and removes output that nobody reads.
func (r *Runner) sweep(ctx context.Context) {
	if entries, err := os.ReadDir(r.cfg.Dir); err == nil {
		for _, e := range entries {
			id := thole.JobID(e.Name()[:len(e.Name())-len(filepath.Ext(e.Name()))])
			if state, err := r.cfg.Machine.StateOf(ctx, id); err == nil && state != thole.JobRunning {
				_ = os.Remove(filepath.Join(r.cfg.Dir, e.Name()))
			}
		}
	}
	for after := thole.ExecutorID(""); ctx.Err() == nil; {
		rows, err := r.cfg.Rows.Live(ctx, after, 500)
		if err != nil {
			r.cfg.Log.Warn("sweep jobs in threads", "err", err)
			return
		}
		for _, row := range rows {
			if after = row.ID; row.State == executor.RowRunning {
				r.sweepOne(ctx, row.ID)
			}
		}
		if len(rows) < 500 {
			return
		}
	}
}

func (r *Runner) sweepOne(ctx context.Context, id thole.ExecutorID) {
	client, err := r.reach(ctx, id)
	if err != nil {
		return
	}
	defer client.Close()
	ctx, done := context.WithTimeout(ctx, recordTime)
	defer done()
	status, err := client.Status(ctx)
	if err != nil {
		return
	}
	for _, job := range status.Jobs {
		if state, err := r.cfg.Machine.StateOf(ctx, job); err == nil && state != thole.JobRunning {
			_, _ = client.EndJob(ctx, wire.JobEnd{ID: job, Why: "its job is over", Forget: true})
		}
	}
}

// system acts for the job's owner.
func system(j delivery.Job) thole.Actor {
	return thole.Actor{User: j.Owner.User, Via: "system", Client: "job"}
}

func request(j delivery.Job) string { return "command-" + string(j.ID) }
