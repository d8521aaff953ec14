package executors

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
)

// readyTries is how often a start may fail before nobody waits for it any more.
const readyTries = 2

// Ready returns a thread's executor once it runs with its files restored. One that does
// not run is started, after the thread's turns.
func (t *Service) Ready(ctx context.Context, id thole.ThreadID) (row executor.Row, err error) {
	if row, err = t.restored(ctx, id); err != nil || row.ID != "" {
		return row, err
	}
	if err := t.cfg.Dispatcher.Ready(ctx, id); err != nil {
		return row, err
	}
	err = t.until(ctx, func() (bool, error) {
		asked, err := t.cfg.Queue.Newest(ctx, id, queue.Sync) // before the rows: it ends after they changed
		if err != nil {
			return false, err
		}
		if row, err = t.restored(ctx, id); err != nil || row.ID != "" {
			return row.ID != "", err
		}
		if asked.State == queue.Done || asked.Attempt >= readyTries {
			return false, thole.Errorf(thole.CodeUnavailable, "the thread's executor could not be started: %s", asked.LastError).
				WithHint("thole doctor shows what is missing")
		}
		return false, nil
	})
	return row, err
}

// restored is the thread's executor that runs with its files restored, if one does.
func (t *Service) restored(ctx context.Context, id thole.ThreadID) (executor.Row, error) {
	rows, err := t.cfg.Rows.Of(ctx, id)
	for _, row := range rows {
		if row.Scope != executor.ScopeThread || row.State != executor.RowRunning || !row.Restored {
			continue
		}
		client, err := t.reach(ctx, row)
		if client == nil || err != nil {
			return executor.Row{}, err
		}
		client.Close()
		return row, t.cfg.Rows.Touch(ctx, row.ID) // an idle stop that is due looks again
	}
	return executor.Row{}, err
}
