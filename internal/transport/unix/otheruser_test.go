package unix_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/transport/unix"
)

// TestMain doubles as the other user: a child that listens or dials as asked.
func TestMain(m *testing.M) {
	path := os.Getenv("UNIX_TEST_PATH")
	switch os.Getenv("UNIX_TEST_ROLE") {
	case "dial":
		c, err := net.Dial("unix", path)
		if err != nil {
			os.Exit(3)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			os.Exit(4) // we were served
		}
		os.Exit(0)
	case "served":
		c, err := unix.Dial(context.Background(), path)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		if err != nil {
			_, _ = os.Stdout.WriteString(err.Error() + " / " + thole.HintOf(err))
		}
		os.Exit(0)
	case "listen":
		l, err := net.Listen("unix", path)
		if err != nil {
			os.Exit(3)
		}
		_, _ = os.Stdout.WriteString("ready")
		c, err := l.Accept()
		if err != nil {
			os.Exit(3)
		}
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			os.Exit(4) // we were trusted
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// nobody prepares a child of another uid in a directory that both can use.
func nobody(t *testing.T, role string) (cmd *exec.Cmd, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	d := dir(t)
	bin, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("cannot copy the test binary:", err)
	}
	exe := filepath.Join(d, "child")
	if err := os.WriteFile(exe, bin, 0o755); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(d, "s")
	cmd = exec.Command(exe)
	cmd.Env = []string{"UNIX_TEST_ROLE=" + role, "UNIX_TEST_PATH=" + path}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd, path
}

func TestOtherUserIsHungUpOn(t *testing.T) {
	cmd, path := nobody(t, "dial")
	l, err := unix.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	// Open the file system's doors: the kernel's word alone must be enough.
	for p, mode := range map[string]os.FileMode{path: 0o666, filepath.Dir(path): 0o755} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
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
	if err := cmd.Run(); err != nil {
		t.Errorf("the other user's client: %v", err)
	}
	_ = l.Close()
	if <-served {
		t.Fatal("another user was served")
	}
}

func TestOtherUsersSocketIsNotTrusted(t *testing.T) {
	cmd, path := nobody(t, "listen")
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_, err = unix.Dial(t.Context(), path)
	wantCode(t, err, thole.CodeForbidden)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
