package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// stopGrace is how long executord has to end its CLIs by itself.
const stopGrace = 5 * time.Second

// Stop implements executor.Driver: first a signal that lets executord end its
// CLIs in order, then a kill of whatever carries the marker. In bubblewrap the
// kill reaches the namespace's first process, and with it everything inside.
func (d *Driver) Stop(ctx context.Context, id thole.ExecutorID) error {
	members := func() []int { return d.cfg.Groups.members(id) } // some may have dropped the marker
	if err := process.EndMarked(ctx, marker(id), members, d.around, stopGrace); err != nil {
		return fmt.Errorf("stop executor: %w", err)
	}
	return d.cfg.Groups.drop(id)
}

// Remove implements executor.Driver. The label goes last, so that a crash in
// between leaves something to find and remove again.
func (d *Driver) Remove(ctx context.Context, id thole.ExecutorID) error {
	if err := d.Stop(ctx, id); err != nil {
		return err
	}
	root, err := beneath.Open(d.dir(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove executor: %w", err)
	}
	defer root.Close()
	for _, sub := range shared { // its agent may have closed directories
		if err := root.RemoveAll(sub); err != nil {
			return fmt.Errorf("remove executor: %w", err)
		}
	}
	if err := os.RemoveAll(d.dir(id)); err != nil {
		return fmt.Errorf("remove executor: %w", err)
	}
	return nil
}

// around reports whether a process is bubblewrap or what stands before it. All
// inside dies with them at once, so they are not asked to end.
func (d *Driver) around(pid int) bool {
	wrap := d.cfg.Bwrap
	if wrap == "" {
		wrap, _ = exec.LookPath("bwrap")
	}
	wrap, err := filepath.EvalSymlinks(wrap)
	if err != nil {
		return false // nothing runs in it
	}
	is := func(pid string) bool {
		exe, err := os.Readlink("/proc/" + pid + "/exe")
		return err == nil && exe == wrap
	}
	self := strconv.Itoa(pid)
	if is(self) {
		return true
	}
	children, _ := os.ReadFile("/proc/" + self + "/task/" + self + "/children")
	return slices.ContainsFunc(strings.Fields(string(children)), is)
}

func marker(id thole.ExecutorID) string { return wire.Mark + "=" + string(id) }
