package dispatch_test

import (
	"context"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/store/storetest"
)

// An executor of scope turn lives as long as its turn; the next turn has another
// one, with the files of the first.
func TestAnExecutorForEachTurn(t *testing.T) {
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Scope = executor.ScopeTurn })
	id := r.thread()
	seen := map[thole.ExecutorID]bool{}
	for _, prompt := range []string{"sim: run echo kept > f ;; run cat f", "sim: run cat f"} {
		turn := r.start(id, prompt)
		got := r.settled(id, turn)
		if got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "kept") {
			t.Fatalf("%+v said %q", got, r.said(id, turn))
		}
		if seen[got.Executor] {
			t.Errorf("executor %s again", got.Executor)
		}
		seen[got.Executor] = true
		waitFor(t, func() bool {
			row, err := r.db.Executors().Get(context.Background(), got.Executor)
			return err == nil && row.State == executor.RowDeleted
		})
		if info, err := r.driver.Inspect(context.Background(), got.Executor); err != nil || info.State != executor.Missing {
			t.Errorf("%+v, %v", info, err)
		}
	}
}
