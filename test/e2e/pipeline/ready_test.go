package pipeline

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// hanging is a CLI that says nothing, ever. It notes the process of each call.
func hanging(t testing.TB, r *rig) (path string, pids func() []int) {
	t.Helper()
	path, note := filepath.Join(r.home, "hanging"), filepath.Join(r.home, "hanging.pids")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho $$ >> "+note+"\nexec sleep 100000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	pids = func() (out []int) {
		data, _ := os.ReadFile(note)
		for _, f := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, pid)
		}
		return out
	}
	t.Cleanup(func() {
		for _, pid := range pids() { // those of a program that was killed
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return path, pids
}

// A CLI that hangs holds up nobody else: the turn of another provider begins and
// ends while the first probe still waits for it.
func TestACLIThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path, pids := hanging(t, r)
	r.env = append(r.env, "THOLE_PROVIDERS_CODEX="+path)
	r.begin(t)
	poll.Until(t, "the probe", func() bool { return len(pids()) > 0 })
	s := r.session(t, "test")
	s.settle(s.start("sim: say done", ""), "completed")
	if err := syscall.Kill(pids()[0], 0); err != nil {
		t.Errorf("the turn ended after the probe of another CLI: %v", err)
	}
	// Its own turn fails and says why.
	own := r.session(t, "codex")
	if got := own.settle(own.start("hello", ""), "failed"); got.Error == nil || !strings.Contains(got.Error.Message, "did not answer within") {
		t.Errorf("its own turn ended with %+v", got.Error)
	}
}

// A program that is restarted again and again, each time before a slow CLI has
// said what it can do, still moves the turns of others.
func TestRestartsBeforeAProbeEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path, pids := hanging(t, r)
	r.env = append(r.env, "THOLE_PROVIDERS_CLAUDE="+path)
	r.begin(t)
	s := r.session(t, "test")
	id := s.start("sim: run echo x >> f ;; wait 2s ;; run wc -l < f ;; say done", "")
	n := 1
	for ; n <= 30 && s.get(id).Outcome == ""; n++ {
		seen := len(pids())
		r.murder(t)
		r.begin(t)
		poll.Until(t, "the next probe", func() bool { return len(pids()) > seen })
		time.Sleep(time.Second) // a restart every second is the claim
	}
	s.settle(id, "completed")
	if n > 30 {
		t.Errorf("the turn ended only when the restarts did")
	}
	t.Logf("%d restarts", n)
}
