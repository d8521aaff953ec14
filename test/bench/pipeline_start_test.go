//go:build linux

package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

// noFiles is a workspace that needs nothing: what is measured comes before any
// sync.
type noFiles struct{}

func (noFiles) Restore(context.Context, dispatch.ExecutorWorkspace) error  { return nil }
func (noFiles) Link(context.Context, dispatch.ExecutorWorkspace) error     { return nil }
func (noFiles) Validate(context.Context, dispatch.ExecutorWorkspace) error { return nil }
func (noFiles) Sync(context.Context, dispatch.ExecutorWorkspace, string) (string, error) {
	return "s", nil
}
func (noFiles) Verify(context.Context, dispatch.ExecutorWorkspace, string) error { return nil }
func (noFiles) Away() error                                                      { return nil }
func (noFiles) For(context.Context, provider.For) (provider.Grant, error) {
	return provider.Grant{}, nil
}

// spawned is when the CLI was first started.
func spawned(t *testing.T, home string) time.Time {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, "spawns"))
	must(t, err)
	n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	must(t, err)
	return time.Unix(0, n)
}

// TestTurnStartToSpawn measures from a turn's start to the first process of its
// agent in a warm executor, against the parts that this cannot do without.
func TestTurnStartToSpawn(t *testing.T) {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "bs") // short: it holds sockets
	must(t, err)
	binary := filepath.Join(home, "thole")
	build := exec.Command("go", "build", "-o", binary, "github.com/tholehq/thole/cmd/thole")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var commits journal
	db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(home, "db", "thole.db"), Hook: func(p sqldb.Point, step string) {
		if p == sqldb.AfterCommit {
			commits.add(step)
		}
	}})
	must(t, err)
	machine, err := thread.New(thread.Config{Store: db.Threads()})
	must(t, err)
	// A CLI that reports when it was started, and nothing else.
	cli := filepath.Join(home, "claude")
	must(t, os.WriteFile(cli, []byte("#!/bin/sh\ndate +%s%N >> "+home+"/spawns\nexit 1\n"), 0o755))
	driver := local.New(local.Config{Root: filepath.Join(home, "x"), Binary: binary, Tools: func() local.Tools {
		return local.Tools{Env: map[string]string{"THOLE_PROVIDERS_CLAUDE": cli}}
	}})
	d := dispatch.New(dispatch.Config{
		Owner: "bench", Queue: db.Queue(), Threads: machine, Rows: db.Executors(), Driver: driver, Workspaces: noFiles{}, Credentials: noFiles{},
		Info:   func(context.Context, string) provider.Info { return testprovider.New().Probe(ctx) },
		Limits: queue.Limits{Total: 4, PerUser: 4}, StartsPerSec: 100, Scope: executor.ScopeThread,
	})
	machine.Attach(d)
	must(t, machine.Start(ctx))
	must(t, d.Start(ctx))
	t.Cleanup(func() {
		_ = d.Stop(ctx)
		_ = machine.Close(ctx)
		list, _ := driver.List(ctx)
		for _, info := range list {
			_ = driver.Remove(ctx, info.ID)
		}
		db.Close()
		os.RemoveAll(home)
	})
	th, err := machine.Create(ctx, thole.LocalActor, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "claude", Profile: thole.ProfileFull}})
	must(t, err)
	// turn returns how long it took to the process, and what was committed before.
	turn := func() (float64, []string) {
		sub, err := machine.Subscribe(ctx, thole.LocalActor, th.ID, thread.SubscribeOptions{})
		must(t, err)
		defer sub.Close()
		must(t, os.RemoveAll(filepath.Join(home, "spawns")))
		<-time.After(rest)
		start := time.Now()
		begun, err := machine.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: th.ID, Input: thole.Text("hello")})
		must(t, err)
		for batch := range sub.Events {
			for _, e := range batch.Events {
				if e.Kind == event.TurnPhase && e.Data.Phase.Terminal() {
					for { // the next one must find an idle thread
						if row, err := db.Queue().Get(ctx, begun.ID); err != nil || row.State == queue.Done {
							break
						}
						<-time.After(time.Millisecond)
					}
					at := spawned(t, home)
					return float64(at.Sub(start).Microseconds()), commits.between(start, at)
				}
			}
		}
		t.Fatal(sub.Err())
		return 0, nil
	}
	turn() // makes the executor
	var most []string
	ours := func() float64 {
		var all []float64
		for range 15 {
			took, n := turn()
			if all = append(all, took); len(n) > len(most) {
				most = n
			}
		}
		return middle(all)
	}
	list, err := driver.List(ctx)
	must(t, err)
	theirs := parts(t, db, home, executorclient.Dial(list[0].Endpoint, list[0].Token))
	Case{
		Name: "pipeline: turn start to the agent's process in a warm executor, p50", Unit: "µs", Peer: "4 durable commits, 2 loopback round trips, one bare spawn",
		Promise: 1, Loose: 10, Ours: ours, Theirs: theirs,
		Note: "SQLite. The agent's CLI is a script that tells when it was started; the bare spawn is the same script. Both begin after 10 ms of rest, and the peer's round trips go to the executor's process, as ours do. Ours commits once, asks executord once and flushes nothing else; a control group for the agent is made beforehand. By count that is below the promise; in time the one commit, which moves a thread, its log, a turn and its lease (23 pages), costs as much as the peer's four of one row where a flush takes 0.2 ms as here, and less where it takes longer.",
	}.Run(t)
	t.Logf("committed before the process started: %v", most)
	if len(most) > 4 {
		t.Errorf("%d commits, promised are at most 4", len(most))
	}
}

// journal notes when which durable step was done.
type journal struct {
	mu    sync.Mutex // guards what follows
	steps []string
	times []time.Time
}

func (j *journal) add(step string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps, j.times = append(j.steps, step), append(j.times, time.Now())
}

func (j *journal) between(from, to time.Time) (out []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, at := range j.times {
		if at.After(from) && at.Before(to) && j.steps[i] != "queue.reap" { // that one is the clock's
			out = append(out, j.steps[i])
		}
	}
	return out
}

// rest lies before each start, ours and the peer's: a user who sends a message finds
// a server that does nothing.
const rest = 10 * time.Millisecond

// parts does one after another what a start cannot do without. Its round trips go
// where ours go, to the executor's process, for what costs that the least.
func parts(t *testing.T, db *store.DB, home string, executor *executorclient.Client) func() float64 {
	ctx := context.Background()
	must(t, db.Update(ctx, "bench.table", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("create table bench (id bigint primary key, body text not null)")
		return err
	}))
	t.Cleanup(executor.Close)
	n := 0
	body := strings.Repeat("x", 500)
	return func() float64 {
		var all []float64
		for range 15 {
			<-time.After(rest)
			start := time.Now()
			for range 4 {
				n++
				must(t, db.Update(ctx, "bench.commit", func(tx *sqldb.Tx) error {
					_, err := tx.Exec("insert into bench values ($1, $2)", n, body)
					return err
				}))
			}
			for range 2 {
				_, err := executor.Pending(ctx)
				must(t, err)
			}
			must(t, os.RemoveAll(filepath.Join(home, "spawns")))
			_ = exec.Command(filepath.Join(home, "claude")).Run() // it exits with 1
			all = append(all, float64(spawned(t, home).Sub(start).Microseconds()))
		}
		return middle(all)
	}
}
