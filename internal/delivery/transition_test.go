package delivery

import (
	"testing"

	thole "github.com/tholehq/thole"
)

// The table is written out a second time, by hand, state by state: every pair of
// state and move has exactly the expected result.
func TestEveryTransition(t *testing.T) {
	const no = thole.AttemptState("")
	want := map[thole.AttemptState][]thole.AttemptState{
		// moves:           begin_accept, accept, reject, begin_arm, arm, close, abandon, supersede
		"prepared":       {"accept_pending", no, no, "arm_pending", no, no, "abandoned", "superseded"},
		"accept_pending": {no, "cooldown", "prepared", no, no, no, "abandoned", "superseded"},
		"arm_pending":    {no, no, no, no, "cooldown", no, "abandoned", "superseded"},
		"cooldown":       {no, no, no, no, no, "closed", "abandoned", "superseded"},
		"closed":         {no, no, no, no, no, no, no, no},
		"superseded":     {no, no, no, no, no, no, no, no},
		"abandoned":      {no, no, no, no, no, no, no, no},
	}
	if len(want) != len(thole.AttemptStates) {
		t.Fatal("a state is missing")
	}
	for _, from := range thole.AttemptStates {
		if len(want[from]) != len(Moves) {
			t.Fatalf("%s: a move is missing", from)
		}
		for i, m := range Moves {
			got, ok := Next(from, m)
			if ok != (want[from][i] != no) || ok && got != want[from][i] || !ok && got != from {
				t.Errorf("%s by %s: got %s %v, want %q", from, m, got, ok, want[from][i])
			}
		}
		if from.Open() {
			if _, ok := Next(from, ending(from)); !ok {
				t.Errorf("%s cannot be ended", from)
			}
		}
	}
}

func TestBackoffIsBounded(t *testing.T) {
	l := DefaultLimits()
	last := l.RetryMin
	for n := int64(1); n < 100; n++ {
		d := l.backoff(n)
		if d < last || d > l.RetryMax {
			t.Fatalf("backoff(%d) = %v after %v", n, d, last)
		}
		last = d
	}
	if last != l.RetryMax {
		t.Fatalf("backoff ends at %v", last)
	}
}
