package shelf_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// many is how many files a write has that is cut off in the middle.
const many = 1500

func name(i int) string { return fmt.Sprintf("d%d/f%d", i%20, i) }

// torn runs a write and has its git killed, as with its owner, once some files in dir
// have become what they will be. It reports how many had.
func (b *bench) torn(dir, will string, write func(ctx context.Context)) int {
	b.t.Helper()
	ctx, kill := context.WithCancel(b.ctx())
	defer kill()
	over := make(chan struct{})
	go func() {
		defer close(over)
		write(ctx)
	}()
	is := func(i int) bool {
		text, err := os.ReadFile(filepath.Join(dir, name(i)))
		return err == nil && string(text) == will
	}
	poll.Until(b.t, "the first file", func() bool { return is(0) || is(many/2) || is(1) })
	kill()
	<-over
	n := 0
	for i := range many {
		if is(i) {
			n++
		}
	}
	return n
}

func manyFiles(text string) map[string]string {
	all := map[string]string{}
	for i := range many {
		all[name(i)] = text
	}
	return all
}

func (b *bench) all(dir, want string) bool {
	for i := range many {
		if text, _ := os.ReadFile(filepath.Join(dir, name(i))); string(text) != want {
			b.t.Logf("%s: %q", name(i), text)
			return false
		}
	}
	return true
}

// An undo that broke off is done by the next one.
func TestUndoThatBrokeOff(t *testing.T) {
	b := newBench(t, manyFiles("old\n"))
	b.agent(func(dir string) {
		for path, text := range manyFiles("new\n") {
			b.write(filepath.Join(dir, path), text)
		}
	})
	b.th.Turns++
	n := b.torn(b.files, "old\n", func(ctx context.Context) { _, _ = b.shelf.Undo(ctx, b.th, b.at(), 2, 1) })
	if n == 0 || n == many {
		t.Logf("all or nothing was written: %d", n)
	}
	if said, err := b.shelf.Undo(b.ctx(), b.th, b.at(), 2, 1); err != nil || !b.all(b.files, "old\n") {
		t.Fatalf("%s, %v", said, err)
	}
	// What was there before the undo is kept from before the first try.
	b.th.Turns++
	if said, err := b.shelf.Undo(b.ctx(), b.th, b.at(), 3, 2); err != nil || !b.all(b.files, "new\n") {
		t.Errorf("%s, %v", said, err)
	}
}

// An apply that broke off says so, and is put back before another is tried.
func TestApplyThatBrokeOff(t *testing.T) {
	b := newBench(t, manyFiles("old\n"))
	b.write(filepath.Join(b.repo, "mine"), "mine\n")
	b.agent(func(dir string) {
		for path, text := range manyFiles("new\n") {
			b.write(filepath.Join(dir, path), text)
		}
	})
	n := 0
	for try := 0; n == 0 || n == many; try++ {
		if try == 5 {
			t.Fatalf("it was never cut in the middle: %d", n)
		}
		b.git(b.repo, "checkout", "-q", "--", ".")
		n = b.torn(b.repo, "new\n", func(ctx context.Context) { _, _ = b.shelf.Apply(ctx, b.th, b.at(), b.repo, shelf.ApplyNow) })
	}
	b.write(filepath.Join(b.repo, "mine"), "changed since\n")
	for _, mode := range []shelf.Mode{shelf.ApplyNow, shelf.ApplyCheck} {
		if _, err := b.shelf.Apply(b.ctx(), b.th, b.at(), b.repo, mode); thole.CodeOf(err) != thole.CodeConflict || thole.HintOf(err) == "" {
			t.Errorf("%q: %v", mode, err)
		}
	}
	if a := b.apply(shelf.ApplyAbort); !a.Done || a.Total != many || !b.all(b.repo, "old\n") || b.read(filepath.Join(b.repo, "mine")) != "changed since\n" {
		t.Fatalf("%d %v", a.Total, a.Done)
	}
	if a := b.apply(shelf.ApplyNow); !a.Done || !b.all(b.repo, "new\n") {
		t.Errorf("%+v", a.Conflicts)
	}
}
