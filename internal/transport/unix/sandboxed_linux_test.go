package unix_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/transport/unix"
)

// TestASandboxedPeerIsHungUpOn: our uid is not enough from a process namespace of
// its own; without one the same program is served.
func TestASandboxedPeerIsHungUpOn(t *testing.T) {
	for name, flags := range map[string]uintptr{"outside": 0, "sandboxed": syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID} {
		path := filepath.Join(dir(t), "s")
		l, err := unix.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan bool, 1)
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, _ = c.Write([]byte("x"))
				_ = c.Close()
			}
			served <- err == nil
		}()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = []string{"UNIX_TEST_ROLE=dial", "UNIX_TEST_PATH=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if flags != 0 {
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		}
		if err := cmd.Start(); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip("no user namespaces here: ", err)
		}
		_ = cmd.Wait() // 4 when it was served
		_ = l.Close()
		if got, code := <-served, cmd.ProcessState.ExitCode(); got != (flags == 0) || (code == 4) != got {
			t.Errorf("%s: served %v, the client ended with %d", name, got, code)
		}
	}
}
