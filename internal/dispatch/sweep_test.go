package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
)

// Executors whose maintenance does not come keep no other from theirs, however many they
// are.
func TestEveryIdleExecutorIsAskedFor(t *testing.T) {
	t.Parallel()
	const many = 120
	ctx := context.Background()
	db := storetest.SQLite(t)
	r := newWorld(t).rig(t, db, func(c *dispatch.Config) {
		c.IdleStop, c.StaleAfter = time.Nanosecond, time.Nanosecond
	})
	for range many {
		row, err := db.Executors().Ensure(ctx, executor.Row{ID: thole.NewID[thole.ExecutorID](time.Now()), Thread: r.thread(), Scope: executor.ScopeThread, Driver: "elsewhere"})
		if err == nil {
			_, err = db.Executors().MarkRunning(ctx, row.ID)
		}
		if err == nil {
			_, err = db.Executors().MarkRestored(ctx, row.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.halt()                 // no dispatcher does the maintenance
	waitFor(t, func() bool { // in the millisecond of its start an executor is not idle
		err1 := r.disp.Sweep(ctx)
		asked := map[string]int{}
		err2 := db.View(ctx, func(tx *sqldb.Tx) error {
			for _, kind := range []queue.Kind{queue.Stop, queue.Sync} {
				n := 0
				if err := tx.QueryRow("select count(distinct thread_id) from turn_queue where kind = $1", string(kind)).Scan(&n); err != nil {
					return err
				}
				asked[string(kind)] = n
			}
			return nil
		})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		t.Logf("asked for %v of %d", asked, many)
		return asked[string(queue.Stop)] == many && asked[string(queue.Sync)] == many
	})
}
