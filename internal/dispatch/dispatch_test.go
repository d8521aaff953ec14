package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
)

func TestATurnGoesThroughEveryPhase(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newWorld(t).rig(t, open(t))
		id := r.thread()
		turn := r.start(id, "sim: run echo hi > a.txt ;; say done")
		got := r.settled(id, turn)
		if got.Outcome != thole.OutcomeCompleted || got.Phase != thole.PhaseSucceeded || !strings.Contains(r.said(id, turn), "done") {
			t.Fatalf("turn %+v said %q", got, r.said(id, turn))
		}
		var phases []thole.Phase
		events, err := r.Events(context.Background(), me, id, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch e.Kind {
			case event.TurnPhase:
				phases = append(phases, e.Data.Phase)
			case event.TurnEnded:
				phases = append(phases, thole.PhaseSyncing) // one commit with the outcome
			}
		}
		want := "[claimed restoring linking preparing running syncing exported succeeded]"
		if fmt.Sprint(phases) != want {
			t.Errorf("phases %v, want %v", phases, want)
		}
		// A warm executor keeps the session and skips what is done.
		second := r.start(id, "sim: run cat a.txt")
		if r.settled(id, second); !strings.Contains(r.said(id, second), "hi") {
			t.Errorf("second turn said %q", r.said(id, second))
		}
		if r.shelf.restored != 1 {
			t.Errorf("restored %d times", r.shelf.restored)
		}
	})
}

func TestAHumanAnswersInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	turn := r.start(id, "sim: ask Which? | red | blue ;; say ok")
	ask := r.until(id, kind(turn, event.AskRequested)).Data.Ask
	waitFor(t, func() bool {
		row, err := r.db.Queue().Get(context.Background(), turn)
		return err == nil && row.Waiting
	})
	if _, err := r.Answer(context.Background(), me, id, ask.ID, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"blue"}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
		t.Fatalf("%+v", got)
	}
}

func TestAQuestionNobodyAnswersIsParkedAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.ParkAfter = 10 * time.Millisecond })
	id := r.thread()
	turn := r.start(id, "sim: ask Which? | red | blue ;; say ok")
	ask := r.until(id, kind(turn, event.AskRequested)).Data.Ask
	waitFor(t, func() bool {
		row, err := r.db.Queue().Get(context.Background(), turn)
		return err == nil && row.State == queue.Parked
	})
	if got := r.turn(id, turn); got.Deferred != ask.ID || got.Phase != thole.PhaseWaitingHuman {
		t.Fatalf("%+v", got)
	}
	// Nothing runs meanwhile: the executor may stop.
	row, err := r.db.Executors().OfThread(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.driver.Stop(context.Background(), row.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Answer(context.Background(), me, id, ask.ID, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"blue"}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "ok") {
		t.Fatalf("%+v said %q", got, r.said(id, turn))
	}
}

func TestInterruptAndSteer(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	turn := r.start(id, "sim: wait 60s ;; wait 60s ;; say never")
	r.until(id, func(e event.Event) bool {
		return e.Turn == turn && e.Kind == event.TurnPhase && e.Data.Phase == thole.PhaseRunning
	})
	if _, err := r.Steer(context.Background(), me, thread.Steer{Thread: id, Expected: turn, Input: thole.Text("sim: say steered")}); err != nil {
		t.Fatal(err)
	}
	if err := r.Interrupt(context.Background(), me, id, turn); err != nil {
		t.Fatal(err)
	}
	got := r.settled(id, turn)
	if got.Outcome != thole.OutcomeInterrupted || got.Phase != thole.PhaseCanceled {
		t.Fatalf("%+v", got)
	}
	if n := len(r.shelf.synced); n == 0 || r.shelf.synced[0] != "message.stop" {
		t.Errorf("synced %v", r.shelf.synced)
	}
}

// What is said before the agent is up reaches it as soon as it listens, in order.
func TestSteersWaitForTheAgent(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	turn := r.start(id, "sim: wait 10m ;; wait 10m ;; say done")
	for _, text := range []string{"sim: say first", "sim: say second"} {
		if _, err := r.Steer(context.Background(), me, thread.Steer{Thread: id, Expected: turn, Input: thole.Text(text)}); err != nil {
			t.Fatal(err)
		}
	}
	got := r.settled(id, turn)
	if said := r.said(id, turn); got.Outcome != thole.OutcomeCompleted || said != "done\nfirst\nsecond\n" {
		t.Fatalf("%+v said %q", got, said)
	}
}

// The whole executor dies in the middle of a turn: the turn is taken up again in
// a new one and completes.
func TestAnExecutorThatDiesIsReplaced(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	first := r.start(id, "sim: say hello")
	r.settled(id, first)
	turn := r.start(id, "sim: say before ;; wait 2s ;; say after")
	r.until(id, func(e event.Event) bool {
		return e.Turn == turn && e.Kind == event.ItemCompleted && e.Data.Item.Text == "before"
	})
	row, err := r.db.Executors().OfThread(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.driver.Stop(context.Background(), row.ID); err != nil {
		t.Fatal(err)
	}
	got := r.settled(id, turn)
	if got.Outcome != thole.OutcomeCompleted || got.Run == 0 {
		t.Fatalf("%+v said %q", got, r.said(id, turn))
	}
}

// hungry is a driver whose executors run out of memory over each turn.
type hungry struct {
	*local.Driver
	asked atomic.Int64
}

func (h *hungry) Starved(thole.ExecutorID) int { return int(h.asked.Add(1)) }

// An agent that the kernel killed over the memory limit fails its turn with that
// reason.
func TestAnAgentThatStarvesSaysSo(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.Driver = &hungry{Driver: c.Driver.(*local.Driver)} })
	id := r.thread()
	got := r.settled(id, r.start(id, "sim: say begun ;; crash"))
	if got.Error == nil || !strings.Contains(got.Error.Message, "memory limit") || !strings.Contains(got.Error.Hint, "executor.memory_mb") {
		t.Fatalf("%+v, error %+v", got, got.Error)
	}
}

// A dispatcher stops (as a crash does, its lease is simply not renewed) and
// another goes on, with no event lost or doubled.
func TestAnotherDispatcherGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		w, db := newWorld(t), open(t)
		r := w.rig(t, db)
		id := r.thread()
		turn := r.start(id, "sim: say one ;; ask Go on? | yes | no ;; say two")
		ask := r.until(id, kind(turn, event.AskRequested)).Data.Ask
		r.halt()
		r = w.rig(t, db)
		if _, err := r.Answer(context.Background(), me, id, ask.ID, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"yes"}}}); err != nil {
			t.Fatal(err)
		}
		if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || got.Run != 0 {
			t.Fatalf("%+v", got)
		}
		if said := r.said(id, turn); strings.Count(said, "one\n") != 1 || strings.Count(said, "two\n") != 1 {
			t.Fatalf("said %q", said)
		}
	})
}

func TestStopRemoveAndWakeFromTheShelf(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.IdleStop, c.RemoveAfter = time.Nanosecond, time.Nanosecond })
	ctx := context.Background()
	id := r.thread()
	r.settled(id, r.start(id, "sim: run echo kept > file.txt"))
	row := r.row(id)
	state := func(want executor.RowState) func() bool {
		return func() bool {
			got, err := r.db.Executors().Get(ctx, row.ID)
			return err == nil && got.State == want
		}
	}
	// A failed sync keeps it running.
	r.shelf.set(errors.New("no space"))
	if err := r.disp.Close(ctx, id); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		got, err := r.db.Executors().Get(ctx, row.ID)
		return err == nil && got.SyncStatus == executor.SyncFailed
	})
	if !state(executor.RowRunning)() {
		t.Fatal("stopped without a sync")
	}
	r.shelf.set(nil)
	waitFor(t, state(executor.RowStopped)) // the maintenance that failed is retried
	waitFor(t, func() bool {               // a sweep in the same millisecond as the stop finds it too young
		if err := r.disp.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		return state(executor.RowDeleted)()
	})
	if info, err := r.driver.Inspect(ctx, row.ID); err != nil || info.State != executor.Missing {
		t.Fatal(info, err)
	}
	turn := r.start(id, "sim: run cat file.txt")
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || !strings.Contains(r.said(id, turn), "kept") {
		t.Fatalf("%+v said %q", got, r.said(id, turn))
	}
}

// An executor is not idle while a user has a terminal open in it.
func TestAnOpenTerminalIsActivity(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.IdleStop = time.Nanosecond })
	ctx := context.Background()
	id := r.thread()
	r.settled(id, r.start(id, "sim: say hi"))
	row := r.row(id)
	conn, err := r.client(id).Terminal(ctx, terminal.DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	swept := func(done func(executor.Row) bool) func() bool {
		return func() bool {
			if err := r.disp.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			got, err := r.db.Executors().Get(ctx, row.ID)
			return err == nil && done(got)
		}
	}
	waitFor(t, swept(func(got executor.Row) bool {
		if got.State != executor.RowRunning {
			t.Fatalf("it was stopped: %+v", got)
		}
		return got.LastActive.After(row.LastActive)
	}))
	conn.Close()
	waitFor(t, swept(func(got executor.Row) bool { return got.State == executor.RowStopped }))
}

func TestATurnThatCannotRunFailsWithANote(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { c.TurnTimeout = time.Second })
	id := r.thread()
	turn := r.start(id, "sim: wait 60s")
	got := r.settled(id, turn)
	if got.Outcome != thole.OutcomeFailed || got.Error == nil || !strings.Contains(got.Error.Message, "longer than it may") {
		t.Fatalf("%+v", got)
	}
	waitFor(t, func() bool {
		info, err := r.driver.Inspect(context.Background(), r.row(id).ID)
		if err != nil || info.State != executor.Running {
			return err == nil // the time was over before the executor was up
		}
		st, err := r.client(id).Status(context.Background())
		return err == nil && (len(st.Runs) == 0 || st.Runs[0].State == wire.RunEnded)
	})
}

// waitFor polls what has no signal to wait on: another process's state.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	poll.Until(t, "another process", ok)
}

// An agent that ends before it shows anything is tried once more, also in a warm
// executor, where the turn has not left the queue yet; then it is believed.
func TestAnAgentThatEndsAtOnceIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newWorld(t).rig(t, storetest.SQLite(t))
	id := r.thread()
	for range 2 {
		turn, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Text("sim: say x"), Settings: &event.Settings{Profile: "none such"}})
		if err != nil {
			t.Fatal(err)
		}
		got := r.settled(id, turn.ID)
		if got.Run != 1 || got.Error == nil || !strings.Contains(got.Error.Message, "unknown profile") {
			t.Errorf("run %d of the turn ended with %+v", got.Run, got.Error)
		}
	}
}
