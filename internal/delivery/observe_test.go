package delivery_test

import (
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/store/storetest"
)

func TestNegativeEndings(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for i, e := range []thole.TurnEvent{thole.TurnEventFailed, thole.TurnEventInterrupted, thole.TurnEventReplaced} {
			thread := string(rune('a' + i))
			r.ready(thread, thole.TargetCLI)
			p := r.begin(thread)
			r.accept(p, "turn")
			r.see(p, "turn", e)
			v := r.head(thread)
			if v.Batch.Replay != thole.ReplayManual || v.Attempts[0].State != thole.AttemptAbandoned {
				t.Fatalf("%s: %+v", e, v.Batch)
			}
			for range 2 { // a stream that is read again shows it again
				if r.see(p, "turn", thole.TurnEventCompleted) {
					t.Fatalf("%s: a late completion moved the batch", e)
				}
			}
			late := 0
			for _, row := range r.batch(p.Batch.ID).Ledger {
				if row.Event == "attempt.late_observation" {
					late++
				}
			}
			if late != 1 {
				t.Fatalf("%s: %d rows of one late observation", e, late)
			}
			if got := r.batch(p.Batch.ID).Batch.State; got == thole.BatchClosed {
				t.Fatal("held batch was closed by a late completion")
			}
		}
	})
}

func TestObservationDeadline(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		for i, late := range []time.Duration{0, time.Millisecond} {
			thread := string(rune('a' + i))
			r.ready(thread, thole.TargetCLI)
			p := r.begin(thread)
			r.accept(p, "turn")
			r.c.add(testLimits().Observation + late)
			moved := r.see(p, "turn", thole.TurnEventCompleted)
			if moved != (late == 0) {
				t.Fatalf("completion %v after the deadline: moved=%v", late, moved)
			}
			r.sweep()
		}
		if v := r.head("b"); v.Attempts[0].Observation.State != thole.ObservationExpired || v.Batch.Replay != thole.ReplayManual {
			t.Fatalf("after the deadline: %+v", v.Attempts[0].Observation)
		}
	})
}

// The window never closes a batch whose accepted turn is still being followed.
func TestWindowWaitsForObservation(t *testing.T) {
	l := testLimits()
	l.Window, l.Observation = time.Minute, time.Hour
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newRig(t, open(t), l)
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		r.accept(p, "turn")
		r.c.add(30 * time.Minute)
		r.sweep()
		if !r.see(p, "turn", thole.TurnEventCompleted) {
			t.Fatal("the window overtook the observation")
		}
		if got := r.batch(p.Batch.ID).Batch.CloseReason; got != thole.CloseDelivered {
			t.Fatalf("close reason %q", got)
		}
	})
}

func TestWindowExhausted(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		id := r.head("a").Batch.ID
		r.c.add(testLimits().Window)
		r.sweep()
		if got := r.batch(id).Batch.CloseReason; got != thole.CloseWindowExhausted {
			t.Fatalf("close reason %q", got)
		}
	})
}
