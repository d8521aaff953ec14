package dispatch

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/queue"
)

// errWaits puts a turn back that needs what is not there now.
type errWaits struct {
	why   error
	delay time.Duration
}

func (e *errWaits) Error() string { return e.why.Error() }

// maxWait bounds how long a turn that waits for the object store sleeps after the
// store is there again.
const maxWait = 15 * time.Second

// still is errWaits for a turn that has waited before and whose store is still away,
// so that it goes through no phase again only to wait.
func (w *worker) still(row executor.Row) error {
	w.mu.Lock()
	before := w.waits[w.lease.Turn]
	w.mu.Unlock()
	if before == 0 || row.Restored {
		return nil
	}
	return w.cfg.Workspaces.Away()
}

// wait says in the thread, the first time, what a turn waits for.
func (w *worker) wait(ctx context.Context, t fold.Turn, why error) error {
	w.mu.Lock()
	w.waits[t.ID]++
	n := w.waits[t.ID]
	w.mu.Unlock()
	if n == 1 {
		w.log.Warn("turn waits", "turn", t.ID, "thread", t.Thread, "err", why)
		if err := w.phase(ctx, t.Executor, thole.PhaseClaimed); err != nil {
			return err
		}
		if err := w.cfg.Threads.SetPhase(ctx, w.ref(t.Executor), thole.PhaseQueued, "the turn waits: "+why.Error()); err != nil {
			return err
		}
	}
	return &errWaits{why, min(queue.Backoff(n), maxWait)}
}

// Resync asks for the syncs that failed, now that they may succeed.
func (d *Dispatcher) Resync(ctx context.Context) error {
	for after := thole.ExecutorID(""); ; {
		rows, err := d.cfg.Rows.Live(ctx, after, 500)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.ID
			if row.SyncStatus == executor.SyncFailed {
				err = errors.Join(err, d.ask(ctx, row.Thread, queue.Sync, whenDue))
			}
		}
		if err != nil || len(rows) < 500 {
			return err
		}
	}
}

func isAway(err error) bool { return errors.Is(err, objects.ErrAway) }
