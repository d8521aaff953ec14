package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is known by its pid and the time it started, because pids come back.
// Each daemon's directory says in "owner" who watches it and in "part" what runs
// in it.

func writeOwner(dir string, pid int) error { return writeIdentity(dir, "owner", pid) }

func writePart(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return err
	}
	return writeIdentity(dir, "part", pid)
}

func writeIdentity(dir, name string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "%d %s", pid, start), 0o600)
}

// startTime is the 22nd field of /proc/PID/stat; the second may hold spaces and
// parentheses, so counting begins after the last one.
func startTime(pid int) (string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	stat := string(raw)
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("odd /proc/%d/stat", pid)
	}
	return fields[19], nil
}

// living returns the pid written in a file if that very process still runs.
func living(path string) (int, bool) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	pidText, start, _ := strings.Cut(string(raw), " ")
	pid, err := strconv.Atoi(pidText)
	if err != nil {
		return 0, false
	}
	now, err := startTime(pid)
	return pid, err == nil && now == start
}

// reap removes what an earlier run left: directories whose watcher is gone, and
// the server in them. A directory without an owner yet belongs to a launch that
// is just beginning, unless it is more than a minute old.
func reap(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if _, alive := living(filepath.Join(dir, "owner")); alive || young(dir) {
			continue
		}
		if pid, alive := living(filepath.Join(dir, "part")); alive {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if bridge, err := os.ReadFile(filepath.Join(dir, "bridge")); err == nil {
			_ = exec.Command("ip", "link", "delete", string(bridge)).Run()
		}
		_ = os.RemoveAll(dir)
	}
}

func young(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "owner")); err == nil {
		return false
	}
	info, err := os.Stat(dir)
	return err != nil || time.Since(info.ModTime()) < time.Minute
}
