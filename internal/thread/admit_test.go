package thread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// While turns are not admitted, none starts, nothing is written, and what waits in the
// queue goes on waiting; a shell command calls no model and runs.
func TestTurnsThatAreNotAdmitted(t *testing.T) {
	ctx, me := context.Background(), thole.LocalActor
	var refuse error
	db := storetest.SQLite(t)
	m, err := thread.New(thread.Config{Store: db.Threads(), Admit: func(_ context.Context, o thole.Owner, id thole.ThreadID) error {
		if o != thole.DefaultOwner || id == "" {
			return errors.New("asked for nobody")
		}
		return refuse
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(ctx)
	th, err := m.Create(ctx, me, thread.Create{Owner: thole.DefaultOwner})
	if err != nil {
		t.Fatal(err)
	}
	start := func() (thole.TurnID, error) {
		turn, err := m.StartTurn(ctx, me, thread.StartTurn{Thread: th.ID, Input: thole.Text("x")})
		return turn.ID, err
	}
	spent := thole.Errorf(thole.CodeBudgetExceeded, "spent")
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, spent) {
			t.Errorf("%s: %v", what, err)
		}
	}
	turn, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Enqueue(ctx, me, thread.Enqueue{Thread: th.ID, Input: thole.Text("later"), Start: true}); err != nil {
		t.Fatal(err)
	}
	refuse = spent
	if err := m.Interrupt(ctx, me, th.ID, turn); err != nil { // nobody holds it: it ends here
		t.Fatal(err)
	}
	before, err := m.Get(ctx, me, th.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = start()
	refused("start", err)
	_, err = m.StartQueued(ctx, me, th.ID, "")
	refused("start queued", err)
	_, err = m.Enqueue(ctx, me, thread.Enqueue{Thread: th.ID, Input: thole.Text("now"), Start: true})
	refused("submit", err)
	if after, err := m.Get(ctx, me, th.ID); err != nil || after.Seq != before.Seq {
		t.Errorf("a refusal wrote %d events (%v)", after.Seq-before.Seq, err)
	}
	// A command ends the pause, and the message after it still waits.
	if _, err := m.Enqueue(ctx, me, thread.Enqueue{Thread: th.ID, Input: []thole.Input{{Type: string(thole.TurnCommandShell), Text: "ls"}}, Start: true, Command: true}); err != nil {
		t.Fatalf("a shell command: %v", err)
	}
	open, err := m.Get(ctx, me, th.ID)
	if err != nil || open.Open == "" {
		t.Fatalf("the shell command did not start: %v", err)
	}
	if err := m.Interrupt(ctx, me, th.ID, open.Open); err != nil {
		t.Fatal(err)
	}
	if waiting, err := m.Queue(ctx, me, th.ID); err != nil || len(waiting) != 1 || waiting[0].Input[0].Text != "later" {
		t.Fatalf("queue %+v, %v", waiting, err)
	}
	refuse = nil
	next, err := m.StartQueued(ctx, me, th.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	// The end of a turn starts nothing that is not admitted.
	if _, err := m.Enqueue(ctx, me, thread.Enqueue{Thread: th.ID, Input: thole.Text("last"), Start: true}); err != nil {
		t.Fatal(err)
	}
	refuse = spent
	for range 3 { // the rows of the turns before are given up first
		leases, err := db.Queue().Claim(ctx, queue.Claim{Owner: "w", Lease: time.Hour, Token: "token", Max: 1})
		if err != nil || len(leases) != 1 {
			t.Fatalf("claimed %+v, %v", leases, err)
		}
		if leases[0].Turn == next.ID {
			end := []event.Event{{ID: "end", Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}}
			if err := m.Apply(ctx, thread.TurnRef{Thread: th.ID, Turn: next.ID, Token: "token"}, end); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Queue().Complete(ctx, leases[0].Turn, "token"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := m.Get(ctx, me, th.ID); err != nil || got.Open != "" {
		t.Errorf("the end of a turn started %q, %v", got.Open, err)
	}
	if waiting, err := m.Queue(ctx, me, th.ID); err != nil || len(waiting) != 1 {
		t.Errorf("queue %+v, %v", waiting, err)
	}
}
