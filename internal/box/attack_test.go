//go:build linux

package box_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/sandbox/seccomp"
	"github.com/tholehq/thole/internal/testkit/lab"
	"golang.org/x/sys/unix"
)

const token = "the-token-that-nobody-inside-may-see"

// look is an attacker's search for its owner, by all that /proc, /tmp, abstract sockets and
// descriptors show.
const look = `me=$$
for p in /proc/[0-9]*; do
grep -asq the-token-that-"nobody" $p/environ $p/cmdline 2>/dev/null && echo found $p
ls -l $p/fd 2>/dev/null | grep -q secret-file && echo descriptor $p
done
grep -q secret-socket /proc/net/unix && echo socket
find / -xdev -name 'secret-file' 2>/dev/null
echo looked`

// What an attacker finds who is no other principal, it does not find inside.
func TestAnAttackerFindsNothingOfItsOwner(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		t.Setenv("THOLE_TEST_TOKEN", token)
		path := filepath.Join(t.TempDir(), "secret-file")
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(path, unix.O_RDONLY, 0) // inherited, as a careless library opens it
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		ln, err := net.Listen("unix", "@secret-socket-"+strconv.Itoa(os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		b := start(t)
		if got := script(t, b, look); got != "looked\n" {
			t.Errorf("inside: %s", got)
		}
		if got := script(t, b, "ls /proc/self/fd | wc -l"); got != "4\n" { // and the list itself
			t.Errorf("descriptors inside: %s", script(t, b, "ls -l /proc/self/fd"))
		}
		holder := exec.Command("/bin/sleep", "600")
		holder.Env = []string{"THOLE_TEST_TOKEN=" + token}
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
		out, err := exec.Command("/bin/sh", "-c", strings.Replace(look, "find / -xdev", "find "+filepath.Dir(path), 1)).Output()
		for _, want := range []string{"found /proc/" + strconv.Itoa(holder.Process.Pid), "descriptor /proc/" + strconv.Itoa(os.Getpid()), "socket", path} {
			if !strings.Contains(string(out), want) {
				t.Errorf("without walls the attack does not find %q: nothing is proven: %s, %v", want, out, err)
			}
		}
	})
}

// intrude tries to get into a process: what a debugger, a thief of descriptors and a
// murderer would do.
func intrude(arg string) {
	pid, _ := strconv.Atoi(arg)
	try := func(what string, err error) {
		if err == nil {
			fmt.Fprintln(os.Stdout, what)
		}
	}
	for _, file := range []string{"environ", "maps", "mem", "fd/3", "stack", "syscall"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err == nil {
			_, err = f.Read(make([]byte, 1))
			if file == "mem" {
				err = nil // address 0 is never there
			}
			f.Close()
		}
		try(file, err)
	}
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	try("exe", err)
	_, err = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	try("fd", err)
	var word [8]byte
	_, err = unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &word[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	if err == unix.EFAULT {
		err = nil // it was let in
	}
	try("memory", err)
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		_, err = unix.PidfdGetfd(fd, 3, 0)
		if err == unix.EBADF {
			err = nil
		}
		try("getfd", err)
	}
	err = unix.PtraceSeize(pid)
	try("ptrace", err)
	fmt.Fprintln(os.Stdout, "tried")
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGTERM, unix.SIGKILL} {
		_ = unix.Kill(pid, sig)
	}
}

func TestTheInitCannotBeTouched(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := start(t)
		got, _ := inside(t, b, []string{"BOX_TEST=intrude"}, "/run/init", "1")
		if got != "tried\n" {
			t.Errorf("of the init an attacker got %q", got)
		}
		if got := script(t, b, "echo alive"); got != "alive\n" {
			t.Errorf("after an attempt to kill the init: %q", got)
		}
		// A neighbour of the same principal is within reach: the attempts themselves work.
		got = script(t, b, "sleep 600 & BOX_TEST=intrude /run/init $!; wait $!; echo $?")
		for _, want := range []string{"environ", "mem", "exe", "fd", "memory", "getfd", "ptrace", "137"} {
			if !strings.Contains(got, want+"\n") {
				t.Errorf("of a neighbour an attacker did not get %q: nothing is proven: %q", want, got)
			}
		}
	})
}

// Inside, where everybody has the same user, the filter of system calls keeps the
// init's limits from others.
func TestTheInitsLimitsAreItsOwn(t *testing.T) {
	const attack = "prlimit --pid 1 --nofile=1:1 2>/dev/null && echo lowered; for t in /proc/1/task/*; do prlimit --pid ${t##*/} --nofile=1:1 2>/dev/null && echo lowered; done; ulimit -n 64 && prlimit --nofile=32:32 true && echo own"
	filter, err := seccomp.Box.File()
	if err != nil {
		t.Fatal(err)
	}
	defer filter.Close()
	cfg := config(lab.Bwrap(t), program(t), "--seccomp", "4")
	cfg.Files = []*os.File{filter}
	b, err := box.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := script(t, b, attack); got != "own\n" {
		t.Errorf("with the filter: %q", got)
	}
	if got := script(t, start(t), attack); !strings.Contains(got, "lowered") {
		t.Errorf("without the filter the attack does not work: nothing is proven: %q", got)
	}
}
