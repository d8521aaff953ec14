package delivery

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

// Ended is a closed batch, or a cancelled job that was in none.
type Ended struct {
	LaneID string
	Batch  thole.BatchID
	Job    thole.JobID
	At     time.Time
}

func (e *Ended) position() Position { return Position{e.At, string(e.Batch) + string(e.Job)} }

// Forget removes what ended longer than keep ago, with its jobs, attempts and ledger
// rows, and returns how many batches and jobs that were. What still has a result file
// stays. A lane keeps its counters and its newest ledger row, so that generations and
// numbers rise for ever. A keep of 0 removes nothing.
func (m *Machine) Forget(ctx context.Context, keep time.Duration) (int, error) {
	if keep <= 0 {
		return 0, nil
	}
	return pages(ctx, m,
		func(tx Tx, now time.Time, after Position) ([]Ended, error) {
			return tx.Ended(now.Add(-keep), after, sweepPage)
		},
		(*Ended).position,
		func(e *Ended) (gone bool, err error) {
			err = m.update(ctx, "forget", thole.SystemActor, func(o *op) error {
				if err := o.onLane(e.LaneID); err != nil {
					return err
				}
				gone, err = o.ForgetIfEnded(*e, o.now.Add(-keep))
				return err
			})
			return gone, err
		})
}
