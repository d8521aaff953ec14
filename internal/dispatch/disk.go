package dispatch

import (
	"context"
	"errors"
	"math"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/unguarded"
)

var (
	errDisk = thole.Errorf(thole.CodeGone, "the executor took more disk than it may").
		WithHint("delete what is not needed in thole thread terminal, or raise executor.disk_mb; the next turn may go on as long as it takes no more")
	// errHidden: nobody knows what it takes, and that is not little.
	errHidden = thole.Errorf(thole.CodeGone, "the executor hides from its limit how much disk it takes").
			WithHint("delete directories in thole thread terminal that change their permissions all the time or are nested hundreds deep")
)

const (
	// diskPart is how much of its time a look at a disk may take: one in diskPart, and one
	// in idlePart where no turn runs.
	diskPart = 20
	idlePart = 100
	// idleLooks is how much rarer executors are looked at in which no turn runs.
	idleLooks = 12
	// diskSlack is what a turn that begins beyond the limit may still take: records of
	// the turn itself are written there too.
	diskSlack = 16 << 20
	// maxUnseen is how many looks in a row may miss something: a program may close a
	// directory for a moment.
	maxUnseen = 3
)

// disk is what an executor takes and may take. What it may is the limit, or what was
// recorded when it was found beyond it: a turn that cleans up must not be stopped. A
// record and not what is found when a turn is followed: by then it may have grown, and
// the process that follows it may be another one than before.
type disk struct {
	executor.Disk
	id     thole.ExecutorID
	limit  int64
	unseen int
}

func (d *Dispatcher) disk(id thole.ExecutorID) (*disk, bool) {
	driver, ok := d.cfg.Driver.(executor.Disk)
	return &disk{Disk: driver, id: id, limit: d.cfg.Room.Disk}, ok && d.cfg.Room.Disk > 0 && !unguarded.Build
}

// look is errDisk or errHidden for an executor beyond what it may take. With
// ends, a turn fails for it and says so, and the one after that may go on.
func (d *disk) look(ctx context.Context, ends bool) error {
	allowed, err := d.DiskAllowed(d.id)
	if err != nil {
		return err
	}
	used, err := d.DiskUsed(ctx, d.id, max(d.limit, allowed))
	if errors.Is(err, executor.ErrUnseen) {
		if d.unseen++; d.unseen < maxUnseen {
			return nil
		}
		return errHidden
	}
	if err != nil {
		return err
	}
	d.unseen = 0
	if used <= d.limit && allowed > 0 {
		return d.AllowDisk(d.id, 0)
	}
	if used <= max(d.limit, allowed) {
		return nil
	}
	if !ends {
		return errDisk
	}
	if used, err = d.DiskUsed(ctx, d.id, math.MaxInt64); err == nil || errors.Is(err, executor.ErrUnseen) {
		err = d.AllowDisk(d.id, used+diskSlack)
	}
	return errors.Join(errDisk, err)
}

// beyond reports whether a look found too much, and not only that it failed.
func beyond(err error) bool { return errors.Is(err, errDisk) || errors.Is(err, errHidden) }

// watchDisk ends a run when its executor takes more disk than it may.
func (w *worker) watchDisk(ctx context.Context, id thole.ExecutorID, end context.CancelCauseFunc) {
	d, ok := w.disk(id)
	for ok {
		began := time.Now()
		err := d.look(ctx, true)
		if beyond(err) {
			w.log.Warn("executor took more disk than it may", "executor", id, "thread", w.lease.Thread, "err", err)
			end(err)
			return
		}
		if err != nil {
			w.log.Debug("look at the disk of an executor", "executor", id, "err", err)
		}
		if backoff.Sleep(ctx, max(w.cfg.DiskEvery, diskPart*time.Since(began))) != nil {
			return
		}
	}
}

// idleDiskLoop looks at executors in which no turn runs: agents leave processes behind
// that write. One that grew beyond its limit is stopped; the next turn says why.
func (d *Dispatcher) idleDiskLoop(ctx context.Context) {
	if _, ok := d.disk(""); !ok {
		return
	}
	known := map[thole.ExecutorID]*disk{}
	for wait := time.Duration(0); backoff.Sleep(ctx, max(idleLooks*d.cfg.DiskEvery, wait)) == nil; {
		began := time.Now()
		var err error
		if known, err = d.lookAtIdle(ctx, known); err != nil && ctx.Err() == nil {
			d.log.Warn("look at the disk of idle executors", "err", err)
		}
		wait = idlePart * time.Since(began)
	}
}

func (d *Dispatcher) lookAtIdle(ctx context.Context, before map[thole.ExecutorID]*disk) (now map[thole.ExecutorID]*disk, err error) {
	now = map[thole.ExecutorID]*disk{}
	for after := thole.ExecutorID(""); ; {
		rows, err := d.cfg.Rows.Live(ctx, after, 500)
		if err != nil {
			return now, err
		}
		for _, row := range rows {
			if after = row.ID; row.State != executor.RowRunning || d.busy(row.Thread) {
				continue
			}
			seen, known := before[row.ID]
			if !known {
				seen, _ = d.disk(row.ID)
			}
			now[row.ID] = seen
			found := seen.look(ctx, false)
			if found == nil {
				continue
			}
			if attended, unknown := d.attended(ctx, row); !beyond(found) || attended || unknown != nil {
				d.log.Debug("look at the disk of an executor", "executor", row.ID, "err", errors.Join(found, unknown))
				continue // a user may be cleaning up
			}
			d.log.Warn("idle executor took more disk than it may; it is stopped", "executor", row.ID, "thread", row.Thread, "err", found)
			err = errors.Join(err, d.ask(ctx, row.Thread, queue.Stop, inAnyCase))
		}
		if err != nil || len(rows) < 500 {
			return now, err
		}
	}
}
