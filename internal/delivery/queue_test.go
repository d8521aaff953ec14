package delivery_test

import (
	"context"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

func TestBatchLimits(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		var ids []thole.JobID
		for range 4 {
			id := r.submit("a", thole.TargetCLI)
			r.finish(id, thole.JobReady, "x")
			ids = append(ids, id)
		}
		v := r.head("a")
		if len(v.Jobs) != 3 || v.Jobs[0].ID != ids[0] || v.Jobs[2].ID != ids[2] {
			t.Fatalf("first batch has %d jobs", len(v.Jobs))
		}
		for range 3 { // after it the same: the fourth job, two more, and one in a third batch
			r.finish(r.submit("a", thole.TargetCLI), thole.JobReady, "x")
		}
		all, err := r.Batches(ctx, actor, delivery.BatchFilter{Thread: "a"})
		r.ok(err)
		if len(all) != 3 || all[0].Batch.Jobs != 1 || all[1].Batch.Jobs != 3 {
			t.Fatalf("%d batches: %+v", len(all), all)
		}
		big := r.submit("b", thole.TargetCLI)
		r.finish(big, thole.JobReady, strings.Repeat("x", 500))
		small := r.submit("b", thole.TargetCLI)
		r.finish(small, thole.JobFailed, "x")
		if v := r.head("b"); len(v.Jobs) != 1 {
			t.Fatal("a job over the byte limit travels alone")
		}
		other := r.submit("c", thole.TargetCLI)
		r.finish(other, thole.JobReady, "x")
		r.c.add(testLimits().WaitWindow)
		late := r.submit("c", thole.TargetCLI)
		r.finish(late, thole.JobReady, "x")
		if v := r.head("c"); len(v.Jobs) != 1 {
			t.Fatal("the window was over")
		}
		// What waits after another batch has time to collect: later results share it.
		r.c.add(10 * testLimits().WaitWindow)
		r.finish(r.submit("c", thole.TargetCLI), thole.JobReady, "x")
		if all, err := r.Batches(ctx, actor, delivery.BatchFilter{Thread: "c"}); err != nil || len(all) != 2 || all[0].Batch.Jobs != 2 {
			t.Fatalf("after a batch: %+v, %v", all, err)
		}
	})
}

// A candidate that fails goes after every other one.
func TestFairOrder(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for _, thread := range []string{"a", "b", "c"} {
			r.ready(thread, thole.TargetCLI)
		}
		served := ""
		for range 9 {
			c, err := r.Candidates(ctx, thole.TargetCLI, 1)
			r.ok(err)
			if len(c) == 0 {
				r.c.add(testLimits().RetryMax)
				r.sweep()
				continue
			}
			served += string(c[0].Lane.Thread)
			r.ok(r.Defer(ctx, actor, c[0].Lane.ID, c[0].Batch.ID, "busy", 0))
			r.c.add(time.Millisecond)
		}
		if served[:6] != "abcabc" {
			t.Fatalf("served %s", served)
		}
	})
}

func TestMinimumInterval(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		r.accept(p, "t1")
		r.ready("a", thole.TargetCLI) // 2 s later
		r.see(p, "t1", thole.TurnEventCompleted)
		if v := r.head("a"); v.Lane.Ticket != 0 || v.Batch.State != thole.BatchMaterialized {
			t.Fatal("the interval was not kept")
		}
		r.c.add(3 * time.Second)
		r.sweep()
		if v := r.head("a"); v.Lane.Ticket == 0 {
			t.Fatal("the interval is over and the thread is not ready")
		}
	})
}

func TestParents(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		child := func(parent thole.JobID) thole.JobID {
			return r.submit("a", thole.TargetCLI, func(p *delivery.Submit) { p.Parent = parent })
		}
		parent := r.submit("a", thole.TargetCLI)
		c1 := child(parent)
		grand := child(c1)
		if j := r.finish(parent, thole.JobReady, "p"); j.State != thole.JobRunning || j.Settled != thole.JobReady {
			t.Fatalf("parent with open children: %+v", j)
		}
		r.finish(c1, thole.JobFailed, "c")
		r.finish(grand, thole.JobReady, "g")
		v := r.head("a")
		if len(v.Jobs) != 1 || v.Jobs[0].ID != parent || len(v.Jobs[0].Children) != 1 || len(v.Jobs[0].Children[0].Children) != 1 {
			t.Fatalf("children must travel inside their parent: %+v", v.Jobs)
		}
		if _, _, err := r.Submit(ctx, actor, delivery.Submit{ID: thole.JobID(r.id()), Owner: thole.DefaultOwner, Address: address("a"), Target: thole.TargetCLI, Parent: parent}); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("child of a finished parent: %v", err)
		}
		p2 := r.submit("b", thole.TargetCLI)
		c2 := r.submit("b", thole.TargetCLI, func(p *delivery.Submit) { p.Parent = p2 })
		if _, err := r.Cancel(ctx, actor, p2, r.id(), "no"); err != nil {
			t.Fatal(err)
		}
		if j, _, _ := r.Job(ctx, actor, c2); j.State != thole.JobCancelled {
			t.Fatal("cancel does not reach the child")
		}
	})
}
