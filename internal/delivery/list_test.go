package delivery_test

import (
	"fmt"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store/storetest"
)

// Pages of a list, one after the other, are the list; a cursor of another user or
// of nothing is refused.
func TestListsAreWalkedByPages(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for i := range 5 {
			r.ready("a", thole.TargetCLI)
			if i == 0 {
				r.begin("a") // later results are a batch after this one
			}
			r.ready("b", thole.TargetCLI)
		}
		stranger := thole.Actor{User: "00000000-0000-7000-8000-000000000099", Via: "test"}
		all, err := r.Jobs(ctx, actor, delivery.JobFilter{})
		r.ok(err)
		var walked []delivery.Job
		for f := (delivery.JobFilter{Limit: 3}); ; f.After = walked[len(walked)-1].ID {
			page, err := r.Jobs(ctx, actor, f)
			r.ok(err)
			walked = append(walked, page...)
			if len(page) < 3 {
				break
			}
		}
		if len(walked) != 10 || len(all) != 10 {
			t.Fatalf("%d jobs in pages, %d at once", len(walked), len(all))
		}
		for i := range all {
			if all[i].ID != walked[i].ID {
				t.Fatalf("job %d is %s in pages, %s at once", i, walked[i].ID, all[i].ID)
			}
		}
		batches, err := r.Batches(ctx, actor, delivery.BatchFilter{})
		r.ok(err)
		heads := map[thole.ThreadID]int{}
		for _, b := range batches {
			if b.Head != (r.head(string(b.Lane.Thread)).Batch.ID == b.Batch.ID) {
				t.Errorf("batch %s of %s: head %v", b.Batch.ID, b.Lane.Thread, b.Head)
			}
			if b.Head {
				heads[b.Lane.Thread]++
			}
		}
		if heads["a"] != 1 || heads["b"] != 1 {
			t.Errorf("heads are %v", heads)
		}
		rest, err := r.Batches(ctx, actor, delivery.BatchFilter{After: batches[0].Batch.ID})
		r.ok(err)
		if len(rest) != len(batches)-1 || rest[0].Batch.ID != batches[1].Batch.ID {
			t.Errorf("behind the first batch are %d of %d", len(rest), len(batches))
		}
		for name, err := range map[string]error{
			"a stranger's job":   last(r.Jobs(ctx, stranger, delivery.JobFilter{After: all[0].ID})),
			"no job":             last(r.Jobs(ctx, actor, delivery.JobFilter{After: "00000000-0000-7000-8000-000000000999"})),
			"a stranger's batch": last(r.Batches(ctx, stranger, delivery.BatchFilter{After: batches[0].Batch.ID})),
		} {
			if thole.CodeOf(err) != thole.CodeGone {
				t.Errorf("%s as a cursor: %v", name, err)
			}
		}
	})
}

func last[T any](_ T, err error) error { return err }

// Whatever a list shows at once, no attempt is without its follower and no command
// without its supervisor because there are many.
func TestEveryLiveAttemptAndSupervisedJob(t *testing.T) {
	const many = 1003
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newRig(t, open(t), testLimits()) // rows without a story: the rules are not asked
		r.ready("a0", thole.TargetCLI)
		p := r.begin("a0")
		job, _, err := r.Submit(ctx, actor, r.submission("a0", thole.TargetCLI, func(s *delivery.Submit) { s.Supervised = true }))
		r.ok(err)
		r.ok(r.store.Update(ctx, "test.many", func(tx delivery.Tx) error {
			for i := 1; i < many; i++ {
				lane, batch, attempt, j := p.Lane, p.Batch, p.Attempt, job
				lane.Thread = thole.ThreadID(fmt.Sprintf("a%d", i))
				lane.ID = lane.LaneID()
				batch.ID, batch.LaneID = thole.BatchID(r.id()), lane.ID
				attempt.ID, attempt.LaneID, attempt.Batch = thole.AttemptID(r.id()), lane.ID, batch.ID
				j.ID = thole.JobID(r.id())
				for _, err := range []error{tx.InsertLane(&lane), tx.InsertBatch(&batch), tx.InsertAttempt(&attempt), tx.InsertJob(&j)} {
					if err != nil {
						return err
					}
				}
			}
			return nil
		}))
		live, err := r.Live(ctx)
		r.ok(err)
		attempts := map[thole.AttemptID]bool{}
		for _, p := range live {
			attempts[p.Attempt.ID] = p.Lane.ID == p.Attempt.LaneID && p.Batch.ID == p.Attempt.Batch
		}
		if len(live) != many || len(attempts) != many {
			t.Errorf("%d of %d live attempts, %d of them once", len(live), many, len(attempts))
		}
		jobs, err := r.Supervised(ctx)
		r.ok(err)
		ids := map[thole.JobID]bool{}
		for _, j := range jobs {
			ids[j.ID] = true
		}
		if len(jobs) != many || len(ids) != many {
			t.Errorf("%d of %d supervised jobs, %d of them once", len(jobs), many, len(ids))
		}
	})
}
