package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/process"
)

// Control groups are shared with the machine's other managers, so executors
// get theirs only below a group that was given to thole. Without one executord holds
// its box to memory and processes (executord/watch.go); nothing holds CPUs then.
// RLIMIT_AS and RLIMIT_DATA would stop CLIs that reserve memory they never use.

// controllers are what limits need.
var controllers = []string{"cpu", "memory", "pids"}

// Groups is where executors' control groups are made: for each controller that
// can be had its directory. Both versions of control groups serve, one hierarchy
// or one for each controller.
type Groups struct {
	dirs    map[string]string
	unified bool
}

// FindGroups looks for a group, named as in /proc/self/cgroup, below root, which
// is /sys/fs/cgroup.
func FindGroups(root, path string) Groups {
	g := Groups{dirs: map[string]string{}}
	if path == "" {
		return g
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		g.unified = true
		dir := filepath.Join(root, path)
		control := filepath.Join(dir, "cgroup.subtree_control")
		for _, c := range controllers {
			_ = os.WriteFile(control, []byte("+"+c), 0) // what it did is read below
		}
		on, _ := os.ReadFile(control)
		for _, c := range controllers {
			if slices.Contains(strings.Fields(string(on)), c) {
				g.dirs[c] = dir
			}
		}
		return g
	}
	for _, c := range controllers {
		dir := filepath.Join(root, c, path)
		probe := filepath.Join(dir, "thole-probe-"+strconv.Itoa(os.Getpid()))
		if os.Mkdir(probe, 0o755) == nil {
			_ = os.Remove(probe)
			g.dirs[c] = dir
		}
	}
	return g
}

// Version is that of the control groups, 0 for none.
func (g Groups) Version() int {
	switch {
	case len(g.dirs) == 0:
		return 0
	case g.unified:
		return 2
	}
	return 1
}

// Missing lists the controllers that cannot be had.
func (g Groups) Missing() (out []string) {
	for _, c := range controllers {
		if g.dirs[c] == "" {
			out = append(out, c)
		}
	}
	return out
}

func (g Groups) of(id thole.ExecutorID) map[string]string {
	out := map[string]string{}
	for c, dir := range g.dirs {
		out[c] = filepath.Join(dir, "thole-"+string(id))
	}
	return out
}

// make creates the groups of an executor's agents with its limits. executord stays
// where its owner is: in a group with its agents it would starve with them.
func (g Groups) make(id thole.ExecutorID, l executor.Limits) (made []string, err error) {
	const period = 100000 // µs
	quota := strconv.Itoa(int(l.CPUs * period))
	type setting struct{ controller, file, value string }
	var settings []setting
	add := func(limited bool, s ...setting) {
		if limited {
			settings = append(settings, s...)
		}
	}
	if g.unified {
		add(l.CPUs > 0, setting{"cpu", "cpu.max", quota + " " + strconv.Itoa(period)})
		add(l.Memory > 0, setting{"memory", "memory.max", strconv.FormatInt(l.Memory, 10)})
	} else {
		add(l.CPUs > 0, setting{"cpu", "cpu.cfs_period_us", strconv.Itoa(period)}, setting{"cpu", "cpu.cfs_quota_us", quota})
		add(l.Memory > 0, setting{"memory", "memory.limit_in_bytes", strconv.FormatInt(l.Memory, 10)})
	}
	add(l.Pids > 0, setting{"pids", "pids.max", strconv.Itoa(l.Pids)})
	dirs := g.of(id)
	for _, s := range settings {
		dir, ok := dirs[s.controller]
		if !ok {
			continue // Missing said so
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make control group: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0o644); err != nil {
			return nil, fmt.Errorf("limit %s: %w", s.controller, err)
		}
		if !slices.Contains(made, dir) {
			made = append(made, dir)
		}
	}
	return made, nil
}

// doors opens the files that take processes into groups. Who may write to one was
// asked when it was opened, so executord needs no permission of its own.
func doors(groups []string) (files []*os.File, err error) {
	for _, dir := range groups {
		f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			closeFiles(files)
			return nil, fmt.Errorf("open control group: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// members lists the processes in an executor's groups.
func (g Groups) members(id thole.ExecutorID) (pids []int) {
	for _, dir := range g.of(id) {
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// starved counts the processes in an executor's group that were killed for want
// of memory. Both versions report it in the same words, each in a file of its own.
func (g Groups) starved(id thole.ExecutorID) (n int) {
	file := "memory.oom_control"
	if g.unified {
		file = "memory.events"
	}
	text, _ := os.ReadFile(filepath.Join(g.of(id)["memory"], file))
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ = strconv.Atoi(strings.TrimSpace(count))
		}
	}
	return n
}

// drop removes an executor's groups. The kernel keeps one a moment longer than
// its last process.
func (g Groups) drop(id thole.ExecutorID) error {
	var failed error
	for _, dir := range g.of(id) {
		process.SweepGroups(dir) // they would keep it
		var err error
		for range (backoff.Policy{Min: time.Millisecond, Max: time.Second}).Tries(context.Background(), 11) {
			if err = os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
				err = nil
				break
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("remove control group: %w", err))
		}
	}
	return failed
}
