package supervise

import (
	"os/exec"
	"testing"
)

// An identity is one process: not its successor under the same pid, not a zombie.
func TestIdentity(t *testing.T) {
	if !Self().Alive() {
		t.Error("this process is not alive to itself")
	}
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := Of(cmd.Process.Pid)
	if !id.Alive() {
		t.Error("a running child is not alive")
	}
	other := id
	other.Start += "1"
	if other.Alive() {
		t.Error("another start time is another process")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if id.Alive() || Of(cmd.Process.Pid).Alive() {
		t.Error("a dead process is alive")
	}
}
