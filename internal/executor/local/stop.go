package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
)

// stopGrace is how long executord has to end its CLIs by itself.
const stopGrace = 5 * time.Second

// Stop implements executor.Driver: first a signal that lets executord end its
// CLIs in order, then a kill of whatever carries the marker. In bubblewrap the
// kill reaches the namespace's first process, and with it everything inside.
func (d *Driver) Stop(ctx context.Context, id thole.ExecutorID) error {
	deadline := time.Now().Add(stopGrace)
	signal := syscall.SIGTERM
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
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
		around := map[int]bool{}
		if signal == syscall.SIGTERM {
			around = d.around(pids)
		}
		for _, pid := range pids {
			if around[pid] {
				continue // it would take executord with it at once
			}
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
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// Remove implements executor.Driver. The label goes last, so that a crash in
// between leaves something to find and remove again.
func (d *Driver) Remove(ctx context.Context, id thole.ExecutorID) error {
	if err := d.Stop(ctx, id); err != nil {
		return err
	}
	for _, sub := range shared {
		if err := os.RemoveAll(d.dir(id, sub)); err != nil {
			return fmt.Errorf("remove executor: %w", err)
		}
	}
	if err := os.RemoveAll(d.dir(id)); err != nil {
		return fmt.Errorf("remove executor: %w", err)
	}
	return nil
}

// around is bubblewrap and what stands before it: all inside dies with them.
func (d *Driver) around(pids []int) map[int]bool {
	out := map[int]bool{}
	wrap, err := filepath.EvalSymlinks(d.cfg.Bwrap)
	if err != nil {
		return out // nothing runs in it
	}
	for _, pid := range pids {
		proc := "/proc/" + strconv.Itoa(pid)
		if exe, err := os.Readlink(proc + "/exe"); err != nil || exe != wrap {
			continue
		}
		out[pid] = true
		stat, err := os.ReadFile(proc + "/stat")
		if _, rest, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")); err == nil && ok {
			var state string
			var parent int
			if n, _ := fmt.Sscan(string(rest), &state, &parent); n == 2 {
				out[parent] = true
			}
		}
	}
	return out
}

func marker(id thole.ExecutorID) string { return wire.Mark + "=" + string(id) }

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
