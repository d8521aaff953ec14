package tholetest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg = context.Background()
	me = thole.LocalActor
)

func start(t *testing.T, k *tholetest.Kit, id thole.ThreadID, text string) thole.TurnID {
	t.Helper()
	turn, err := k.Threads.StartTurn(bg, me, thread.StartTurn{Thread: id, Input: thole.Text(text)})
	if err != nil {
		t.Fatal(err)
	}
	return turn.ID
}

// until waits for a turn that ok takes.
func until(t *testing.T, k *tholetest.Kit, id thole.ThreadID, turn thole.TurnID, what string, ok func(fold.Turn) bool) (got fold.Turn) {
	t.Helper()
	poll.Until(t, what, func() bool {
		var err error
		got, err = k.Threads.Turn(bg, me, id, turn)
		return err == nil && ok(got)
	})
	return got
}

func settled(t fold.Turn) bool { return t.Phase.Terminal() }

// A kit's turns take the shipped way: a row of the queue, an executor with its
// workspace, a sync after the turn; a fork goes on with its parent's files.
func TestShippedPipeline(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		k := tholetest.New(t, tholetest.DB(db))
		th, err := k.Threads.Create(bg, me, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
		if err != nil {
			t.Fatal(err)
		}
		turn := start(t, k, th.ID, "sim: run echo kept > file.txt")
		got := until(t, k, th.ID, turn, "the turn's end", settled)
		if got.Outcome != thole.OutcomeCompleted || got.Executor == "" {
			t.Fatalf("%+v", got)
		}
		if row, err := db.Queue().Get(bg, turn); err != nil || row.Attempt != 0 && row.Attempt != 1 {
			t.Fatalf("the queue has %+v, %v", row, err)
		}
		dir, err := k.Executors.WorkspaceDir(got.Executor)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := os.ReadFile(filepath.Join(dir, "file.txt")); err != nil || string(body) != "kept\n" {
			t.Fatalf("%q, %v", body, err)
		}
		fork, err := k.Threads.Fork(bg, me, th.ID, thread.Fork{})
		if err != nil {
			t.Fatal(err)
		}
		turn = start(t, k, fork.ID, "sim: run cat file.txt ;; say it says %tool%")
		if got := until(t, k, fork.ID, turn, "the fork's end", settled); got.Outcome != thole.OutcomeCompleted || got.Executor == "" {
			t.Fatalf("%+v", got)
		}
		items, err := k.Threads.Items(bg, me, fork.ID, turn, thread.PageParams{Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, it := range items.Items {
			said += it.Item.Text
		}
		if !strings.Contains(said, "it says kept") {
			t.Fatalf("the fork said %q", said)
		}
	})
}
