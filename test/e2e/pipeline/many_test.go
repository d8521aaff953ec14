package pipeline

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Many threads with one turn of the scripted agent each, all at once: all succeed.
// What each costs while idle afterwards is logged. With THOLE_SOAK=1 they are a
// hundred.
func TestManyAtOnce(t *testing.T) {
	threads := 25
	if os.Getenv("THOLE_SOAK") != "" {
		threads = 100
	}
	r := up(t, "THOLE_TURNS_MAX_RUNNING=100", "THOLE_TURNS_MAX_PER_USER=100", "THOLE_EXECUTOR_STARTS_PER_SECOND=100", "THOLE_EXECUTOR_MAX_LIVE=100")
	begun := time.Now()
	sessions, runs := make([]*session, threads), make([]string, threads)
	for i := range sessions {
		sessions[i] = r.session(t, "test")
		runs[i] = sessions[i].start("sim: run echo $((40+2)) > n.txt ;; run cat n.txt ;; say done", "")
	}
	for i, s := range sessions {
		if s.settle(runs[i], "completed"); !strings.Contains(s.said(runs[i]), "42") {
			t.Errorf("said %q", s.said(runs[i]))
		}
	}
	r.idle(t, len(sessions), time.Since(begun))
}

// The same with room for fewer executors: idle ones give way to turns that wait.
// It takes minutes, so only with THOLE_SOAK=1.
func TestAHundredWithRoomForLess(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("set THOLE_SOAK=1")
	}
	r := newRig(t, "THOLE_TURNS_MAX_RUNNING=100", "THOLE_TURNS_MAX_PER_USER=100", "THOLE_EXECUTOR_STARTS_PER_SECOND=100", "THOLE_EXECUTOR_MAX_LIVE=64")
	r.begin(t)
	sessions, runs := make([]*session, 100), make([]string, 100)
	for i := range sessions {
		sessions[i] = r.session(t, "test")
		runs[i] = sessions[i].start("sim: say done", "")
	}
	for i, s := range sessions {
		s.settle(runs[i], "completed")
	}
}

// idle logs what turns at once took and what their threads cost afterwards.
func (r *rig) idle(t *testing.T, threads int, took time.Duration) {
	t.Helper()
	list, err := r.driver.List(t.Context())
	if err != nil || len(list) != threads {
		t.Fatalf("%d executors, %v", len(list), err)
	}
	processes, kib := 0, 0
	for _, env := range marks(t) {
		for _, info := range list {
			if bytes.Contains(env.data, []byte("THOLE_EXECUTOR="+string(info.ID))) {
				processes++
				kib += proportional(env.dir)
			}
		}
	}
	t.Logf("%d turns in %s; %d processes, %d KiB of memory for each idle thread", threads, took.Round(time.Millisecond), processes, kib/threads)
}

// process is a directory of /proc and the environment in it.
type process struct {
	dir  string
	data []byte
}

func marks(t testing.TB) (all []process) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if env, err := os.ReadFile(name); err == nil && bytes.Contains(env, []byte("THOLE_EXECUTOR=")) {
			all = append(all, process{filepath.Dir(name), env})
		}
	}
	return all
}

// proportional is a process's memory; pages it shares are divided among those who
// share them.
func proportional(dir string) int {
	rollup, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return 0 // it ended meanwhile
	}
	for line := range strings.Lines(string(rollup)) {
		var n int
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &n); err == nil {
			return n
		}
	}
	return 0
}
