package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/executord"
)

// stopGrace is how long executord has to end its CLIs by itself.
const stopGrace = 5 * time.Second

// Stop implements executor.Driver: first a signal that lets executord end its
// CLIs in order, then a kill of whatever carries the marker. In bubblewrap the
// kill reaches the namespace's first process, and with it everything inside.
func (d *Driver) Stop(ctx context.Context, id thole.ExecutorID) error {
	deadline := time.Now().Add(stopGrace)
	signal := syscall.SIGTERM
	for looked := (backoff.Policy{Min: time.Millisecond, Max: 50 * time.Millisecond}).Begin(); ; {
		pids, err := marked(id)
		if err != nil {
			return err
		}
		for _, pid := range d.cfg.Groups.members(id) { // some may have dropped the marker
			if !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
		if len(pids) == 0 {
			return d.cfg.Groups.drop(id)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stop executor: signal %d: %w", pid, err)
			}
		}
		if signal == syscall.SIGTERM {
			signal = 0 // asked once; from now on only look
		}
		if time.Now().After(deadline) {
			signal = syscall.SIGKILL
		}
		if err := looked.Wait(ctx); err != nil {
			return err
		}
	}
}

// Remove implements executor.Driver. The label goes last, so that a crash in
// between leaves something to find and remove again.
func (d *Driver) Remove(ctx context.Context, id thole.ExecutorID) error {
	if err := d.Stop(ctx, id); err != nil {
		return err
	}
	for _, sub := range subdirs {
		if err := os.RemoveAll(d.dir(id, sub)); err != nil {
			return fmt.Errorf("remove executor: %w", err)
		}
	}
	if err := os.RemoveAll(d.dir(id)); err != nil {
		return fmt.Errorf("remove executor: %w", err)
	}
	return nil
}

func marker(id thole.ExecutorID) string { return executord.Mark + "=" + string(id) }

// marked finds the processes of an executor by the marker in their environment.
// A process whose environment cannot be read is not ours: ours run as our user.
func marked(id thole.ExecutorID) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for executor processes: %w", err)
	}
	want := []byte(marker(id))
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(v, want) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, nil
}
