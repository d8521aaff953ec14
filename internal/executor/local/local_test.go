package local_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
)

var binary string

func TestMain(m *testing.M) {
	var err error
	if binary, err = lab.BuiltThole(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type bench struct {
	*testing.T
	driver *local.Driver
	root   string
	id     thole.ExecutorID
}

func setup(t *testing.T, bwrap string) *bench {
	t.Helper()
	root, err := os.MkdirTemp("", "ex") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, root: root, id: thole.NewID[thole.ExecutorID](time.Now())}
	b.driver = local.New(local.Config{Root: root, Binary: binary, Bwrap: bwrap})
	t.Cleanup(func() {
		if err := b.driver.Remove(context.Background(), b.id); err != nil {
			t.Error(err)
		}
		os.RemoveAll(root)
	})
	if err := b.driver.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) start() executor.Info {
	b.Helper()
	info, err := b.driver.Start(b.Context(), b.id)
	if err != nil {
		b.Fatal(err)
	}
	return info
}

// run takes one prompt to its end and returns what the commands printed.
func (b *bench) run(info executor.Info, prompt string) string {
	b.Helper()
	return b.take(info, b.request(prompt, thole.ProfileFull))
}

func each(t *testing.T, test func(t *testing.T, bwrap string)) {
	t.Run("bubblewrap", func(t *testing.T) { test(t, lab.Bwrap(t)) })
	t.Run("plain", func(t *testing.T) { test(t, "") })
}

func TestLifecycle(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		if info, err := b.driver.Inspect(t.Context(), b.id); err != nil || info.State != executor.Stopped {
			t.Fatal(info, err)
		}
		first := b.start()
		if again := b.start(); again.Boot != first.Boot {
			t.Fatal("a second start replaced a running executor")
		}
		b.run(first, "sim: run echo kept > file.txt")
		// Another driver on the same directory adopts what runs.
		if info, err := local.New(local.Config{Root: b.root, Binary: binary, Bwrap: bwrap}).Inspect(t.Context(), b.id); err != nil || info.Boot != first.Boot {
			t.Fatal(info, err)
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if info, err := b.driver.Inspect(t.Context(), b.id); err != nil || info.State != executor.Stopped {
			t.Fatal(info, err)
		}
		second := b.start()
		if second.Boot == first.Boot || second.Token == first.Token {
			t.Fatal("a new start kept the old identity")
		}
		if got := b.run(second, "sim: run cat file.txt"); !strings.Contains(got, "kept") {
			t.Fatalf("after a stop the file says %q", got)
		}
		if list, err := b.driver.List(t.Context()); err != nil || len(list) != 1 || list[0].ID != b.id || list[0].Thread != "thread" {
			t.Fatal(list, err)
		}
		if err := b.driver.Remove(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if info, err := b.driver.Inspect(t.Context(), b.id); err != nil || info.State != executor.Missing {
			t.Fatal(info, err)
		}
		if err := b.driver.Remove(t.Context(), b.id); err != nil {
			t.Fatal("removing twice:", err)
		}
	})
}

// await polls what has no signal to wait on: another process's state.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	b := setup(t, "")
	d := local.New(local.Config{Root: b.root, Binary: "/bin/false"})
	if _, err := d.Start(t.Context(), b.id); thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "ended at once") {
		t.Fatal(err)
	}
	long := local.New(local.Config{Root: "/" + strings.Repeat("x", 100), Binary: binary})
	if err := long.Check(t.Context()); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
		t.Fatal(err)
	}
}
