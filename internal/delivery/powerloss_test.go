package delivery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/powerloss"
)

// life is what commands, a driver and a sweep do to three threads, with a name for
// what each is shown afterwards.
func life(r *rig, ack func(string)) {
	job := r.submit("a", thole.TargetCLI)
	ack("submit")
	r.finish(job, thole.JobReady, "result")
	ack("finish")
	r.c.add(testLimits().WaitWindow)
	_, err := r.Sweep(ctx)
	r.ok(err)
	ack("sweep")
	p := r.begin("a")
	ack("barrier")
	r.accept(p, "turn")
	ack("accept")
	r.see(p, "turn", thole.TurnEventFailed)
	ack("hold")
	_, err = r.CloseHead(ctx, actor, address("a").LaneID(), p.Batch.ID, thole.CloseOperatorUnconfirmed)
	r.ok(err)
	ack("close-head")
	_, err = r.Cancel(ctx, actor, r.submit("b", thole.TargetCLI), "request", "not needed")
	r.ok(err)
	ack("cancel")
}

// kept says of each acknowledgement what must be there for ever.
var kept = map[string]func(a *delivery.BatchView, jobs map[thole.ThreadID]delivery.Job) bool{
	"submit": func(_ *delivery.BatchView, jobs map[thole.ThreadID]delivery.Job) bool { return jobs["a"].ID != "" },
	"finish": func(_ *delivery.BatchView, jobs map[thole.ThreadID]delivery.Job) bool {
		return jobs["a"].State == thole.JobReady
	},
	"sweep": func(a *delivery.BatchView, _ map[thole.ThreadID]delivery.Job) bool {
		return !a.Batch.MaterializedAt.IsZero()
	},
	"barrier": func(a *delivery.BatchView, _ map[thole.ThreadID]delivery.Job) bool {
		return len(a.Attempts) == 1 && a.Attempts[0].RPC.Marker != "" && a.Attempts[0].State != thole.AttemptPrepared
	},
	"accept": func(a *delivery.BatchView, _ map[thole.ThreadID]delivery.Job) bool {
		return a.Batch.AttemptCount == 1 && a.Attempts[0].Observation.Turn == "turn"
	},
	"hold": func(a *delivery.BatchView, _ map[thole.ThreadID]delivery.Job) bool {
		return a.Batch.Replay == thole.ReplayManual
	},
	"close-head": func(a *delivery.BatchView, _ map[thole.ThreadID]delivery.Job) bool {
		return a.Batch.CloseReason == thole.CloseOperatorUnconfirmed
	},
	"cancel": func(_ *delivery.BatchView, jobs map[thole.ThreadID]delivery.Job) bool {
		return jobs["b"].State == thole.JobCancelled
	},
}

// The power fails at every operation on the disk of a whole life. What a caller was
// acknowledged is there, every rule of stored state holds, and what was not acknowledged is whole
// or absent.
func TestLifeSurvivesPowerLoss(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("runs in make soak: each of its 400 states is a store to open")
	}
	powerloss.Enumerate(t, 0, func(d *powerloss.Disk) error {
		db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(d.Dir, "thole.db"), VFS: d.VFS})
		if err != nil {
			return err
		}
		defer db.Close()
		d.Start()
		life(newRig(t, db, testLimits()), d.Ack)
		return nil
	}, func(dir string, acked []string) error {
		db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(dir, "thole.db")})
		if err != nil {
			return err
		}
		defer db.Close()
		if broken, err := db.CheckDelivery(ctx); err != nil || len(broken) > 0 {
			return fmt.Errorf("after %v: %v, %v", acked, broken, err)
		}
		m := delivery.New(delivery.Config{Store: db.Delivery(), Limits: testLimits()})
		list, err := m.Jobs(ctx, actor, delivery.JobFilter{Limit: 10})
		if err != nil {
			return err
		}
		jobs := map[thole.ThreadID]delivery.Job{}
		for _, j := range list {
			jobs[j.Thread] = j
		}
		var a delivery.BatchView
		if id := jobs["a"].Batch; id != "" {
			if a, err = m.Inspect(ctx, actor, id); err != nil {
				return err
			}
		}
		for _, what := range acked {
			if !kept[what](&a, jobs) {
				return fmt.Errorf("%s was acknowledged and is lost: %+v, %+v", what, a.Batch, jobs)
			}
		}
		return nil
	})
}
