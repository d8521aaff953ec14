package dispatch

import (
	"context"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
)

// errFull: as many executors run as may.
type errFull struct {
	changes int // when that was seen
}

func (*errFull) Error() string { return "as many executors run as executor.max_live allows" }

// askAgain is when an executor that was asked to stop and still runs is asked again,
// or another one if it works.
const askAgain = 30 * time.Second

// makeRoom is errFull while as many other executors run as may; as many of those that
// nobody works in as turns wait are asked to stop, the longest idle one first.
func (w *worker) makeRoom(ctx context.Context, id thole.ExecutorID) error {
	if w.cfg.MaxLive == 0 {
		return nil
	}
	var next thole.TurnID // there is room for it too
	defer func() { w.hasten(ctx, next) }()
	w.roomMu.Lock() // one at a time, or two would take the last place
	defer w.roomMu.Unlock()
	var live []executor.Row
	for after := thole.ExecutorID(""); ; {
		rows, err := w.cfg.Rows.Live(ctx, after, 500)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if after = row.ID; row.ID != id && (row.State == executor.RowRunning || w.booting[row.ID]) {
				live = append(live, row)
			}
		}
		if len(rows) < 500 {
			break
		}
	}
	if len(live) < w.cfg.MaxLive {
		w.booting[id] = true
		delete(w.leaving, id)
		w.waiting = slices.DeleteFunc(w.waiting, func(t thole.TurnID) bool { return t == w.lease.Turn })
		if len(w.waiting) > 0 && len(live)+1 < w.cfg.MaxLive {
			next = w.waiting[0]
		}
		return nil
	}
	if !slices.Contains(w.waiting, w.lease.Turn) {
		w.waiting = append(w.waiting, w.lease.Turn)
	}
	over := len(live) + len(w.waiting) - w.cfg.MaxLive
	slices.SortFunc(live, func(a, b executor.Row) int { return a.LastActive.Compare(b.LastActive) })
	for _, row := range live {
		if over == 0 {
			break
		}
		if time.Since(w.leaving[row.ID]) < askAgain {
			over--
			continue
		}
		if w.busy(row.Thread) {
			continue
		}
		if attended, err := w.attended(ctx, row); attended || err != nil {
			continue
		}
		if err := w.ask(ctx, row.Thread, queue.Stop, inAnyCase); err != nil {
			return err
		}
		w.leaving[row.ID] = time.Now()
		over--
	}
	w.full = &errFull{w.changes}
	return w.full
}

// ended lets the turn that waits longest for room look again: this worker's executor is
// idle now, or gone. One that found no room itself looks again if that changed since.
func (w *worker) ended(ctx context.Context) {
	w.roomMu.Lock()
	var next thole.TurnID
	switch {
	case w.full == nil:
		w.changes++
		w.waiting = slices.DeleteFunc(w.waiting, func(t thole.TurnID) bool { return t == w.lease.Turn })
		if len(w.waiting) > 0 {
			next = w.waiting[0]
		}
	case w.full.changes != w.changes:
		next = w.lease.Turn
	}
	w.roomMu.Unlock()
	w.hasten(ctx, next)
}

func (w *worker) hasten(ctx context.Context, turn thole.TurnID) {
	if turn == "" {
		return
	}
	if err := w.cfg.Queue.Hasten(context.WithoutCancel(ctx), turn); err != nil {
		w.log.Warn("hasten a turn that waits for room", "turn", turn, "err", err) // it looks again by itself
	}
}

// booted gives back what makeRoom took: the row says now what runs.
func (w *worker) booted(id thole.ExecutorID) {
	w.roomMu.Lock()
	defer w.roomMu.Unlock()
	delete(w.booting, id)
}
