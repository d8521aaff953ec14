package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// fragile is a driver whose first starts fail.
type fragile struct {
	executor.Driver
	left atomic.Int64
}

func (f *fragile) Start(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	if f.left.Add(-1) >= 0 {
		return executor.Info{}, errors.New("no room for one more process")
	}
	return f.Driver.Start(ctx, id)
}

// Dispatchers that die or stop over a turn before they reached an executor leave
// it all its attempts: a failure after them is the first.
func TestRestartsEatNoAttempts(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		w, db := newWorld(t), open(t)
		m, err := thread.New(thread.Config{Store: db.Threads()})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(ctx); err != nil {
			t.Fatal(err)
		}
		id := (&rig{Machine: m, t: t}).thread()
		turn := (&rig{Machine: m, t: t}).start(id, "sim: say done")
		if err := m.Close(ctx); err != nil {
			t.Fatal(err)
		}
		q := db.Queue()
		for range queue.MaxAttempts + 2 { // each claims, and is killed
			got, err := q.Claim(ctx, queue.Claim{Owner: "killed", Token: thole.NewID[string](time.Now()), Max: 1, Lease: time.Hour})
			if err != nil || len(got) != 1 || got[0].Attempt != 1 {
				t.Fatalf("claimed %+v, %v", got, err)
			}
			if back, err := q.Reap(ctx, true, 10); err != nil || len(back) != 1 {
				t.Fatalf("reaped %v, %v", back, err)
			}
		}
		driver := &fragile{}
		driver.left.Store(2)
		r := w.rig(t, db, func(c *dispatch.Config) { driver.Driver, c.Driver = c.Driver, driver })
		if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "done") {
			t.Fatalf("%+v, error %+v", got, got.Error)
		}
	})
}

// A turn whose executor never starts fails after its attempts and says why.
func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	driver := &fragile{}
	driver.left.Store(1000)
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { driver.Driver, c.Driver = c.Driver, driver })
	id := r.thread()
	got := r.settled(id, r.start(id, "sim: say never"))
	if got.Outcome != thole.OutcomeFailed || got.Error == nil || !strings.Contains(got.Error.Message, "no room") {
		t.Fatalf("%+v, error %+v", got, got.Error)
	}
	if tries := 1000 - driver.left.Load(); tries != queue.MaxAttempts {
		t.Errorf("it was tried %d times", tries)
	}
}
