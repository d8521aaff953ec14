package dispatch

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/provider"
)

// GivenUp is implemented by rows of a store that several servers use.
type GivenUp interface {
	// GivenUp returns the last executor of a thread that was given up with its server.
	GivenUp(ctx context.Context, id thole.ThreadID) (row executor.Row, found bool, err error)
}

// sayGivenUp says in the thread that its executor was given up with its server, and from when the
// files are with which it goes on. It is said once: the event has the id of that executor.
func (w *worker) sayGivenUp(ctx context.Context, row executor.Row, t fold.Turn) error {
	rows, ok := w.cfg.Rows.(GivenUp)
	if !ok || w.cfg.Engine == "" {
		return nil
	}
	old, found, err := rows.GivenUp(ctx, w.lease.Thread)
	if err != nil || !found {
		return err
	}
	text := "the server that ran this thread is gone; it goes on with the files as they were saved at " + old.LastSync.UTC().Format(time.RFC3339) + ", and later changes are lost"
	if old.LastSync.IsZero() {
		text = "the server that ran this thread is gone, and nothing of its files had been saved: it begins with those it was made with"
	}
	now := w.cfg.Now().UTC()
	note := event.Item{ID: provider.StableID[thole.ItemID]("given-up", string(old.ID)), Kind: event.ItemSystem, State: event.StateCompleted, Text: text, Stamp: thole.Stamp{Started: now, Ended: now}}
	return w.cfg.Threads.Apply(ctx, w.ref(row.ID), []event.Event{
		{ID: provider.StableID[thole.EventID]("given-up", string(old.ID)), Kind: event.ItemCompleted, Turn: t.ID, Time: now, Data: event.Data{Item: &note, ItemID: note.ID}},
	})
}
