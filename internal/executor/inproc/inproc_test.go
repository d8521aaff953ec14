package inproc_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/inproc"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	*testing.T
	*inproc.Driver
	id thole.ExecutorID
}

func setup(t *testing.T) *bench {
	t.Helper()
	root, err := os.MkdirTemp("", "ip") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, Driver: inproc.New(inproc.Config{Root: root, Providers: []provider.Provider{testprovider.New()}}), id: thole.NewID[thole.ExecutorID](time.Now())}
	t.Cleanup(func() {
		if err := errors.Join(b.Driver.Close(), os.RemoveAll(root)); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(b.Check(t.Context()), b.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread})); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) is(want executor.State) executor.Info {
	b.Helper()
	info, err := b.Inspect(b.Context(), b.id)
	if err != nil || info.State != want {
		b.Fatalf("%+v, %v, want %s", info, err, want)
	}
	return info
}

func (b *bench) start() executor.Info {
	b.Helper()
	info, err := b.Start(b.Context(), b.id)
	if err != nil {
		b.Fatal(err)
	}
	return info
}

// run begins a turn and returns its id and what reads its events to the end.
func (b *bench) run(info executor.Info, prompt string) (thole.TurnID, func() (said string, outcome thole.Outcome)) {
	b.Helper()
	c := executorclient.Dial(info.Endpoint, info.Token)
	b.Cleanup(c.Close)
	req := wire.RunRequest{
		Turn: provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text(prompt)}, For: thole.NewID[thole.TurnID](time.Now()),
		Thread: "thread", Provider: "test", Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileFull}},
	}
	if _, err := c.Run(b.Context(), req); err != nil {
		b.Fatal(err)
	}
	return req.Turn.ID, func() (said string, outcome thole.Outcome) {
		b.Helper()
		err := c.Events(b.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
			for _, ev := range batch {
				if it := ev.Event.Item; ev.Event.Kind == event.ItemCompleted && it.Command != nil {
					said += it.Command.Output
				}
				if ev.Event.Kind == event.TurnEnded {
					outcome = ev.Event.Outcome
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return said, outcome
	}
}

// The lifecycle is that of every driver: see the port.
func TestLifecycle(t *testing.T) {
	b := setup(t)
	b.is(executor.Stopped)
	first := b.start()
	if again := b.start(); again.Boot != first.Boot {
		t.Fatal("a second start replaced a running executor")
	}
	if _, end := b.run(first, "sim: run echo kept > file.txt"); true {
		end()
	}
	if err := b.Create(t.Context(), executor.Spec{ID: b.id, Thread: "other"}); err != nil || b.is(executor.Running).Thread != "thread" {
		t.Fatalf("creating what exists changed it: %v", err)
	}
	for range 2 {
		if err := b.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		b.is(executor.Stopped)
	}
	second := b.start()
	if second.Boot == first.Boot || second.Token == first.Token {
		t.Fatal("a new start kept the old identity")
	}
	if _, end := b.run(second, "sim: run cat file.txt"); true {
		if said, _ := end(); !strings.Contains(said, "kept") {
			t.Fatalf("after a stop the file says %q", said)
		}
	}
	if list, err := b.List(t.Context()); err != nil || len(list) != 1 || list[0].ID != b.id || list[0].Thread != "thread" {
		t.Fatal(list, err)
	}
	for range 2 {
		if err := b.Remove(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		b.is(executor.Missing)
	}
	if _, err := b.Start(t.Context(), b.id); !errors.Is(err, executor.ErrNotFound) {
		t.Fatalf("started what is gone: %v", err)
	}
}

// A stop ends what runs, and the next start has its log.
func TestStopUnderATurn(t *testing.T) {
	b := setup(t)
	turn, _ := b.run(b.start(), "sim: say begun ;; hang")
	if err := b.Stop(t.Context(), b.id); err != nil {
		t.Fatal(err)
	}
	info := b.start()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	status, err := c.Status(t.Context())
	if err != nil || len(status.Runs) != 1 || status.Runs[0].ID != turn {
		t.Fatalf("%+v, %v", status, err)
	}
	wrong := executorclient.Dial(info.Endpoint, "wrong")
	defer wrong.Close()
	if _, err := wrong.Status(context.Background()); thole.CodeOf(err) != thole.CodeUnauthorized {
		t.Errorf("a wrong token: %v", err)
	}
}
