package executord

import (
	"fmt"
	"os"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// watched are boxes that nobody looks at by itself, with n sleeping processes.
func watched(t *testing.T, n int) (*boxes, *box.Box) {
	t.Helper()
	program := lab.Thole(t)
	args := sandbox.Agents(true).Kernel().Add("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", program, "/thole").Args()
	dirs := Dirs{Workspace: t.TempDir(), Data: t.TempDir(), State: t.TempDir()}
	b := newBoxes(&wire.Box{Bwrap: lab.Bwrap(t), Args: args, Init: "/thole"}, nil, nil, dirs, newSettings(dirs, nil))
	t.Cleanup(b.close)
	made, err := b.shared()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; wait", n)
	if _, err := made.Spawn(box.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: "/", Files: [3]*os.File{null, null, null}}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "all processes", func() bool {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", made.Pid()))
		return err == nil && len(members(map[string]bool{space: true})) >= n+2
	})
	return b, made
}

// Where the kernel counts no processes of a box, too many of them end it, and its turns
// say why. As many as may be are left alone.
func TestTooManyProcessesEndTheBox(t *testing.T) {
	const n = 30
	b, made := watched(t, n)
	began := time.Now()
	b.cfg.Processes = 2 * n
	b.look()
	select {
	case <-made.Done():
		t.Fatal("a box within its limit was ended")
	default:
	}
	b.cfg.Processes = n
	b.look()
	<-made.Done()
	end := event.Event{Kind: event.TurnEnded}
	if b.explain(time.Now(), &end); end.Error != nil {
		t.Errorf("a turn that began later says %+v", end.Error)
	}
	if b.explain(began, &end); end.Error == nil || end.Error.Code != thole.ErrLimit || end.Outcome != thole.OutcomeFailed {
		t.Errorf("the turn says %s, %+v", end.Outcome, end.Error)
	}
	if again, err := b.shared(); err != nil || again == made {
		t.Errorf("the next box: %v", err)
	}
}
