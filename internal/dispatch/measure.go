package dispatch

import (
	"cmp"
	"context"

	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/measure"
)

// step measures what a worker does as part of its lease.
func (w *worker) step(ctx context.Context, what measure.What, do func(context.Context) error) error {
	return measure.Do(ctx, w.cfg.Meter, w.measured(what, fold.Turn{ID: w.lease.Turn}), do)
}

// measured names a step of a turn. The trace is the one that its start came with,
// which its events record too; without one the turn's own id.
func (w *worker) measured(what measure.What, t fold.Turn) measure.Step {
	return measure.Step{What: what, Trace: cmp.Or(t.Trace, string(t.ID)), About: []string{"thread", string(w.lease.Thread), "turn", string(w.lease.Turn)}}
}

// claimed records how long a turn waited for a worker. Later leases of the same turn
// wait for other reasons.
func (w *worker) claimed(ctx context.Context, t fold.Turn) {
	if w.lease.Attempt > 1 || t.Run > 0 || t.Created.IsZero() {
		return
	}
	s := w.measured(measure.Claim, t)
	s.Began = t.Created
	_, end := w.cfg.Meter.Begin(ctx, s)
	end(nil)
}
