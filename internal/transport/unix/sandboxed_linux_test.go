package unix_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
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
		cmd := apart(exec.Command(self), flags)
		cmd.Env = []string{"UNIX_TEST_ROLE=dial", "UNIX_TEST_PATH=" + path}
		lab.Need(t, "user namespaces", cmd.Start())
		_ = cmd.Wait() // 4 when it was served
		_ = l.Close()
		if got, code := <-served, cmd.ProcessState.ExitCode(); got != (flags == 0) || (code == 4) != got {
			t.Errorf("%s: served %v, the client ended with %d", name, got, code)
		}
	}
}

// apart has a program run in namespaces of its own.
func apart(cmd *exec.Cmd, flags uintptr) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	}
	return cmd
}

// TestADistantPeerLearnsWhy: a program of thole's that is hung up on because it runs in
// a container says so, and what to do; one next to the server, or one that any other
// server answered, does not.
func TestADistantPeerLearnsWhy(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dialled := func(path string, flags uintptr) string {
		cmd := apart(exec.Command(self), flags)
		cmd.Env = []string{"UNIX_TEST_ROLE=served", "UNIX_TEST_PATH=" + path}
		out, err := cmd.Output()
		lab.Need(t, "user namespaces", err)
		return string(out)
	}
	path := filepath.Join(dir(t), "s")
	l, err := unix.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("x"))
			_ = c.Close()
		}
	}()
	if said := dialled(path, 0); said != "" {
		t.Errorf("next to the server: %s", said)
	}
	if said := dialled(path, syscall.CLONE_NEWUSER|syscall.CLONE_NEWPID); !strings.Contains(said, "outside of this container") || !strings.Contains(said, "/ run the command where the server runs") {
		t.Errorf("from a container: %q", said)
	}
}
