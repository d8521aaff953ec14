package dispatch_test

import (
	"path/filepath"
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/dispatch/dispatchtest"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/fault"
)

// Any port may fail once at any kind of call, before its effect or after it: both
// turns still run, each once and in order, on one executor at a time.
func TestAPortFailsOnce(t *testing.T) {
	t.Parallel()
	scenario := func(t *testing.T, p *fault.Plan) {
		db, err := storetest.OpenAt(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "thole.db")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		r := newWorld(t).rig(t, db, func(c *dispatch.Config) {
			c.Queue = &dispatchtest.Store{Next: c.Queue, Plan: p}
			c.Rows = &dispatchtest.Rows{Next: c.Rows, Plan: p}
			c.Driver = &dispatchtest.Driver{Next: c.Driver, Plan: p}
		})
		id := r.thread()
		for range 2 {
			turn := r.start(id, "sim: say one ;; run echo x >> f ;; say two and some more ;; run wc -l < f")
			if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
				t.Fatalf("the turn ended %s in phase %s: %+v", got.Outcome, got.Phase, got.Error)
			}
			waitFor(t, func() bool { // else the end of the test lets go of it
				row, err := db.Queue().Get(t.Context(), turn)
				return err == nil && row.State == queue.Done
			})
		}
		checkLog(t, r, id, 2)
	}
	clean := &fault.Plan{}
	if !t.Run("no fault", func(t *testing.T) { scenario(t, clean) }) {
		return
	}
	methods := clean.Calls()
	slices.Sort(methods)
	for _, method := range slices.Compact(methods) {
		for _, when := range []fault.When{fault.Before, fault.After} {
			t.Run(string(when)+" "+method, func(t *testing.T) {
				t.Parallel()
				p := &fault.Plan{Method: method, At: 1, When: when}
				scenario(t, p)
				// How often the clock's own calls come depends on how long a turn takes.
				if timed := method == "Store.Renew" || method == "Store.Reap" || method == "Store.Release" || method == "Store.PutBack"; !p.Fired() && !timed {
					t.Error("the planned fault never happened")
				}
			})
		}
	}
}
