package thread_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// Runs of one turn are added up; what a hostile executor reports is bounded; nobody else sees it.
func TestNetwork(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		id := b.create(thread.Create{}).ID
		sent := func(id string, list ...event.Traffic) event.Event {
			return event.Event{ID: thole.EventID(id), Kind: event.NetworkUpdated, Data: event.Data{Network: list}}
		}
		a := event.Traffic{Host: "a.com", Port: 443, Verdict: "allowed", Connections: 1, Sent: 1, Received: 2}
		refused := event.Traffic{Host: "a.com", Port: 443, Verdict: "refused", Why: "why", Connections: 1}
		first, _ := b.turn(id, "x")
		if err := b.Apply(bg, thread.TurnRef{Thread: id, Turn: first.ID}, []event.Event{sent("r1", a, refused), sent("r2", a), sent("r1", a), sent("none"),
			{ID: "end", Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}}); err != nil {
			t.Fatal(err)
		}
		second, report := b.turn(id, "y")
		many := make([]event.Traffic, 5000)
		for i := range many {
			many[i] = event.Traffic{Host: strings.Repeat("h", 3000) + "\x00", Verdict: strings.Repeat("v", 3000), Sent: -5}
		}
		report(sent("r3", many...), event.Event{Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}})
		got, err := b.Network(bg, me, id)
		if err != nil || len(got) != 2 || got[0].Turn != first.ID || got[1].Turn != second.ID {
			t.Fatalf("%+v, %v", got, err)
		}
		if l := got[0].Traffic; len(l) != 2 || l[0].Connections != 2 || l[0].Sent != 2 || l[0].Received != 4 || l[1] != refused {
			t.Errorf("of two runs: %+v", l)
		}
		if l := got[1].Traffic; len(l) != 200 || len(l[0].Host) != 300 || len(l[0].Verdict) != 300 || l[0].Sent != 0 {
			t.Errorf("%d entries, the first %+v", len(l), l[0])
		}
		you := me
		you.User = "00000000-0000-7000-8000-0000000000aa"
		if _, err := b.Network(bg, you, id); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("somebody else: %v", err)
		}
	})
}
