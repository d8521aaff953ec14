package peercred_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/peercred"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer") // short: socket paths are bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestSameUser(t *testing.T) {
	l := listen(t)
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, end := range []net.Conn{c, s} {
		cred, err := peercred.SameUser(end)
		if err != nil || cred.UID != os.Geteuid() || cred.PID != 0 && cred.PID != os.Getpid() {
			t.Fatalf("%+v, %v", cred, err)
		}
	}
}

func TestTCPIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if cred, err := peercred.SameUser(c); err == nil && cred.UID == os.Geteuid() {
		t.Fatalf("a TCP peer was proven to be us: %+v", cred)
	}
	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	if _, err := peercred.Of(a); err == nil {
		t.Fatal("a pipe has credentials")
	}
}

// TestOtherUser connects from a child that runs as nobody.
func TestOtherUser(t *testing.T) {
	if path := os.Getenv("PEERCRED_DIAL"); path != "" {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Read(make([]byte, 1)) // until the listener lets go
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	l := listen(t)
	path := l.Addr().String()
	for p, mode := range map[string]os.FileMode{path: 0o666, filepath.Dir(path): 0o755} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("cannot copy the test binary:", err)
	}
	exe := filepath.Join(filepath.Dir(path), "child") // the build directory is root's
	if err := os.WriteFile(exe, bin, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestOtherUser$")
	cmd.Env = []string{"PEERCRED_DIAL=" + path}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if cred, err := peercred.SameUser(s); !errors.Is(err, peercred.ErrOtherUser) || cred.UID != 65534 {
		t.Fatalf("%+v, %v", cred, err)
	}
}
