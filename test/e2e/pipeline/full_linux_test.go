package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
	"golang.org/x/sys/unix"
)

// When the disk of the home fills up in the middle of a turn nothing that it does can be
// recorded. Who looks at the thread reads why, and the turn goes on when there is room.
func TestADiskThatFillsUp(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts a small disk")
	}
	disk, err := os.MkdirTemp("", "fu")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=80m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		_ = os.Remove(disk)
	})
	t.Setenv("TMPDIR", disk)
	r := newRig(t)
	r.begin(t)
	s := r.session(t, "test")
	run := s.start("sim: run echo begun; head -c 200M /dev/zero > big; while [ -e big ]; do sleep 0.1; done; echo there is room ;; say done", "")
	poll.Until(t, "word of the full disk", func() bool { return strings.Contains(r.says(t, "thread", "show", s.id), "is full (") })
	if said := r.says(t, "doctor"); !strings.Contains(said, "is full (") {
		t.Errorf("thole doctor says nothing of it: %s", said)
	}
	info, ok := r.executor(t, s.id)
	if !ok {
		t.Fatal("no executor runs")
	}
	if err := os.Remove(filepath.Join(r.home, "x", string(info.ID), "workspace", "big")); err != nil {
		t.Fatal(err)
	}
	s.settle(run, "completed")
	if said := s.said(run); !strings.Contains(said, "there is room") {
		t.Errorf("the turn said %q", said)
	}
	if said := r.says(t, "thread", "show", s.id); strings.Contains(said, "is full (") {
		t.Errorf("it is still said: %s", said)
	}
}
