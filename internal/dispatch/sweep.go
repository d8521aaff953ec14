package dispatch

import (
	"context"
	"errors"
	"math"
	"os"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
)

// every row is asked for: with a bound, executors whose maintenance keeps failing would
// keep the others from theirs. The queue bounds how much maintenance runs at once.
const every = math.MaxInt32

func (d *Dispatcher) sweepLoop(ctx context.Context) {
	ticker := time.NewTicker(d.cfg.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := d.Sweep(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("sweep", "err", err)
			}
		}
	}
}

// Sweep queues the maintenance that is overdue and sets right what rows say about
// executors that are gone. It decides nothing by itself: maintenance is queued after
// the thread's turns and looks again when it gets there.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	now, err := d.cfg.Rows.Now(ctx)
	if err != nil {
		return err
	}
	idle, err1 := d.cfg.Rows.Idle(ctx, now.Add(-d.cfg.IdleStop), every)
	old, err2 := d.cfg.Rows.Old(ctx, now.Add(-d.cfg.RemoveAfter), every)
	stale, err3 := d.cfg.Rows.Stale(ctx, now.Add(-d.cfg.StaleAfter), every)
	_, err4 := d.cfg.Queue.Prune(ctx, now.Add(-24*time.Hour), 1000)
	err = errors.Join(err1, err2, err3, err4, d.reconcile(ctx))
	for _, s := range []struct {
		kind queue.Kind
		rows []executor.Row
	}{{queue.Stop, idle}, {queue.Remove, old}, {queue.Sync, stale}} {
		for _, row := range s.rows {
			err = errors.Join(err, d.ask(ctx, row.Thread, s.kind, whenDue))
		}
	}
	return err
}

// Close asks for a thread's executor to be synced and stopped now; the clock of
// its removal starts with that.
func (d *Dispatcher) Close(ctx context.Context, id thole.ThreadID) error {
	return d.ask(ctx, id, queue.Stop, inAnyCase)
}

// Sync asks for a thread's executor to be synced now.
func (d *Dispatcher) Sync(ctx context.Context, id thole.ThreadID) error {
	return d.ask(ctx, id, queue.Sync, inAnyCase)
}

// Ready asks for a thread's executor to run with its files restored, for what is no turn.
// With that it is synced.
func (d *Dispatcher) Ready(ctx context.Context, id thole.ThreadID) error {
	return d.ask(ctx, id, queue.Sync, readyFirst)
}

// Priorities of maintenance: what a sweep asks for is done only if it is still due when
// its turn has come; what a user asks for is given in any case. A sync may want the
// executor to run first.
const (
	whenDue    = 0
	inAnyCase  = 1
	readyFirst = 2
)

func (d *Dispatcher) ask(ctx context.Context, id thole.ThreadID, kind queue.Kind, priority int) error {
	return d.cfg.Queue.Enqueue(ctx, queue.Item{
		Kind: kind, Turn: thole.NewID[thole.TurnID](d.cfg.Now()), Thread: id, User: thole.SystemActor.User, Priority: priority,
	})
}

// reconcile compares the rows with what the driver finds. A row whose executor is
// certainly gone ends. An executor without a live row goes if its files are the
// ones a recorded removal left behind, or if it has none; otherwise nobody knows
// what they are worth, and it stays for a human.
func (d *Dispatcher) reconcile(ctx context.Context) error {
	found, err := d.cfg.Driver.List(ctx)
	if err != nil {
		return err
	}
	exists := map[thole.ExecutorID]executor.Info{}
	for _, info := range found {
		exists[info.ID] = info
	}
	known, running := map[thole.ExecutorID]bool{}, map[thole.ExecutorID]bool{}
	for after := thole.ExecutorID(""); ; {
		rows, err := d.cfg.Rows.Live(ctx, after, 500)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.ID
			known[row.ID], running[row.ID] = true, row.State == executor.RowRunning
			info, ok := exists[row.ID]
			if row.Driver != d.cfg.Driver.Name() || row.State == executor.RowCreating || d.busy(row.Thread) {
				continue
			}
			if !ok {
				// Another dispatcher may have made it after our look around.
				now, err := d.cfg.Driver.Inspect(ctx, row.ID)
				if err == nil && now.State == executor.Missing {
					err = d.retireRow(ctx, row.ID)
				}
				if err != nil {
					return err
				}
			} else if row.State == executor.RowRunning && info.State == executor.Stopped {
				if err := d.ask(ctx, row.Thread, queue.Sync, whenDue); err != nil {
					return err
				}
			}
		}
		if len(rows) < 500 {
			break
		}
	}
	d.cool(running)
	for id := range exists {
		if !known[id] {
			if err := d.orphan(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// retireRow ends the row of an executor that its driver has no more, and what is left
// of its processes: they can outlive their files.
func (d *Dispatcher) retireRow(ctx context.Context, id thole.ExecutorID) error {
	if err := d.cfg.Driver.Stop(ctx, id); err != nil {
		return err
	}
	_, err := d.cfg.Rows.MarkMissing(ctx, id)
	return err
}

// cool forgets the places that another dispatcher stopped.
func (d *Dispatcher) cool(running map[thole.ExecutorID]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, p := range d.warm {
		if !running[p.row.ID] {
			p.client.Close()
			delete(d.warm, id)
		}
	}
}

func (d *Dispatcher) orphan(ctx context.Context, id thole.ExecutorID) error {
	row, err := d.cfg.Rows.Get(ctx, id)
	if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
		return err
	}
	removed := err == nil && row.State == executor.RowDeleted && row.Restored
	if removed || d.empty(id) {
		return d.cfg.Driver.Remove(ctx, id)
	}
	d.log.Warn("executor has files but no row; kept", "executor", id)
	return nil
}

// empty reports whether an executor certainly holds no files.
func (d *Dispatcher) empty(id thole.ExecutorID) bool {
	files, ok := d.cfg.Driver.(executor.Files)
	if !ok {
		return false
	}
	dir, err1 := files.WorkspaceDir(id)
	data, err2 := files.DataDir(id)
	if err1 != nil || err2 != nil {
		return false
	}
	return (dir == "" || emptyDir(dir)) && (data == "" || emptyDir(data))
}

func emptyDir(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// busy reports whether a worker of this dispatcher has the thread.
func (d *Dispatcher) busy(id thole.ThreadID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.workers {
		if w.lease.Thread == id {
			return true
		}
	}
	return false
}
