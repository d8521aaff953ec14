//go:build linux && (amd64 || arm64)

package seccomp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/testkit/lab"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "attack" {
		runtime.LockOSThread()
		err := attacks[os.Args[2]].try()
		fmt.Fprintln(os.Stdout, err)
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func call(nr uintptr, args ...uintptr) error {
	args = append(args, make([]uintptr, 6-len(args))...)
	if _, _, no := unix.Syscall6(nr, args[0], args[1], args[2], args[3], args[4], args[5]); no != 0 {
		return no
	}
	return nil
}

func socket(family, kind, protocol int) func() error {
	return func() error { _, err := unix.Socket(family, kind, protocol); return err }
}

// attacks are tried by this program inside a sandbox. Each succeeds there without
// a filter, or the machine does not have what it is about.
var attacks = map[string]struct {
	try   func() error
	want  unix.Errno
	stops []Profile
}{
	"a user namespace by clone": {func() error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return cmd.Run()
	}, unix.EPERM, every},
	"a user namespace by unshare": {func() error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}
		return cmd.Run()
	}, unix.EPERM, every},
	"io_uring": {func() error {
		var params [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
	}, unix.ENOSYS, every},
	"keyring":     {func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err }, unix.EPERM, every},
	"userfaultfd": {func() error { return call(unix.SYS_USERFAULTFD, 1) }, unix.EPERM, every},
	"perf": {func() error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
		_, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
		return err
	}, unix.EPERM, every},
	"descriptor of another": {func() error {
		fd, err := unix.PidfdOpen(os.Getpid(), 0)
		if err == nil {
			_, err = unix.PidfdGetfd(fd, 1, 0)
		}
		return err
	}, unix.EPERM, every},
	"the host's sockets":    {socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), unix.EPERM, every},
	"the kernel's ciphers":  {socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), unix.EPERM, every},
	"netlink, audit":        {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT), unix.EPERM, []Profile{Networked, Restricted}},
	"netlink, users":        {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_USERSOCK), unix.EPERM, []Profile{Networked, Restricted}},
	"netlink, fib":          {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_FIB_LOOKUP), unix.EPERM, []Profile{Networked, Restricted}},
	"netlink, routes":       {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), unix.EPERM, []Profile{Restricted}},
	"inet":                  {socket(unix.AF_INET, unix.SOCK_STREAM, 0), unix.EPERM, []Profile{Restricted}},
	"bubblewrap is stopped": {func() error { return unix.PtraceSeize(1) }, unix.EPERM, []Profile{Networked, Restricted}},
	"a socket by name": {func() error {
		c, err := net.Dial("unix", "/run/stream")
		if err == nil {
			c.Close()
		}
		return err
	}, unix.EPERM, []Profile{Restricted}},
	"a socket by name, through a pair": {func() error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendmsg(fds[0], []byte("x"), nil, &unix.SockaddrUnix{Name: "/run/datagram"}, 0)
	}, unix.EPERM, []Profile{Restricted}},
}

var every = []Profile{Box, Networked, Restricted}

// inside runs the attack, or another program, in a sandbox.
func inside(t *testing.T, dir string, filter *Profile, argv ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run",
		"--ro-bind", self, "/run/self", "--ro-bind", dir + "/stream", "/run/stream", "--ro-bind", dir + "/datagram", "/run/datagram", "--cap-drop", "ALL"}
	cmd := exec.Command(lab.Bwrap(t))
	if filter != nil {
		f, err := filter.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		args = append(args, "--seccomp", "3")
		cmd.ExtraFiles = []*os.File{f}
	}
	cmd.Args = slices.Concat(cmd.Args, args, []string{"--"}, argv)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestAttacks puts this program inside: without a filter it succeeds, with one it
// does not, whichever user runs it.
func TestAttacks(t *testing.T) {
	lab.Bwrap(t)
	lab.EveryUser(t, func(t *testing.T) {
		dir := t.TempDir()
		for name, network := range map[string]string{"stream": "unix", "datagram": "unixgram"} {
			if network == "unix" {
				l, err := net.Listen(network, filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				continue
			}
			l, err := net.ListenUnixgram(network, &net.UnixAddr{Net: network, Name: filepath.Join(dir, name)})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		shown := 0
		for name, a := range attacks {
			if out, err := inside(t, dir, nil, "/run/self", "attack", name); err != nil {
				t.Logf("%s: not to be had on this machine: %v: %s", name, err, out)
				continue
			}
			shown++
			for _, p := range every {
				out, err := inside(t, dir, &p, "/run/self", "attack", name)
				stopped := slices.Contains(a.stops, p)
				if stopped && (err == nil || !strings.HasSuffix(out, a.want.Error())) || !stopped && err != nil {
					t.Errorf("%s, profile %d: %v: %s", name, p, err, out)
				}
			}
		}
		if shown < len(attacks)-4 {
			t.Errorf("only %d of %d attacks work without a filter: little is proven", shown, len(attacks))
		}
	})
}

// TestNumbersOfAnotherMachine: the kernel also takes 32-bit calls, whose numbers
// mean other things.
func TestNumbersOfAnotherMachine(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs a machine with 32-bit calls")
	}
	lab.Bwrap(t)
	lab.EveryUser(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"stream", "datagram"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// A program in 64 bits that ends itself by the 32-bit call of that: status 42.
		code := []byte{0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80}
		elf := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"+ // 64 bits, little-endian
			"\x02\x00\x3e\x00\x01\x00\x00\x00"+"\x78\x00\x40\x00\x00\x00\x00\x00"+"\x40\x00\x00\x00\x00\x00\x00\x00"+"\x00\x00\x00\x00\x00\x00\x00\x00"+
			"\x00\x00\x00\x00\x40\x00\x38\x00\x01\x00\x00\x00\x00\x00\x00\x00"+
			"\x01\x00\x00\x00\x05\x00\x00\x00"+"\x00\x00\x00\x00\x00\x00\x00\x00"+"\x00\x00\x40\x00\x00\x00\x00\x00"+"\x00\x00\x40\x00\x00\x00\x00\x00"+
			"\x84\x00\x00\x00\x00\x00\x00\x00"+"\x84\x00\x00\x00\x00\x00\x00\x00"+"\x00\x10\x00\x00\x00\x00\x00\x00"), code...)
		program := filepath.Join(lab.Open(t), "int80")
		if err := os.WriteFile(program, elf, 0o755); err != nil {
			t.Fatal(err)
		}
		status := func(err error) int {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exit.ExitCode()
			}
			return 0
		}
		if out, err := inside(t, dir, nil, program); status(err) != 42 {
			t.Skipf("this kernel takes no 32-bit calls: %v %s", err, out)
		}
		for _, p := range every {
			if out, err := inside(t, dir, &p, program); status(err) != 128+int(unix.SIGSYS) {
				t.Errorf("profile %d: %v %s", p, err, out)
			}
		}
	})
}
