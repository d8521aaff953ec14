package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/runner"
	"github.com/tholehq/thole/internal/thread"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var me = thole.LocalActor

// rig is a machine with a runner on the scripted agent.
type rig struct {
	*thread.Machine
	t    testing.TB
	home string
	stop func()
}

func newRig(t testing.TB, db *store.DB, home string) *rig {
	t.Helper()
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(m, home, "here")
	m.Attach(r)
	if err := m.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	g := &rig{Machine: m, t: t, home: home}
	stopped := false
	g.stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.Close(ctx)
		_ = m.Close(ctx)
	}
	t.Cleanup(g.stop)
	return g
}

func (g *rig) create() thole.ThreadID {
	g.t.Helper()
	th, err := g.Create(context.Background(), me, thread.Create{Settings: event.Settings{Profile: thole.ProfileAsk}})
	if err != nil {
		g.t.Fatal(err)
	}
	return th.ID
}

func (g *rig) start(id thole.ThreadID, text string) fold.Turn {
	g.t.Helper()
	turn, err := g.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Text(text)})
	if err != nil {
		g.t.Fatal(err)
	}
	return turn
}

// until reads a subscription up to the first event that stop accepts.
func until(t testing.TB, sub *thread.Subscription, stop func(event.Event) bool) []event.Event {
	t.Helper()
	var all []event.Event
	deadline := time.After(20 * time.Second)
	for {
		select {
		case batch, ok := <-sub.Events:
			if !ok {
				t.Fatalf("subscription ended: %v", sub.Err())
			}
			for i, e := range batch.Events {
				all = append(all, e)
				if stop(e) {
					_ = i
					return all
				}
			}
		case <-deadline:
			var kinds []string
			for _, e := range all {
				kinds = append(kinds, string(e.Kind))
			}
			t.Fatalf("waited too long; saw %s", strings.Join(kinds, " "))
		}
	}
}

func kind(k event.Kind) func(event.Event) bool {
	return func(e event.Event) bool { return e.Kind == k }
}

func (g *rig) subscribe(id thole.ThreadID) *thread.Subscription {
	g.t.Helper()
	sub, err := g.Subscribe(context.Background(), me, id, thread.SubscribeOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(sub.Close)
	return sub
}

func TestTurn(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		g := newRig(t, open(t), t.TempDir())
		id := g.create()
		sub := g.subscribe(id)
		turn := g.start(id, "hello there")
		events := until(t, sub, kind(event.TurnEnded))
		end := events[len(events)-1]
		if end.Data.Outcome != thole.OutcomeCompleted || end.Turn != turn.ID {
			t.Fatalf("end = %+v", end)
		}
		var said string
		for _, e := range events {
			if e.Kind == event.ItemCompleted && e.Data.Item.Kind == event.ItemMessage {
				said = e.Data.Item.Text
			}
		}
		if !strings.Contains(said, "hello there") {
			t.Fatalf("agent said %q", said)
		}
		th, err := g.Get(context.Background(), me, id)
		if err != nil || th.Status.Active || th.NativeID == "" || th.Turns != 1 || th.Preview != "hello there" {
			t.Fatalf("thread = %+v, %v", th, err)
		}
	})
}

func TestApprovalAndSecondTurn(t *testing.T) {
	g := newRig(t, storetest.SQLite(t), t.TempDir())
	id := g.create()
	sub := g.subscribe(id)
	g.start(id, "sim: run echo one > out.txt")
	events := until(t, sub, kind(event.AskRequested))
	ask := events[len(events)-1].Data.Ask
	th, _ := g.Get(context.Background(), me, id)
	if !th.Status.Active || !th.Status.WaitingOnApproval {
		t.Fatalf("status = %+v", th.Status)
	}
	if _, err := g.Answer(context.Background(), me, id, ask.ID, event.Answer{Decision: event.DecisionAllow}); err != nil {
		t.Fatal(err)
	}
	until(t, sub, kind(event.TurnEnded))
	if _, err := os.Stat(filepath.Join(g.home, "threads", string(id), "work", "out.txt")); err != nil {
		t.Fatalf("the command did not run: %v", err)
	}
	g.start(id, "again")
	until(t, sub, kind(event.TurnEnded))
}

func TestInterruptSteerAndQueue(t *testing.T) {
	g := newRig(t, storetest.SQLite(t), t.TempDir())
	id := g.create()
	sub := g.subscribe(id)
	turn := g.start(id, "sim: say begun ;; hang")
	until(t, sub, func(e event.Event) bool {
		return e.Kind == event.ItemCompleted && e.Data.Item.Kind == event.ItemMessage
	})
	if _, err := g.Enqueue(context.Background(), me, thread.Enqueue{Thread: id, Input: thole.Text("afterwards"), Start: true}); err != nil {
		t.Fatal(err)
	}
	if err := g.Interrupt(context.Background(), me, id, turn.ID); err != nil {
		t.Fatal(err)
	}
	events := until(t, sub, kind(event.TurnEnded))
	if end := events[len(events)-1]; end.Data.Outcome != thole.OutcomeInterrupted {
		t.Fatalf("end = %+v", end.Data)
	}
	if q, _ := g.Queue(context.Background(), me, id); len(q) != 1 {
		t.Fatalf("queue = %+v", q)
	}
	if _, err := g.StartQueued(context.Background(), me, id, ""); err != nil {
		t.Fatal(err)
	}
	events = until(t, sub, kind(event.TurnEnded))
	if end := events[len(events)-1]; end.Data.Outcome != thole.OutcomeCompleted {
		t.Fatalf("end = %+v", end.Data)
	}

	slow := g.start(id, "sim: slow 20ms ;; say a b c d e f g h i j")
	until(t, sub, kind(event.ItemDelta))
	if _, err := g.Steer(context.Background(), me, thread.Steer{Thread: id, Expected: slow.ID, Input: thole.Text("sim: say steered"), ClientID: "mine"}); err != nil {
		t.Fatal(err)
	}
	events = until(t, sub, kind(event.TurnEnded))
	var told []string
	for _, e := range events {
		if e.Kind == event.ItemCompleted {
			told = append(told, string(e.Data.Item.Kind)+":"+e.Data.Item.Text+e.Data.Item.ClientID)
		}
	}
	if got := strings.Join(told, " | "); !strings.Contains(got, "message:a b c d e f g h i j") || !strings.Contains(got, "user_message:mine") || !strings.Contains(got, "message:steered") {
		t.Fatalf("items: %s", got)
	}
}

func TestUnknownAgentFailsTheTurn(t *testing.T) {
	g := newRig(t, storetest.SQLite(t), t.TempDir())
	id := g.create()
	sub := g.subscribe(id)
	_, err := g.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Text("x"), Settings: &event.Settings{Provider: "nobody"}, Once: true})
	if err != nil {
		t.Fatal(err)
	}
	events := until(t, sub, kind(event.TurnEnded))
	if end := events[len(events)-1].Data; end.Outcome != thole.OutcomeFailed || end.Error == nil || end.Error.Hint == "" {
		t.Fatalf("end = %+v", end)
	}
	g.start(id, "sim: crash")
	events = until(t, sub, kind(event.TurnEnded))
	if end := events[len(events)-1].Data; end.Outcome != thole.OutcomeFailed {
		t.Fatalf("end = %+v", end)
	}
	th, _ := g.Get(context.Background(), me, id)
	if !th.Status.SystemError {
		t.Fatalf("status = %+v", th.Status)
	}
	g.start(id, "fine again")
	until(t, sub, kind(event.TurnEnded))
}

// TestStoppedServerEndsTurnsVisibly closes everything under a running turn and
// starts again on the same store.
func TestStoppedServerEndsTurnsVisibly(t *testing.T) {
	db, home := storetest.SQLite(t), t.TempDir()
	g := newRig(t, db, home)
	id := g.create()
	sub := g.subscribe(id)
	turn := g.start(id, "sim: say begun ;; hang")
	until(t, sub, func(e event.Event) bool {
		return e.Kind == event.ItemCompleted && e.Data.Item.Kind == event.ItemMessage
	})
	if _, err := g.Enqueue(context.Background(), me, thread.Enqueue{Thread: id, Input: thole.Text("goes on"), Start: true}); err != nil {
		t.Fatal(err)
	}
	g.stop()
	var last event.Event
	for batch := range sub.Events { // the end is told before the subscription ends
		for _, e := range batch.Events {
			if e.Kind == event.TurnEnded {
				last = e
			}
		}
	}
	if last.Turn != turn.ID || last.Data.Outcome != thole.OutcomeInterrupted {
		t.Fatalf("last = %+v", last)
	}
	// The queue was not paused by a user, so the next message runs after the restart.
	g = newRig(t, db, home)
	sub = g.subscribe(id)
	if sub.Snapshot.Open != nil {
		until(t, sub, kind(event.TurnEnded))
	}
	turns, err := g.Turns(context.Background(), me, id, thread.PageParams{})
	if err != nil || len(turns.Items) != 2 || turns.Items[1].Outcome != thole.OutcomeCompleted {
		t.Fatalf("turns = %+v, %v", turns.Items, err)
	}
}
