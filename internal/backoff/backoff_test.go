package backoff

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var slow = Policy{Min: time.Second, Max: 5 * time.Second}

func TestDoublesToTheCap(t *testing.T) {
	b := slow.Begin()
	next := func() (got []time.Duration) {
		for range 5 {
			got = append(got, b.Next()/time.Second)
		}
		return got
	}
	want := []time.Duration{1, 2, 4, 5, 5}
	if got := next(); !slices.Equal(got, want) {
		t.Errorf("pauses %v", got)
	}
	b.Reset()
	if got := next(); !slices.Equal(got, want) {
		t.Errorf("pauses after a reset %v", got)
	}
	for n, want := range map[int]time.Duration{-1: 1, 0: 1, 1: 1, 3: 4, 1 << 40: 5} {
		if got := slow.After(n); got != want*time.Second {
			t.Errorf("after %d failures %s", n, got)
		}
	}
	if got := (Policy{Min: time.Minute, Max: time.Second}).After(1); got != time.Second {
		t.Errorf("beyond the cap: %s", got)
	}
}

func TestJitterStaysWithin(t *testing.T) {
	for jitter, least := range map[Jitter]time.Duration{Half: 500 * time.Millisecond, Full: 0} {
		seen := map[time.Duration]bool{}
		for range 200 {
			d := Policy{time.Second, time.Second, jitter}.Begin().Next()
			if seen[d] = true; d < least || d >= time.Second {
				t.Fatalf("jitter %d: %s", jitter, d)
			}
		}
		if len(seen) < 100 {
			t.Errorf("jitter %d: %d different pauses of 200", jitter, len(seen))
		}
	}
	if d := (Policy{1, 1, Half}).Begin().Next(); d != 1 {
		t.Errorf("a pause too short for jitter is %d", d)
	}
}

func TestTriesWaitBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, at := time.Now(), []time.Duration(nil)
		for n := range slow.Tries(t.Context(), 4) {
			if at = append(at, time.Since(began)/time.Second); n != len(at) {
				t.Errorf("try %d is %d", len(at), n)
			}
		}
		if !slices.Equal(at, []time.Duration{0, 1, 3, 7}) || time.Since(began) != 7*time.Second {
			t.Errorf("tried at %v, ended after %s", at, time.Since(began))
		}
	})
}

func TestContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("no more")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2500*time.Millisecond, why)
		defer cancel()
		began, tries := time.Now(), 0
		for range slow.Tries(ctx, 0) {
			tries++
		}
		if tries != 2 || time.Since(began) != 2500*time.Millisecond {
			t.Errorf("%d tries in %s", tries, time.Since(began))
		}
		if err := slow.Begin().Wait(ctx); !errors.Is(err, why) {
			t.Errorf("waited with %v", err)
		}
	})
}
