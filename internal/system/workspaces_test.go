package system

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
)

type noLogin struct{}

func (noLogin) For(context.Context, provider.For) (provider.Grant, error) {
	return provider.Grant{}, nil
}

// A thread's files outlive its executor: run, sync, stop, remove after a
// comparison, and go on in another executor from what was stored.
func TestAThreadGoesOnFromTheObjectStore(t *testing.T) {
	binary := lab.Thole(t)
	t.Run("bubblewrap", func(t *testing.T) { goesOn(t, binary, lab.Bwrap(t)) })
	t.Run("plain", func(t *testing.T) { goesOn(t, binary, "") })
}

func goesOn(t *testing.T, binary, bwrap string) {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "ws") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	db, err := storetest.OpenAt(ctx, sqldb.Config{Path: filepath.Join(home, "db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	cfg := config.Default()
	cfg.Home = home
	cfg.Workspace.Manifest = filepath.Join(home, "manifest.json")
	recipe := `{"appId": "` + string(thole.DefaultApp) + `", "runtimeVersion": "v7", "requiredPaths": ["/workspace/.agent_data"],
		"protectedPaths": ["/workspace/.agent_data"], "mountPoints": [{"name": "agent_data", "targetPath": "/workspace/.agent_data", "readOnly": false}]}`
	if err := os.WriteFile(cfg.Workspace.Manifest, []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	open := &System{}
	ws, _, err := open.openFiles(&cfg, db, lab.Thole(t), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	machine, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	driver := local.New(local.Config{Root: filepath.Join(home, "x"), Binary: binary, Bwrap: bwrap})
	d := dispatch.New(dispatch.Config{
		Owner: t.Name(), Queue: db.Queue(), Threads: machine, Rows: db.Executors(), Driver: driver, Workspaces: ws, Credentials: noLogin{},
		Info:   func(context.Context, string) provider.Info { return testprovider.New().Probe(ctx) },
		Limits: queue.Limits{Total: 4}, StartsPerSec: 100, SweepEvery: time.Hour, IdleStop: time.Nanosecond, RemoveAfter: time.Nanosecond,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	machine.Attach(d)
	if err := machine.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Stop(ctx)
		machine.Close(ctx)
		list, _ := driver.List(ctx)
		for _, info := range list {
			driver.Remove(ctx, info.ID)
		}
	})
	th, err := machine.Create(ctx, thole.LocalActor, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		t.Fatal(err)
	}
	settle := func(id thole.ThreadID, prompt string) string {
		t.Helper()
		turn, err := machine.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text(prompt)})
		if err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "the executor", func() bool {
			got, err := machine.Turn(ctx, thole.LocalActor, id, turn.ID)
			if err == nil && got.Phase.Terminal() && (got.Outcome != thole.OutcomeCompleted || got.Runtime != "v7") {
				t.Fatalf("%+v", got)
			}
			return err == nil && got.Phase.Terminal()
		})
		page, err := machine.Items(ctx, thole.LocalActor, id, turn.ID, thread.PageParams{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		for _, it := range page.Items {
			if it.Item.Command != nil {
				said.WriteString(it.Item.Command.Output)
			}
		}
		return said.String()
	}
	settle(th.ID, "sim: run mkdir -p 'odd dir' && echo kept > 'odd dir/file' && chmod 600 'odd dir/file' && ln -s /etc/passwd link")
	// A fork has the files of the moment it was made in.
	fork, err := machine.Fork(ctx, thole.LocalActor, th.ID, thread.Fork{})
	if err != nil {
		t.Fatal(err)
	}
	settle(th.ID, "sim: run echo later > later")
	if got := settle(fork.ID, "sim: run cat 'odd dir/file'; cat later 2>/dev/null || echo none"); got != "kept\nnone\n" {
		t.Errorf("the fork sees %q", got)
	}
	// So has one that is made at a turn which others followed.
	turns, err := machine.Turns(ctx, thole.LocalActor, th.ID, thread.PageParams{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	old, err := machine.Fork(ctx, thole.LocalActor, th.ID, thread.Fork{UpTo: turns.Items[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	if got := settle(old.ID, "sim: run cat 'odd dir/file'; cat later 2>/dev/null || echo none"); got != "kept\nnone\n" {
		t.Errorf("the fork at the first turn sees %q", got)
	}
	row, err := db.Executors().OfThread(ctx, th.ID)
	if err != nil {
		t.Fatal(err)
	}
	if row.SyncStatus != executor.SyncSuccess || row.Snapshot == "" {
		t.Fatalf("after the turn its executor says %+v", row)
	}
	state := func(want executor.RowState) func() bool {
		return func() bool {
			got, err := db.Executors().Get(ctx, row.ID)
			return err == nil && got.State == want
		}
	}
	if err := d.Close(ctx, th.ID); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the executor", state(executor.RowStopped))
	poll.Until(t, "the executor", func() bool { // a sweep in the same millisecond as the stop finds it too young
		if err := d.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		return state(executor.RowDeleted)()
	})
	if got := settle(th.ID, "sim: run cat 'odd dir/file'; stat -c %a 'odd dir/file'; readlink link"); got != "kept\n600\n/etc/passwd\n" {
		t.Fatalf("in the new executor: %q", got)
	}
	next, err := db.Executors().OfThread(ctx, th.ID)
	if err != nil || next.ID == row.ID {
		t.Fatalf("executor %s again (%v)", next.ID, err)
	}
}
