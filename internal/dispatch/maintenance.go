package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/measure"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/unguarded"
)

// finishPipeline follows a turn's outcome, with which it entered the phase syncing: sync, then the end of the pipeline. A sync
// that fails never changes the answer; it stands in the executor's row, where it
// blocks stop and removal until one succeeds.
func (w *worker) finishPipeline(ctx context.Context, th fold.Thread, t fold.Turn) error {
	if t.Executor != "" && !t.Phase.Terminal() {
		reason := "run.finished"
		if t.Outcome == thole.OutcomeInterrupted {
			reason = "message.stop"
		}
		kept := w.kept
		if kept == nil {
			kept = w.after(ctx, th, t)
		}
		err := w.sync(ctx, th, t.Executor, reason)
		note := <-kept
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			w.log.Warn("sync failed", "turn", t.ID, "executor", t.Executor, "err", err)
			note = "the turn's files are not saved: " + err.Error()
		} else if err := w.phase(ctx, t.Executor, thole.PhaseExported); err != nil {
			return err
		}
		if err := w.cfg.Threads.SetPhase(ctx, w.ref(t.Executor), t.Outcome.Phase(), note); err != nil {
			return err
		}
	} else if !t.Phase.Terminal() {
		if err := w.phase(ctx, "", t.Outcome.Phase()); err != nil {
			return err
		}
	}
	return w.release(ctx, th, func(row executor.Row) bool { return row.Turn == t.ID })
}

// abandon ends what a deleted thread left: nobody waits for its turn, and nothing
// will run in its executors again.
func (w *worker) abandon(ctx context.Context) error {
	err := w.release(ctx, fold.Thread{ID: w.lease.Thread}, func(executor.Row) bool { return true })
	return w.tried(err)
}

// release stops and removes those of a thread's executors that nobody needs any
// more.
func (w *worker) release(ctx context.Context, th fold.Thread, which func(executor.Row) bool) error {
	rows, err := w.cfg.Rows.Of(ctx, th.ID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !which(row) {
			continue
		}
		if err := w.stop(ctx, th, row.ID); err != nil {
			return err
		}
		if err := w.remove(ctx, th, row.ID); err != nil {
			return err
		}
	}
	return nil
}

// leave stops the executors of a turn that is parked: its answer may take days,
// and starts one again. A sync that fails leaves it running.
func (w *worker) leave(ctx context.Context, th fold.Thread) {
	rows, err := w.cfg.Rows.Of(ctx, th.ID)
	for _, row := range rows {
		err = errors.Join(err, w.stop(ctx, th, row.ID))
	}
	if err != nil && ctx.Err() == nil {
		w.log.Warn("stop the executor of a parked turn", "turn", w.lease.Turn, "err", err)
	}
}

// tried gives up what failed too often: the next sweep asks again.
func (w *worker) tried(err error) error {
	if isAway(err) {
		w.log.Debug("maintenance waits for the object store", "thread", w.lease.Thread, "kind", w.lease.Kind)
		return nil // a row that waits would hold up the thread's turns
	}
	if err != nil && w.lease.Attempt >= queue.MaxAttempts {
		w.log.Warn("maintenance given up for now", "thread", w.lease.Thread, "err", err)
		return nil
	}
	return err
}

func isFenced(err error) bool {
	return errors.Is(err, thread.ErrFenced) || errors.Is(err, queue.ErrLeaseLost)
}

// sync stores an executor's workspace, running or stopped. What is not restored
// holds nothing of worth.
func (w *worker) sync(ctx context.Context, th fold.Thread, id thole.ExecutorID, reason string) error {
	row, err := w.cfg.Rows.Get(ctx, id)
	if err != nil || !row.Restored || row.State == executor.RowDeleted {
		return err
	}
	p := &place{row: row}
	if row.State == executor.RowRunning {
		info, err := w.cfg.Driver.Inspect(ctx, id)
		if err != nil {
			return err
		}
		if info.State == executor.Running {
			p.client = executorclient.Dial(info.Endpoint, info.Token)
			defer p.client.Close()
		}
	}
	ok, err := w.cfg.Rows.BeginSync(ctx, id, reason)
	if err := expect(ok, err, "begin sync: the executor is neither running nor stopped"); err != nil {
		return err
	}
	snapshot := ""
	failure := w.step(ctx, measure.Sync, w.inTime(errSlowSync, func(ctx context.Context) (err error) {
		snapshot, err = w.cfg.Workspaces.Sync(ctx, w.target(th, p), reason)
		return err
	}))
	if failure != nil {
		w.cfg.Meter.Count(measure.SyncFailed)
	}
	if _, err := w.cfg.Rows.EndSync(context.WithoutCancel(ctx), id, snapshot, failure); err != nil {
		return err
	}
	return failure
}

// inTime ends work on files that takes longer than it may, with slow: an agent can make
// a tree on which it never ends.
func (w *worker) inTime(slow error, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if unguarded.Build {
			return do(ctx)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, w.cfg.SyncTimeout, slow)
		defer cancel()
		err := do(ctx)
		if err != nil && errors.Is(context.Cause(ctx), slow) {
			err = slow
		}
		return err
	}
}

// maintain does what was asked for to a thread's executors, if it still makes sense
// when its turn has come.
func (w *worker) maintain(ctx context.Context) error {
	rows, err := w.cfg.Rows.Of(ctx, w.lease.Thread)
	if err != nil {
		return err
	}
	th, err := w.cfg.Threads.Get(ctx, thole.SystemActor, w.lease.Thread)
	if thole.CodeOf(err) == thole.CodeNotFound {
		th = fold.Thread{ID: w.lease.Thread} // deleted; its executor still goes in order
	} else if err != nil {
		return err
	}
	if w.lease.Kind == queue.Sync && w.lease.Priority >= readyFirst {
		if err := w.ready(ctx, th); errors.As(err, new(*errFull)) || isAway(err) {
			return &errWaits{err, maxWait}
		} else if err != nil {
			return w.tried(err)
		}
		if rows, err = w.cfg.Rows.Of(ctx, w.lease.Thread); err != nil {
			return err
		}
	}
	now, err := w.cfg.Rows.Now(ctx)
	for _, row := range rows {
		if w.lease.Kind == queue.Stop && w.lease.Priority == whenDue {
			attended, unknown := w.attended(ctx, row)
			if unknown != nil && w.lease.Attempt < maxLooks {
				err = errors.Join(err, unknown)
				continue
			}
			if attended || row.LastActive.After(now.Add(-w.cfg.IdleStop)) {
				continue // active again since the sweep looked
			}
		}
		//exhaustive:enforce
		switch w.lease.Kind {
		case queue.Sync:
			err = errors.Join(err, w.sync(ctx, th, row.ID, "catch-up"))
		case queue.Stop:
			err = errors.Join(err, w.stop(ctx, th, row.ID))
		case queue.Remove:
			err = errors.Join(err, w.remove(ctx, th, row.ID))
		case queue.Turn: // never here
		}
	}
	return w.tried(err)
}

// ready brings a thread's executor to where agents may run, without a turn.
func (w *worker) ready(ctx context.Context, th fold.Thread) error {
	if th.Owner.User == "" || w.cfg.Scope != executor.ScopeThread {
		return nil // deleted, or nothing outlives a turn
	}
	row, err := w.cfg.Rows.Ensure(ctx, executor.Row{ID: thole.NewID[thole.ExecutorID](w.cfg.Now()), Thread: th.ID, Scope: executor.ScopeThread, Driver: w.cfg.Driver.Name()})
	if err != nil {
		return err
	}
	p := &place{row: row}
	if err := w.start(ctx, p, th); err != nil {
		return err
	}
	defer p.client.Close()
	if !p.row.Restored {
		if err := w.lay(ctx, p, th, func(context.Context, thole.Phase) error { return nil }); err != nil {
			return err
		}
	}
	return w.cfg.Rows.Touch(ctx, p.row.ID)
}

// maxLooks is how often an executor that does not answer is looked at before it is
// stopped all the same: until then nobody knows what goes on in it, and for ever it
// is kept for nobody.
const maxLooks = 3

// attended reports whether a user has a terminal open in an executor, or a command or a job
// runs there, and notes that as its activity. An error says that nobody knows.
func (d *Dispatcher) attended(ctx context.Context, row executor.Row) (bool, error) {
	if row.State != executor.RowRunning {
		return false, nil
	}
	info, err := d.cfg.Driver.Inspect(ctx, row.ID)
	if err != nil || info.State != executor.Running {
		return false, err
	}
	client := executorclient.Dial(info.Endpoint, info.Token)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	status, err := client.Status(ctx)
	if err != nil || status.Terminals == 0 && status.JobsRunning == 0 && status.Commands == 0 {
		return false, err
	}
	return true, d.cfg.Rows.Touch(ctx, row.ID)
}

const lookTime = 5 * time.Second

var (
	errSlowSync    = thole.Errorf(thole.CodeUnavailable, "saving the files took longer than it may").WithHint("raise executor.sync_timeout, or have large files that need no saving outside of the workspace")
	errSlowRestore = thole.Errorf(thole.CodeUnavailable, "restoring the files took longer than it may").WithHint("raise executor.sync_timeout, or delete in an earlier state what is large")
	errSlowCompare = thole.Errorf(thole.CodeUnavailable, "comparing the files with what is saved took longer than it may").WithHint("raise executor.sync_timeout")
)

// unstick ends the processes of an executor that has some and does not answer, once
// it was looked at often enough. Its files are read without it then.
func (w *worker) unstick(ctx context.Context, id thole.ExecutorID) error {
	_, err := w.cfg.Driver.Inspect(ctx, id)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if w.lease.Attempt < maxLooks {
		return fmt.Errorf("look %d of %d: %w", w.lease.Attempt, maxLooks, err)
	}
	w.log.Warn("executor does not answer; its processes are ended", "executor", id, "thread", w.lease.Thread, "err", err)
	return w.cfg.Driver.Stop(ctx, id)
}

// stop syncs and stops a running executor. A failed sync leaves it running.
func (w *worker) stop(ctx context.Context, th fold.Thread, id thole.ExecutorID) error {
	row, err := w.cfg.Rows.Get(ctx, id)
	if err != nil || row.State != executor.RowRunning {
		return err
	}
	if err := w.unstick(ctx, id); err != nil {
		return fmt.Errorf("stop executor: %w", err)
	}
	if d, ok := w.disk(id); ok && beyond(d.look(ctx, false)) {
		// Nothing in it may grow while it is saved, nor if that fails.
		if err := w.cfg.Driver.Stop(ctx, id); err != nil {
			return fmt.Errorf("stop executor: %w", err)
		}
	}
	if err := w.sync(ctx, th, id, "pre.stop"); err != nil {
		return fmt.Errorf("sync before stop: %w", err)
	}
	w.forget(th.ID)
	if err := w.cfg.Driver.Stop(ctx, id); err != nil {
		return fmt.Errorf("stop executor: %w", err)
	}
	ok, err := w.cfg.Rows.MarkStopped(ctx, id)
	return expect(ok, err, "record stop: the sync before it did not succeed")
}

// remove deletes a stopped executor, after a sync that began after the stop and a
// comparison of the tree with what that sync stored. One that never ran holds
// nothing.
func (w *worker) remove(ctx context.Context, th fold.Thread, id thole.ExecutorID) error {
	row, err := w.cfg.Rows.Get(ctx, id)
	if err != nil || row.State != executor.RowStopped && row.State != executor.RowCreating {
		return err
	}
	if row.Restored {
		if err := w.sync(ctx, th, id, "pre.remove"); err != nil {
			return fmt.Errorf("sync before removal: %w", err)
		}
		if row, err = w.cfg.Rows.Get(ctx, id); err != nil {
			return err
		}
		verify := w.inTime(errSlowCompare, func(ctx context.Context) error {
			return w.cfg.Workspaces.Verify(ctx, w.target(th, &place{row: row}), row.Snapshot)
		})
		if err := verify(ctx); err != nil {
			return fmt.Errorf("compare before removal: %w", err)
		}
	}
	if err := w.cfg.Driver.Remove(ctx, id); err != nil {
		return fmt.Errorf("remove executor: %w", err)
	}
	ok, err := w.cfg.Rows.MarkDeleted(ctx, id)
	return expect(ok, err, "record removal: the sync before it did not succeed")
}
