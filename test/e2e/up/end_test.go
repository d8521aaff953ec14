//go:build linux

package up

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// A terminate signal ends thole up within 10 seconds while executord hangs under a
// turn, and under a stop that someone waits for.
func TestUpEndsWhateverAnExecutorDoes(t *testing.T) {
	h := home.New(t)
	r := start(t, h)
	thread := func(script string) string {
		out, errs, code := h.Run("thread", "start", "--model", "test/script", "--profile", "full")
		if code != 0 {
			t.Fatal(out, errs)
		}
		id := strings.Fields(out)[1]
		if out, errs, code := h.Run("thread", "send", "--detach", id, script); code != 0 {
			t.Fatal(out, errs)
		}
		poll.Until(t, "the agent's word", func() bool {
			out, _, _ := h.Run("thread", "show", id)
			return strings.Contains(out, "begun")
		})
		return id
	}
	thread("sim: say begun ;; hang")
	idle := thread("sim: say begun")
	poll.Until(t, "the end of a turn", func() bool {
		out, _, _ := h.Run("thread", "list")
		return strings.Contains(out, "idle")
	})
	stopped := hang(t, h)
	t.Cleanup(func() {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	closing := h.Command("thread", "close", idle)
	if err := closing.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closing.Process.Kill(); _ = closing.Wait() })
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.over:
	case <-time.After(10 * time.Second):
		t.Error("thole up still runs after 10 s")
	}
}

// hang stops the processes of executord and says which.
func hang(t *testing.T, h *home.Home) (pids []int) {
	t.Helper()
	ids, err := os.ReadDir(filepath.Join(h.Dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range all {
		env, _ := os.ReadFile(proc + "/environ")
		exe, _ := os.Readlink(proc + "/exe")
		for _, id := range ids {
			if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil && filepath.Base(exe) == filepath.Base(h.Binary) && strings.Contains(string(env), wire.Mark+"="+id.Name()) && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				pids = append(pids, pid)
			}
		}
	}
	if len(pids) == 0 {
		t.Fatal("no executord was found")
	}
	return pids
}
