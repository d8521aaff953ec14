//go:build linux

package box_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/testkit/lab"
	"golang.org/x/sys/unix"
)

func TestProgramsInside(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := start(t)
		out, exit := inside(t, b, []string{"GREETING=hel\xfflo"}, "/bin/sh", "-c", `echo "$GREETING" $(id -u) $(pwd); exit 7`)
		if out != "hel\xfflo 1000 /workspace\n" || exit.Status.ExitStatus() != 7 {
			t.Errorf("%q, %v", out, exit.Status)
		}
		if _, exit := inside(t, b, nil, "/bin/sh", "-c", "kill -9 $$"); exit.Status.Signal() != unix.SIGKILL {
			t.Errorf("killed, and it says %v", exit.Status)
		}
		files := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
		for want, c := range map[error]box.Command{
			os.ErrNotExist:   {Path: "/bin/nothing", Argv: []string{"nothing"}, Files: files},
			os.ErrPermission: {Path: "/usr", Argv: []string{"usr"}, Files: files},
			syscall.E2BIG:    {Path: "/bin/true", Argv: []string{"true", strings.Repeat("x", 9<<20)}, Files: files},
		} {
			if _, err := b.Spawn(c); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", c.Path, err, want)
			}
		}
		if long, _ := inside(t, b, []string{"A=" + strings.Repeat("a", 100_000), "B=" + strings.Repeat("b", 100_000), "C=" + strings.Repeat("c", 100_000)}, "/bin/sh", "-c", "echo $A$B$C | wc -c"); strings.TrimSpace(long) != "300001" {
			t.Errorf("of 300000 bytes of environment came %q", long)
		}
	})
}

// A program that ends at once was started before: its end never arrives first.
func TestShortPrograms(t *testing.T) {
	b := start(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	failed := make(chan error, 8)
	for range cap(failed) {
		go func() {
			for range 250 {
				child, err := b.Spawn(box.Command{Path: "/bin/true", Argv: []string{"true"}, Files: [3]*os.File{null, null, null}})
				if err == nil {
					_, err = child.Wait()
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

// A program's files block, as it expects, whatever the owner does with its own ends.
func TestFilesBlock(t *testing.T) {
	b := start(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	child, err := b.Spawn(box.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", "exec cat"}, Env: []string{"PATH=/usr/bin:/bin"}, Files: [3]*os.File{r, null, null}})
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	fdinfo, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/0", child.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	var flags int
	for line := range strings.Lines(string(fdinfo)) {
		if v, ok := strings.CutPrefix(line, "flags:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 8, 64)
			flags = int(n)
		}
	}
	if flags&unix.O_NONBLOCK != 0 {
		t.Errorf("its stdin has flags %o", flags)
	}
}

// The pid that the owner gets is the program's own, and its signals reach it.
func TestTheOwnerReachesAProgram(t *testing.T) {
	b := start(t)
	r, w, _ := os.Pipe()
	defer r.Close()
	child, err := b.Spawn(box.Command{Path: "/bin/sleep", Argv: []string{"sleep", "600"}, Tag: 123456, Files: [3]*os.File{w, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child.Pid())); err != nil || string(line) != "sleep\x00600\x00" {
		t.Fatalf("process %d is %q, %v", child.Pid(), line, err)
	}
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", child.Pid())); err != nil || !bytes.Contains(limits, []byte("123456")) {
		t.Errorf("without its tag: %s", limits)
	}
	if group, err := unix.Getpgid(child.Pid()); err != nil || group != child.Pid() {
		t.Errorf("in group %d, %v", group, err)
	}
	if err := child.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit, err := child.Wait(); err != nil || exit.Status.Signal() != unix.SIGTERM {
		t.Errorf("%v, %v", exit, err)
	}
	if err := child.Signal(unix.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to the dead: %v", err)
	}
	if got := script(t, b, "ulimit -a | wc -l; grep msgqueue /proc/self/limits"); strings.Contains(got, "123456") {
		t.Errorf("the tag of one program is in the next: %s", got)
	}
}

func TestATerminalInside(t *testing.T) {
	b := start(t)
	master, slave, err := b.Pty()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	child, err := b.Spawn(box.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", "tty; test -t 0 && ps -o tty= -p $$; read line; echo got $line"}, Env: []string{"PATH=/usr/bin:/bin"}, Files: [3]*os.File{slave, slave, slave}, Terminal: true})
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := master.WriteString("typed\n"); err != nil {
		t.Fatal(err)
	}
	var out []byte
	buf := make([]byte, 1024)
	for {
		n, err := master.Read(buf)
		out = append(out, buf[:n]...)
		if err != nil {
			break // EIO: nobody holds the other side
		}
	}
	if exit, err := child.Wait(); err != nil || exit.Status.ExitStatus() != 0 {
		t.Errorf("%v, %v", exit, err)
	}
	for _, want := range []string{"/dev/pts/0", "pts/0\r\n", "got typed"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q in %q", want, out)
		}
	}
}
