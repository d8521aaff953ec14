package pipeline

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// processes counts those of a rig's executors.
func (r *rig) processes(t testing.TB) (n int) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(r.home, "x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range marks(t) {
		for _, e := range list {
			if bytes.Contains(p.data, []byte("THOLE_EXECUTOR="+e.Name())) {
				n++
			}
		}
	}
	return n
}

// An executor whose owner is gone ends by its stated time, also one whose turn
// waits for a person. The question outlives it, and the turn goes on with the
// answer after the next start.
func TestOrphansEndAndTheirQuestionsStay(t *testing.T) {
	t.Parallel()
	r := newRig(t, "THOLE_EXECUTOR_ORPHAN_TIMEOUT=30s", "THOLE_EXECUTOR_SWEEP_EVERY=5s")
	r.begin(t)
	s, idle := r.session(t, "test"), r.session(t, "test")
	idle.settle(idle.start("sim: say hello", ""), "completed")
	id := s.start("sim: run echo kept > f ;; ask Which? | red | blue ;; run cat f ;; say ok", "")
	q := s.asked(id)
	r.murder(t)
	if r.processes(t) == 0 {
		t.Fatal("the executors went with their owner")
	}
	poll.Until(t, "the end of the executors", func() bool { return r.processes(t) == 0 })
	r.begin(t)
	again := s.asked(id)
	if again.QuestionID != q.QuestionID {
		t.Errorf("the question is another: %+v, was %+v", again, q)
	}
	s.reply(again, map[string]any{"answers": map[string][]string{again.Questions[0].ID: {"blue"}}})
	if s.settle(id, "completed"); strings.Count(s.said(id), "kept") != 1 || !strings.Contains(s.said(id), "ok") {
		t.Errorf("said %q", s.said(id))
	}
}

// Ctrl-C says which executors and turns go on, until when, and the command that
// ends them, which does.
func TestCtrlCSaysWhatGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(t)
	s, idle := r.session(t, "test"), r.session(t, "test")
	idle.settle(idle.start("sim: say hello", ""), "completed")
	id := s.start("sim: say begun ;; wait 10m ;; say never", "")
	s.shows(id, func(it item) bool { return it.Text == "begun" })
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	r.stop = func() {}
	words := string(r.log.Bytes())
	for _, want := range []string{s.id, idle.id, "a turn is running", "idle", "executor.orphan_timeout", "thole thread close --all --interrupt"} {
		if !strings.Contains(words, want) {
			t.Errorf("it does not say %q:\n%s", want, words)
		}
	}
	if r.processes(t) == 0 {
		t.Error("nothing goes on")
	}
	cmd := exec.Command(r.path, "thread", "close", "--all", "--interrupt")
	cmd.Env, cmd.SysProcAttr = r.env, &syscall.SysProcAttr{Setsid: true}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), s.id) {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { // the daemon that it started
		cmd := exec.Command(r.path, "daemon", "stop")
		cmd.Env = r.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	poll.Until(t, "the stop of the executors", func() bool {
		list, err := r.driver.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			if info.State != executor.Stopped {
				return false
			}
		}
		return r.processes(t) == 0
	})
}
