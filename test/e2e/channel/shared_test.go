package channel

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A plain codex joins the daemon that all terminals of its home share; a thread in
// it is held by the daemon's own control socket and process.
func TestAttachToTheSharedDaemon(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	thread := ""
	if out, err := d.other("app-server", "daemon", "start"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := d.other("app-server", "daemon", "stop"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		// Its updater stays, and ignores requests to end.
		var updater struct{ PID int }
		b, err := os.ReadFile(d.path("codex", "app-server-daemon", "daemon-updater.pid"))
		if err == nil && json.Unmarshal(b, &updater) == nil && updater.PID > 0 {
			_ = syscall.Kill(updater.PID, syscall.SIGKILL)
		}
		// A file that a killed daemon left names no process.
		if out, err := d.try("codex", "attach", "--thread-id", thread); err == nil {
			t.Errorf("attached to a daemon that is gone: %s", out)
		}
	})
	d.terminal(d.codex)
	d.shows("Scripted")
	d.say("sim: say hello from the model")
	d.shows("• hello from the model")
	thread = d.loaded("unix://" + d.path("codex", "app-server-control", "app-server-control.sock"))
	var s session
	d.thole(&s, "codex", "attach", "--thread-id", thread, "--auto-delivery-policy", "trusted-all")
	if s.State != "live" || s.Problem != "" {
		t.Fatalf("%+v", s)
	}
	d.job("cli", thread, "sim: say the result was read")
	d.shows("• the result was read")
	if b := d.fate(); b.CloseReason != "delivered" || b.Attempts != 1 {
		t.Fatalf("%+v", b)
	}
}

// other runs codex next to the terminal.
func (d *desk) other(args ...string) (string, error) {
	cmd := exec.Command(d.codex, args...)
	cmd.Env, cmd.Dir = d.env(), d.path("work")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
