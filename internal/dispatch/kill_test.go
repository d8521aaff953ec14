package dispatch_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// saboteur is a shelf that kills the executor in the middle of one of its steps,
// once.
type saboteur struct {
	*shelf
	step string
	once sync.Once
	t    testing.TB
}

func (s *saboteur) at(step string, t dispatch.Target) {
	if step == s.step {
		s.once.Do(func() { killAll(s.t, t.Executor) })
	}
}

func (s *saboteur) Restore(ctx context.Context, t dispatch.Target) error {
	s.at("restoring", t)
	return s.shelf.Restore(ctx, t)
}

func (s *saboteur) Link(ctx context.Context, t dispatch.Target) error {
	s.at("linking", t)
	return s.shelf.Link(ctx, t)
}

func (s *saboteur) Validate(ctx context.Context, t dispatch.Target) error {
	s.at("preparing", t)
	return s.shelf.Validate(ctx, t)
}

func (s *saboteur) Sync(ctx context.Context, t dispatch.Target, reason string) (string, error) {
	s.at("syncing", t)
	return s.shelf.Sync(ctx, t, reason)
}

// killAll ends every process of an executor without a word.
func killAll(t testing.TB, id thole.ExecutorID) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, name := range names {
		env, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(env, []byte("THOLE_EXECUTOR="+string(id))) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(name, "/")[2])
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Errorf("executor %s had no process", id)
	}
}

// executord and the provider in it are killed in every phase in which they live:
// the turn completes, has one outcome, and a turn after it finds the workspace.
func TestAnExecutorKilledInAnyPhase(t *testing.T) {
	for _, phase := range []string{"restoring", "linking", "preparing", "running", "waiting_human", "syncing"} {
		t.Run(phase, func(t *testing.T) {
			w := newWorld(t)
			bad := &saboteur{shelf: w.shelf, step: phase, t: t}
			open := storetest.SQLite
			if phase == "running" || phase == "waiting_human" {
				open = storetest.Postgres
			}
			r := w.rig(t, open(t), func(c *dispatch.Config) { c.Workspaces = bad })
			id := r.thread()
			turn := r.start(id, "sim: run echo kept > f ;; wait 200ms ;; ask Go on? | yes | no ;; say done")
			switch phase {
			case "running":
				r.until(id, func(e thread.Event) bool {
					return e.Turn == turn && e.Kind == thread.ItemCompleted && e.Data.Item.Command != nil
				})
			case "waiting_human":
				r.until(id, kind(turn, thread.AskRequested))
			}
			if phase == "running" || phase == "waiting_human" {
				row, err := r.db.Executors().OfThread(context.Background(), id)
				if err != nil {
					t.Fatal(err)
				}
				killAll(t, row.ID)
			}
			waitFor(t, func() bool {
				asks, err := r.Asks(context.Background(), me, id, true)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range asks {
					_, err := r.Answer(context.Background(), me, id, a.Ask.ID, thole.Answer{Answers: map[string][]string{a.Ask.Questions[0].ID: {"yes"}}})
					if err != nil && thole.CodeOf(err) != thole.CodeConflict {
						t.Fatal(err)
					}
				}
				return r.turn(id, turn).Phase.Terminal()
			})
			if got := r.turn(id, turn); got.Outcome != thole.OutcomeCompleted {
				t.Fatalf("%+v, error %+v", got, got.Error)
			}
			events, err := r.Events(context.Background(), me, id, 0, 10000)
			if err != nil {
				t.Fatal(err)
			}
			ends := 0
			for _, e := range events {
				if e.Kind == thread.TurnEnded {
					ends++
				}
			}
			if ends != 1 {
				t.Errorf("the turn ended %d times", ends)
			}
			again := r.start(id, "sim: run cat f")
			if r.settled(id, again); !strings.Contains(r.said(id, again), "kept") {
				t.Errorf("the next turn said %q", r.said(id, again))
			}
		})
	}
}
