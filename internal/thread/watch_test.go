package thread_test

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

func TestWatchTellsTheCoarseChanges(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	w, err := b.Watch(bg, me)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	stranger, err := b.Watch(bg, thole.Actor{User: "other", Via: "token"})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	id := b.create(thread.Create{}).ID
	_, report := b.turn(id, "x")
	report(said("m", "text"), ends(thole.OutcomeCompleted))
	name := "called"
	if _, err := b.Update(bg, me, id, thread.Update{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(bg, me, id); err != nil {
		t.Fatal(err)
	}
	var told []event.Kind
	var active []bool
	for _, e := range await(t, w, func(e event.Event) bool { return e.Kind == event.ThreadDeleted }) {
		told = append(told, e.Kind)
		if e.Kind == event.ThreadStatus {
			active = append(active, e.Data.Status.Active)
		}
	}
	want := []event.Kind{event.ThreadCreated, event.ThreadStatus, event.ThreadStatus, event.TurnEnded, event.ThreadUpdated, event.ThreadDeleted}
	if len(told) != len(want) || len(active) != 2 || !active[0] || active[1] {
		t.Fatalf("told %v, active %v", told, active)
	}
	for i := range want {
		if told[i] != want[i] {
			t.Fatalf("told %v", told)
		}
	}
	select {
	case e := <-stranger.Events:
		t.Fatalf("a stranger was told %v", e)
	default:
	}
}

// TestWatchAcrossProcesses: changes made elsewhere to threads that are not
// loaded here reach the watchers.
func TestWatchAcrossProcesses(t *testing.T) {
	a, b := twins(t)
	w, err := b.Watch(bg, me)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	th, err := a.Create(bg, me, thread.Create{Name: "seen"})
	if err != nil {
		t.Fatal(err)
	}
	await(t, w, func(e event.Event) bool {
		return e.Thread == th.ID && e.Kind == event.ThreadUpdated && e.Data.Name != nil && *e.Data.Name == "seen"
	})
}
