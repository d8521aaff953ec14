package procid

import (
	"os/exec"
	"testing"
)

// An identity is one process: not its successor under the same pid, not a zombie.
func TestIdentity(t *testing.T) {
	if err := Self().Alive(); err != nil {
		t.Error(err)
	}
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := Of(cmd.Process.Pid)
	if err := id.Alive(); err != nil {
		t.Error(err)
	}
	other := id
	other.Start += "1"
	if other.Alive() == nil {
		t.Error("another start time is another process")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if id.Alive() == nil || Of(cmd.Process.Pid).Alive() == nil || (Identity{}).Alive() == nil {
		t.Error("a dead process is alive")
	}
}
