package thread_test

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// StopAll stops the turns of one user, on every page of their threads, and no other's.
func TestStopAll(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	stopped := func(id thole.ThreadID, turn thole.TurnID) bool {
		t.Helper()
		events, err := b.Events(bg, thole.SystemActor, id, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Kind == event.TurnInterrupt && e.Turn == turn {
				return e.Actor == thole.SystemActor
			}
		}
		return false
	}
	first := b.create(thread.Create{}).ID
	turn, _ := b.turn(first, "one")
	for range 120 {
		b.create(thread.Create{})
	}
	if err := b.StopAll(bg, "00000000-0000-7000-8000-0000000000a2"); err != nil || stopped(first, turn.ID) {
		t.Fatalf("another user's: %v", err)
	}
	for range 2 { // a repeat changes nothing
		if err := b.StopAll(bg, me.User); err != nil || !stopped(first, turn.ID) {
			t.Fatalf("the user's own turn goes on: %v", err)
		}
	}
}
