package keeper_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// listener is a program that listens at the address that it is given, as codex app-server does.
func listener(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "codex")
	text := fmt.Sprintf("#!/bin/sh\n%s=\"${3#unix://}\" exec '%s'\n", envListen, self)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const someThread = "11111111-1111-7111-8111-111111111111"

func provided(dir, codex string) keeper.Open {
	o := terminal(dir, codex, 0)
	o.Thread = someThread
	return o
}

// A delivery's server begins in the epoch that its barrier names and in no other, lives while
// the delivery is under way, and begins again in the next epoch only after it is gone.
func TestProvide(t *testing.T) {
	b := newBench(t)
	codex, dir := listener(t), t.TempDir()
	epoch := func(want int64) {
		t.Helper()
		if got, err := b.Epoch(bg, "session"); err != nil || got != want {
			t.Fatalf("epoch %d, %v; want %d", got, err, want)
		}
	}
	epoch(1)
	if _, err := b.Provide(bg, "session", 2, provided(dir, codex)); thole.CodeOf(err) != thole.CodeConflict {
		t.Fatalf("a later epoch than the first: %v", err)
	}
	b.tracked = true
	a, err := b.Provide(bg, "session", 1, provided(dir, codex))
	if err != nil || a.State != attachment.Live || a.Epoch != 1 || a.Process.Alive() != nil || !a.Client.Zero() {
		t.Fatalf("%+v, %v", a, err)
	}
	if again, err := b.Provide(bg, "session", 1, provided(dir, codex)); err != nil || again.Process != a.Process {
		t.Fatalf("again: %+v, %v", again, err)
	}
	if _, err := b.Provide(bg, "session", 2, provided(dir, codex)); thole.CodeOf(err) != thole.CodeConflict {
		t.Fatalf("in the place of one that lives: %v", err)
	}
	if _, err := b.Epoch(bg, "session"); thole.CodeOf(err) != thole.CodeBusy {
		t.Fatal(err)
	}
	if _, err := b.Provide(bg, "another", 1, provided(dir, codex)); thole.CodeOf(err) != thole.CodeConflict {
		t.Fatalf("a second server of the thread: %v", err)
	}
	if err := b.Sweep(bg); err != nil || a.Process.Alive() != nil {
		t.Fatalf("a sweep ended a server that is needed: %v, %v", err, a.Process.Alive())
	}
	b.tracked = false
	retired := func() {
		t.Helper()
		poll.Until(t, "the end of the server", func() bool {
			if err := b.Sweep(bg); err != nil {
				t.Fatal(err)
			}
			got, err := b.ByID(bg, "session")
			return err == nil && got.State == attachment.Retired
		})
	}
	retired()
	if a.Process.Alive() == nil {
		t.Error("the server of a delivery that is over lives on")
	}
	epoch(2)
	b.tracked = true
	next, err := b.Provide(bg, "session", 2, provided(dir, codex))
	if err != nil || next.Epoch != 2 || next.Process == a.Process || next.State != attachment.Live {
		t.Fatalf("%+v, %v", next, err)
	}
	b.tracked = false
	retired()

	if _, err := b.Provide(bg, "other", 1, provided(dir, filepath.Join(dir, "none"))); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Fatalf("a program that is not there: %v", err)
	}
	if got, err := b.ByID(bg, "other"); err != nil || got.State != attachment.Retired || !got.Process.Zero() {
		t.Errorf("what never began: %+v, %v", got, err)
	}
}
