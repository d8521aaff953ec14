package delivery_test

import (
	"context"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/store/storetest"
)

// A clock that went back must not stretch deadlines beyond their own length.
func TestClockGoesBack(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		r.accept(p, "turn")
		id := r.submit("b", thole.TargetCLI)
		r.finish(id, thole.JobReady, "x")
		r.c.add(-24 * time.Hour)
		r.sweep()
		r.c.add(testLimits().Observation + time.Millisecond)
		r.sweep()
		if v := r.head("a"); v.Batch.Replay != thole.ReplayManual {
			t.Fatal("the observation deadline stayed a day away")
		}
		if v := r.head("b"); v.Lane.Ticket == 0 {
			t.Fatal("the wait window stayed a day away")
		}
		r.c.add(testLimits().Window)
		r.sweep()
		if v, err := r.InspectHead(context.Background(), actor, address("a").LaneID()); err == nil {
			t.Fatalf("the window stayed a day away: %+v", v.Batch)
		}
	})
}

func TestSweepTwiceIsOnce(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for _, thread := range []string{"a", "b", "c"} {
			r.ready(thread, thole.TargetCLI)
			r.accept(r.begin(thread), "t")
		}
		r.c.add(time.Hour)
		r.sweep()
		if n, err := r.Sweep(context.Background()); n != 0 || err != nil {
			t.Fatalf("the second sweep moved %d rows (%v)", n, err)
		}
	})
}

// between runs something in the gap between a sweep's list and its change.
type between struct {
	delivery.Store
	step string
	do   func()
}

func (s *between) Update(ctx context.Context, step string, fn func(delivery.Tx) error) error {
	if step == s.step && s.do != nil {
		do := s.do
		s.do = nil
		do()
	}
	return s.Store.Update(ctx, step, fn)
}

// A sweep changes only what is still as it saw it: an acceptance that arrives
// after the list was made wins.
func TestSweepLooksAgain(t *testing.T) {
	r := newRig(t, storetest.SQLite(t), testLimits())
	r.ready("a", thole.TargetCLI)
	p := r.begin("a")
	r.c.add(testLimits().AcceptTimeout)
	racing := &between{Store: clocked{r.db.Delivery(), r.c}, step: "delivery.sweep_attempt", do: func() { r.accept(p, "turn") }}
	sweeper := delivery.New(delivery.Config{Store: racing, Limits: testLimits()})
	if _, err := sweeper.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if v := r.head("a"); v.Attempts[0].State != thole.AttemptCooldown || v.Batch.Replay != thole.ReplayAutomatic {
		t.Fatalf("the sweep overtook an acceptance: %s, %s", v.Attempts[0].State, v.Batch.Replay)
	}
	// The same for a clock that went back: far deadlines are shortened, not expired.
	r.c.add(-24 * time.Hour)
	r.sweep()
	if !r.see(p, "turn", thole.TurnEventCompleted) {
		t.Fatal("a deadline that moved away expired at once")
	}
}

// A lane that waits to be tried again waits for its receiver: that keeps no process.
func TestRetryIsNotNear(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		v := r.head("a")
		r.ok(r.Defer(ctx, thole.SystemActor, v.Lane.ID, v.Batch.ID, "nobody there", 0))
		p, err := r.Pending(ctx)
		r.ok(err)
		if due := r.head("a").Lane.DueAt; !p.Next.Equal(due) || !p.Near.Equal(v.Batch.WindowEndsAt) {
			t.Errorf("next %v, near %v; due %v, window %v", p.Next, p.Near, due, v.Batch.WindowEndsAt)
		}
	})
}
