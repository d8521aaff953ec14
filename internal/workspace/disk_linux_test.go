package workspace_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/workspace/side"
)

// A full disk fails the call and leaves the old snapshot.
func TestDiskFull(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	}()
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	b.put(t, "a", "one")
	good := r.sync(b)
	for _, name := range []string{"b", "c", "d", "e"} {
		noise := make([]byte, 1<<20) // does not shrink
		rand.Read(noise)
		b.put(t, name, string(noise))
	}
	tight := side.New(side.Config{Dir: b.dir, State: small, Client: r.client})
	target := b.target
	target.Side = tight
	if _, err := r.manager.Sync(context.Background(), target, "test"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a stage that does not fit: %v", err)
	}
	if head, _, err := r.db.Workspaces().Head(context.Background(), thread); err != nil || head.ID != good {
		t.Fatalf("the thread moved to %s (%v)", head.ID, err)
	}
	r.sync(b)
	// The other way round: a workspace too small for what is restored.
	at := filepath.Join(small, "workspace")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	out := r.box(thread)
	target = out.target
	target.Side = side.New(side.Config{Dir: at, State: out.state, Client: r.client})
	if err := r.manager.Restore(context.Background(), target); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a workspace that does not fit: %v", err)
	}
	if err := tight.Close(); err != nil {
		t.Error(err)
	}
}
