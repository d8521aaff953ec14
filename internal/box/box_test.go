//go:build linux

package box_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/sandbox/seccomp"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], box.InitArgs) {
		fmt.Fprintln(os.Stderr, box.Init())
		os.Exit(1)
	}
	switch os.Getenv("BOX_TEST") {
	case "intrude":
		intrude(os.Args[1])
		os.Exit(0)
	case "own":
		own()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// program is this test's own binary where everybody may run it.
func program(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		return self
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(lab.Open(t), "program")
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}

func config(bwrap, init string, flags ...string) box.Config {
	b := sandbox.Agents(true).Add(flags...).Kernel().Add("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--tmpfs", "/tmp", "--ro-bind", init, "/run/init", "--dir", "/workspace")
	cfg := box.Config{Path: bwrap, Args: b.Command("/workspace", append([]string{"/run/init"}, box.InitArgs...)...)}
	if os.Getuid() == 0 { // whose agents are other users
		const agent = "1900000001"
		cfg.Path, cfg.Args = "/usr/bin/setpriv", append([]string{"--reuid", agent, "--regid", agent, "--clear-groups", bwrap}, cfg.Args...)
	}
	return cfg
}

func start(t testing.TB) *box.Box {
	t.Helper()
	b, err := box.Start(t.Context(), config(lab.Bwrap(t), program(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// inside runs a program in the box to its end and returns what it printed.
func inside(t testing.TB, b *box.Box, env []string, argv ...string) (string, box.Exit) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	child, err := b.Spawn(box.Command{Path: argv[0], Argv: argv, Env: append([]string{"PATH=/usr/bin:/bin"}, env...), Dir: "/workspace", Files: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := child.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return string(out), exit
}

func script(t testing.TB, b *box.Box, text string) string {
	t.Helper()
	out, _ := inside(t, b, nil, "/bin/sh", "-c", text)
	return out
}

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

// Ports: what listens inside is reached from outside and the other way round, and
// neither sees the ports of the host.
func TestPorts(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := start(t)
		ln, err := b.Listen(0)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		port := uint16(ln.Addr().(*net.TCPAddr).Port)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from outside") })}
		go srv.Serve(ln)
		defer srv.Close()
		if got := script(t, b, fmt.Sprintf("curl -s http://127.0.0.1:%d/", port)); got != "from outside" {
			t.Errorf("inside: %q", got)
		}
		if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
			c.Close()
			t.Error("the port of the box is one of the host")
		}
		conn, err := b.Dial(t.Context(), port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n")
		if got, _ := io.ReadAll(conn); !bytes.HasSuffix(got, []byte("from outside")) {
			t.Errorf("dialled: %q", got)
		}
		host, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		if _, err := b.Dial(t.Context(), uint16(host.Addr().(*net.TCPAddr).Port)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a port of the host: %v", err)
		}
		if _, err := b.Listen(port); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a port that is taken: %v", err)
		}
	})
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
			fmt.Println(what)
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
	fmt.Println("tried")
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

// sleeping lists the processes that sleep a number of seconds which nobody else does.
func sleeping(t testing.TB, seconds string) int {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	n := 0
	for _, f := range files {
		if line, _ := os.ReadFile(f); bytes.Contains(line, []byte("sleep\x00"+seconds+"\x00")) {
			n++
		}
	}
	return n
}

// stubborn starts three programs that do not want to end.
func stubborn(seconds string) string {
	return fmt.Sprintf(`trap '' TERM HUP INT; sleep %[1]s & setsid sleep %[1]s & (setsid sh -c 'trap "" TERM; sleep %[1]s; :' &) ; echo up; sleep %[1]s`, seconds)
}

func unique(n int) string { return strconv.Itoa(700_000 + 10*(os.Getpid()%9999) + n) }

func TestNothingOutlivesTheBox(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := start(t)
		seconds := unique(1)
		r, w, _ := os.Pipe()
		defer r.Close()
		child, err := b.Spawn(box.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", stubborn(seconds)}, Env: []string{"PATH=/usr/bin:/bin"}, Files: [3]*os.File{w, w, w}})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "four that sleep", func() bool { return sleeping(t, seconds) == 4 })
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if n := sleeping(t, seconds); n != 0 {
			t.Errorf("%d outlived the box", n)
		}
		if _, err := child.Wait(); !errors.Is(err, box.ErrGone) {
			t.Errorf("how it ended: %v", err)
		}
		if _, err := b.Spawn(box.Command{Path: "/bin/true", Argv: []string{"true"}, Files: [3]*os.File{os.Stdin, os.Stdin, os.Stdin}}); !errors.Is(err, box.ErrGone) {
			t.Errorf("started after the end: %v", err)
		}
	})
}

// own is an owner that is killed.
func own() {
	b, err := box.Start(context.Background(), config(os.Getenv("BOX_BWRAP"), os.Getenv("BOX_INIT")))
	if err != nil {
		fmt.Println(err)
		return
	}
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if _, err := b.Spawn(box.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", stubborn(os.Getenv("BOX_SECONDS"))}, Env: []string{"PATH=/usr/bin:/bin"}, Files: [3]*os.File{null, null, null}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("up")
	select {}
}

func TestNothingOutlivesTheOwner(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		seconds := unique(2)
		cmd := exec.Command(program(t))
		cmd.Env = []string{"BOX_TEST=own", "BOX_BWRAP=" + lab.Bwrap(t), "BOX_INIT=" + program(t), "BOX_SECONDS=" + seconds}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 3)
		_, _ = io.ReadFull(out, said)
		if string(said) != "up\n" {
			rest, _ := io.ReadAll(out)
			t.Fatalf("%s%s", said, rest)
		}
		poll.Until(t, "four that sleep", func() bool { return sleeping(t, seconds) == 4 })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		poll.Until(t, "their end", func() bool { return sleeping(t, seconds) == 0 })
	})
}

// Orphans inside are collected.
func TestOrphansAreCollected(t *testing.T) {
	b := start(t)
	script(t, b, "for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; true")
	poll.Until(t, "no zombies", func() bool { return script(t, b, "ps -eo stat= | grep -c Z") == "0\n" })
}

// A box that cannot be made says why.
func TestABoxThatCannotBeMade(t *testing.T) {
	cfg := config(lab.Bwrap(t), "/nothing")
	if _, err := box.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "/nothing") {
		t.Error(err)
	}
	if _, err := box.Start(t.Context(), box.Config{Path: "/bin/true"}); err == nil {
		t.Error("a box without an init")
	}
}
