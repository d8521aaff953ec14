package store_test

import (
	"context"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// TestTurnAndQueueRowMoveTogether: a turn's events and its row of the turn queue
// commit in one transaction, and only the lease's holder may report.
func TestTurnAndQueueRowMoveTogether(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db, ctx, me := open(t), context.Background(), thole.LocalActor
		m, err := thread.New(thread.Config{Store: db.Threads()})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(ctx)
		th, err := m.Create(ctx, me, thread.Create{})
		if err != nil {
			t.Fatal(err)
		}
		turn, err := m.StartTurn(ctx, me, thread.StartTurn{Thread: th.ID, Input: thole.Text("x")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.StartTurn(ctx, me, thread.StartTurn{Thread: th.ID}); thole.CodeOf(err) != thole.CodeBusy {
			t.Fatalf("second start: %v", err)
		}
		leases, err := db.Queue().Claim(ctx, queue.Claim{Owner: "w", Lease: time.Minute, Token: "token", Max: 1})
		if err != nil || len(leases) != 1 || leases[0].Turn != turn.ID {
			t.Fatalf("claimed %+v, %v", leases, err)
		}
		note := []event.Event{{ID: "n", Kind: event.NoteReported, Data: event.Data{Text: "x"}}}
		ref := thread.TurnRef{Thread: th.ID, Turn: turn.ID}
		for _, ref.Token = range []string{"stale", ""} {
			if err := m.Apply(ctx, ref, note); thole.CodeOf(err) != thole.CodeConflict {
				t.Fatalf("token %q wrote: %v", ref.Token, err)
			}
			if err := m.SetPhase(ctx, ref, thole.PhaseClaimed, ""); thole.CodeOf(err) != thole.CodeConflict {
				t.Fatalf("token %q moved the turn: %v", ref.Token, err)
			}
		}
		ref.Token = "token"
		if err := m.Apply(ctx, ref, note); err != nil {
			t.Fatal(err)
		}
		if err := m.Interrupt(ctx, me, th.ID, turn.ID); err != nil {
			t.Fatal(err)
		}
		if cancel, err := db.Queue().Renew(ctx, turn.ID, "token", time.Minute); err != nil || !cancel {
			t.Fatalf("the lease's holder was not told to stop: %v, %v", cancel, err)
		}
	})
}
