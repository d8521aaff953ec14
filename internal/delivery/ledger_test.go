package delivery_test

import (
	"fmt"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// The ledger is listed in the order in which it was written, whatever the clock did
// meanwhile: by batch, by job, by thread and of all threads, and so are the newest
// rows of it.
func TestLedgerUnderAClockThatGoesBack(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		job := r.ready("a", thole.TargetCLI)
		other := r.ready("b", thole.TargetCLI)
		back := func() { r.c.add(-20 * time.Minute) }
		back()
		p := r.begin("a")
		back()
		r.accept(p, "turn")
		back()
		r.see(p, "turn", thole.TurnEventCompleted)
		r.c.add(time.Hour)
		r.begin("b")

		inOrder := func(name string, rows []delivery.Audit) {
			t.Helper()
			last := map[string]int64{}
			for _, a := range rows {
				if a.Seq <= last[a.LaneID] {
					t.Errorf("%s: %s %s is number %d and stands behind %d", name, stamp(a.At), a.Event, a.Seq, last[a.LaneID])
				}
				last[a.LaneID] = a.Seq
			}
		}
		lane := address("a").LaneID()
		newest := int64(0)
		for name, f := range map[string]delivery.AuditFilter{
			"batch": {Batch: p.Batch.ID}, "job": {Job: job}, "thread": {LaneID: lane}, "all": {}, "another job": {Job: other},
		} {
			rows, err := r.Ledger(ctx, actor, f)
			r.ok(err)
			if len(rows) < 2 {
				t.Fatalf("%s: %d rows", name, len(rows))
			}
			inOrder(name, rows)
			if name == "thread" {
				newest = rows[len(rows)-1].Seq
			}
			for n := 1; n <= len(rows); n++ { // the newest n are the end of the whole
				f.Limit = n
				some, err := r.Ledger(ctx, actor, f)
				r.ok(err)
				if fmt.Sprint(some) != fmt.Sprint(rows[len(rows)-n:]) {
					t.Errorf("%s: the newest %d are %v", name, n, some)
				}
			}
		}
		story := r.batch(p.Batch.ID)
		inOrder("inspect", story.Ledger)
		if n := len(story.Ledger); story.Ledger[n-1].Seq != newest {
			t.Errorf("the story ends with number %d of %d: %s", story.Ledger[n-1].Seq, newest, story.Ledger[n-1].Event)
		}
	})
}

func stamp(t time.Time) string { return t.UTC().Format(time.TimeOnly) }
