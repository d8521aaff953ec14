package clock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tholehq/thole/internal/clock"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestFakeFiresInOrderAtTheirTimes(t *testing.T) {
	f := clock.NewFake(start)
	var got []time.Duration
	note := func() { got = append(got, f.Now().Sub(start)) }
	f.AfterFunc(3*time.Second, note)
	f.AfterFunc(time.Second, func() {
		note()
		f.AfterFunc(time.Second, note) // due within the same Advance
	})
	stop := f.AfterFunc(2*time.Second, func() { t.Error("a stopped callback ran") })
	if !stop() || stop() {
		t.Error("stop lied")
	}
	f.Advance(2500 * time.Millisecond)
	f.Advance(time.Second)
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(got, want) || f.Pending() != 0 {
		t.Fatalf("%v, pending %d", got, f.Pending())
	}
	if f.Now() != start.Add(3500*time.Millisecond) {
		t.Fatal(f.Now())
	}
}

func TestAwait(t *testing.T) {
	f := clock.NewFake(start)
	done := make(chan time.Time)
	go func() { done <- <-f.NewTimer(time.Minute).C() }()
	if err := f.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Minute)
	if at := <-done; at != start.Add(time.Minute) {
		t.Fatal(at)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Await(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestTimers holds both clocks to the same rules.
func TestTimers(t *testing.T) {
	rules := func(t *testing.T, c clock.Clock, advance func(time.Duration)) {
		tm := c.NewTimer(time.Second)
		advance(time.Second)
		if !tm.Stop() { // due, unread: Stop takes the tick back
			t.Error("Stop of an unread timer")
		}
		select {
		case <-tm.C():
			t.Error("a stale tick")
		default:
		}
		if tm.Reset(time.Second) || !tm.Reset(2*time.Second) {
			t.Error("Reset lied")
		}
		from := c.Now()
		advance(2 * time.Second)
		if at := <-tm.C(); at.Sub(from) < 2*time.Second {
			t.Error(at)
		}
	}
	t.Run("fake", func(t *testing.T) {
		f := clock.NewFake(start)
		rules(t, f, f.Advance)
	})
	t.Run("real", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rules(t, clock.Real, func(d time.Duration) { time.Sleep(d); synctest.Wait() })
		})
	})
}
