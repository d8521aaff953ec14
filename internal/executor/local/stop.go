package local

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Stop implements executor.Driver: first a signal to executord alone, which ends its
// CLIs in order and knows then that their end was not their own, then a kill of
// whatever carries the marker. In bubblewrap the kill reaches the namespace's first
// process, and with it everything inside.
func (d *Driver) Stop(ctx context.Context, id thole.ExecutorID) error {
	members := func() []int { return d.cfg.Groups.members(id) } // some may have dropped the marker
	if err := process.EndMarked(ctx, marker(id), members, isExecutord, stopGrace); err != nil {
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

// isExecutord reports whether a process is an executord. An agent that calls itself
// one is asked to end as well.
func isExecutord(pid int) bool {
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	args := strings.SplitN(string(line), "\x00", 4)
	return len(args) == 4 && args[1] == "executor" && args[2] == "serve"
}

func marker(id thole.ExecutorID) string { return wire.Mark + "=" + string(id) }
