package thread_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
)

// deaf is a runner whose agent cannot be steered.
type deaf struct{ nobody }

func (deaf) Steer(context.Context, thread.TurnRef, []thole.Input, string) error {
	return thread.ErrNotSteerable
}

// refusedWork has an agent refuse a steer and a promoted message, then is the
// process that finds the turn after a crash.
func refusedWork(w *crash.Work) error {
	killable := []string{"thread.steer", "thread.promote_queued", "thread.refuse_steer", "thread.recover"}
	db, m, err := openCrash(w.Dir, func(p sqldb.Point, step string) {
		if slices.Contains(killable, step) {
			w.Hook(p, step)
		}
	})
	if err != nil {
		return err
	}
	m.Attach(deaf{})
	if _, err := m.Create(bg, me, thread.Create{ID: crashed}); err != nil {
		return err
	}
	turn, err := m.StartTurn(bg, me, thread.StartTurn{Thread: crashed, Input: thole.Text("begin")})
	if err != nil {
		return err
	}
	if err := m.Apply(bg, thread.TurnRef{Thread: crashed, Turn: turn.ID}, []event.Event{
		{ID: "e1", Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: "i1", Kind: event.ItemMessage}}},
	}); err != nil {
		return err
	}
	kept, err := m.Enqueue(bg, me, thread.Enqueue{Thread: crashed, Input: thole.Text("kept")})
	if err != nil {
		return err
	}
	w.Ack("running")
	if _, err := m.Steer(bg, me, thread.Steer{Thread: crashed, Expected: turn.ID, Input: thole.Text("refused")}); thole.CodeOf(err) != thole.CodeUnsupported {
		return fmt.Errorf("steer: %w", err)
	}
	w.Ack("refused")
	if _, err := m.PromoteQueued(bg, me, crashed, kept.ID); thole.CodeOf(err) != thole.CodeUnsupported {
		return fmt.Errorf("promote: %w", err)
	}
	w.Ack("returned")
	again, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: db.Threads()}})
	if err != nil {
		return err
	}
	again.Attach(nobody{})
	for range 2 {
		if err := again.Recover(bg); err != nil {
			return err
		}
	}
	w.Ack("recovered")
	return nil
}

// TestKilledWhileRefusing: a message the agent cannot take is taken back or still
// waits, in one place; one that came from the queue is never lost; recovery ends
// the turn once, however often it is begun.
func TestKilledWhileRefusing(t *testing.T) {
	crash.Enumerate(t, refusedWork, func(t *testing.T, dir string, acked []string, killed string) {
		db, m, err := openCrash(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		has := func(ack string) bool { return slices.Contains(acked, ack) }
		w := &world{t: t, db: db, m: m, id: crashed, answers: map[thole.AskID]event.Answer{}}
		w.check()
		places := func() {
			t.Helper()
			if n := w.places("refused"); n > 1 || has("refused") && n != 0 {
				t.Fatalf("the refused message is in %d places", n)
			}
			if n := w.places("kept"); n != 1 {
				t.Fatalf("the queued message is in %d places", n)
			}
		}
		places()
		before := w.reference()
		first := before.firstTurn()
		if has("recovered") && before.outcomes[first] == "" {
			t.Fatal("an acknowledged recovery is lost")
		}
		var seq uint64
		for i := range 3 {
			if err := m.Recover(bg); err != nil {
				t.Fatal(err)
			}
			w.check()
			places()
			r := w.reference()
			if i > 0 && r.seq != seq {
				t.Fatalf("recovery no. %d wrote %d events more", i+1, r.seq-seq)
			}
			seq = r.seq
		}
		turn, err := m.Turn(bg, me, crashed, first)
		if err != nil || turn.Outcome != thole.OutcomeInterrupted || turn.Error == nil || turn.Error.Code != thole.ErrProviderCrashed {
			t.Fatalf("the turn that lost its process: %+v, %v", turn, err)
		}
		if len(turn.Steers) != 0 {
			t.Fatalf("a turn that is over holds messages: %+v", turn.Steers)
		}
	})
}

// late is a runner whose turn ends while its agent refuses a steer.
type late struct {
	nobody
	m *thread.Machine
}

func (l late) Steer(ctx context.Context, ref thread.TurnRef, _ []thole.Input, _ string) error {
	err := l.m.Apply(ctx, ref, []event.Event{{ID: "end", Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}})
	if err != nil {
		return err
	}
	return thread.ErrNotSteerable
}

// A steer that went to the queue with the end of its turn did not fail: a caller
// that was answered so would send it a second time.
func TestRefusedAtTheEnd(t *testing.T) {
	db, m, err := openCrash(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m.Attach(late{m: m})
	w := &world{t: t, db: db, m: m, id: crashed, answers: map[thole.AskID]event.Answer{}}
	if _, err := m.Create(bg, me, thread.Create{ID: crashed}); err != nil {
		t.Fatal(err)
	}
	turn, err := m.StartTurn(bg, me, thread.StartTurn{Thread: crashed, Input: thole.Text("begin")})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(bg, thread.TurnRef{Thread: crashed, Turn: turn.ID}, []event.Event{{ID: "e1", Kind: event.StepStarted}}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Steer(bg, me, thread.Steer{Thread: crashed, Expected: turn.ID, Input: thole.Text("steer")}); err != nil {
		t.Fatalf("the message waits, and the caller is told: %v", err)
	}
	if n := w.places("steer"); n != 1 {
		t.Fatalf("the message is in %d places", n)
	}
	w.check()
}

// places counts where a message waits or is being worked on.
func (w *world) places(text string) (n int) {
	count := func(in []thole.Input) {
		if len(in) == 1 && in[0].Text == text {
			n++
		}
	}
	queue, err := w.m.Queue(bg, me, w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range queue {
		count(m.Input)
	}
	turns, err := w.m.Turns(bg, me, w.id, all)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, t := range turns.Items {
		count(t.Input)
		for _, m := range t.Steers {
			count(m.Input)
		}
	}
	return n
}
