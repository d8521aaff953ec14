package sandbox

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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	protocol "github.com/tholehq/thole/protocol/exec"
)

// The attacker is inside a sandbox that Wrap made. Each attack is first shown to
// succeed when its guard is struck from the command line, then to fail as shipped.

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		runtime.LockOSThread()
		if err := attack(os.Args[2], os.Args[3:]...); err != nil {
			fmt.Fprintln(os.Stdout, "failed:", err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, "done")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func attack(name string, args ...string) error {
	switch name {
	case "connect":
		c, err := net.Dial(args[0], args[1])
		if err == nil {
			c.Close()
		}
		return err
	case "vsock":
		_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		return err
	case "trace":
		return unix.PtraceSeize(os.Getppid())
	case "memory": // that of the first process, a byte of which is written again
		maps, err := os.ReadFile("/proc/1/maps")
		if err != nil {
			return err
		}
		var from, to int64
		for line := range strings.Lines(string(maps)) {
			if strings.HasSuffix(line, "[stack]\n") {
				_, err = fmt.Sscanf(line, "%x-%x", &from, &to)
			}
		}
		if err != nil {
			return err
		}
		f, err := os.OpenFile(args[0], os.O_RDWR, 0)
		if err != nil {
			return err
		}
		var b [1]byte
		_, rerr := f.ReadAt(b[:], to-8)
		_, werr := f.WriteAt(b[:], to-8)
		return errors.Join(rerr, werr, f.Close())
	case "again": // for as long as it lives
		for {
			_ = os.MkdirAll(args[0]+"/made", 0o755)
			if err := os.WriteFile(args[1], nil, 0o600); err != nil {
				return err
			}
		}
	case "namespace":
		return exec.Command("unshare", "-U", "true").Run()
	}
	return fmt.Errorf("unknown attack %q", name)
}

// cell is a place with a writable directory, and who is there.
type cell struct {
	*testing.T
	dir, self string
	env       []string // of programs
	wrapper   *Wrapper
}

func newCell(t *testing.T) *cell {
	lab.Bwrap(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &cell{t, dir, self, []string{"PATH=/usr/bin:/bin"}, NewWrapper(nil)}
}

func (c *cell) policy(network string, own []string, entries ...protocol.FSEntry) *Policy {
	c.Helper()
	p, err := Compile(&protocol.Sandbox{WindowsLevel: "disabled", Permissions: protocol.Permissions{Type: protocol.PermissionsManaged, Network: network,
		FileSystem: &protocol.FileSystemPolicy{Type: protocol.FSRestricted, Entries: append(entries, entry("/", protocol.AccessRead), entry(c.dir, protocol.AccessWrite))}}},
		Place{Cwd: c.dir, Own: own})
	if err != nil {
		c.Fatal(err)
	}
	return p
}

// run runs a program in the sandbox; guards are struck out: flags with their
// operands, or mounts on a path.
func (c *cell) run(p *Policy, without []string, argv ...string) (string, bool) {
	c.Helper()
	w, err := c.wrapper.Wrap(p, Program{Path: argv[0], Dir: c.dir, Argv: argv, Env: c.env})
	if err != nil {
		c.Fatal(err)
	}
	cmd := exec.Command(w.Path)
	cmd.Args, cmd.ExtraFiles = strike(w.Argv, without), w.Files
	cmd.Dir, cmd.Env = "/", []string{}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	for _, f := range w.Files {
		f.Close()
	}
	w.Stays.Started()
	err = cmd.Wait()
	w.Stays.End()
	return strings.TrimSpace(out.String()), err == nil
}

// operands of the flags that tests strike out or look into.
var operands = map[string]int{"--seccomp": 1, "--ro-bind": 2, "--bind": 2, "--ro-bind-data": 2, "--tmpfs": 1, "--remount-ro": 1, "--perms": 1, "--args": 1, "--disable-userns": 0}

func strike(argv, without []string) []string {
	var groups [][]string
	at := slices.Index(argv, "--")
	argv, program := argv[:at], argv[at:]
	for i := 0; i < len(argv); i += len(groups[len(groups)-1]) {
		groups = append(groups, argv[i:i+operands[argv[i]]+1])
	}
	for i := len(groups) - 1; i >= 0; i-- {
		g := groups[i]
		last := g[0] == "--perms" && len(groups[i+1]) == 0 // belongs to the next
		if last || slices.Contains(without, g[0]) || len(g) > 1 && slices.Contains(without, g[len(g)-1]) {
			groups[i] = nil
		}
	}
	return append(slices.Concat(groups...), program...)
}

// TestAttacks is the list of what was possible once.
func TestAttacks(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		c := newCell(t)
		door := filepath.Join(lab.Open(t), "door")
		home := filepath.Join(lab.Open(t), "home")
		if err := os.Mkdir(home, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{door, home + "/sock"} {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		own := []string{home, door}
		closed, open := c.policy(protocol.NetworkRestricted, nil), c.policy(protocol.NetworkEnabled, nil)
		hiding := c.policy(protocol.NetworkEnabled, own)
		for _, a := range []struct {
			name    string
			policy  *Policy
			without []string
			argv    []string
		}{
			{"unix socket", closed, []string{"--seccomp"}, []string{c.self, "attack", "connect", "unix", door}},
			{"vsock", closed, []string{"--seccomp"}, []string{c.self, "attack", "vsock"}},
			{"vsock, network", open, []string{"--seccomp"}, []string{c.self, "attack", "vsock"}},
			{"bubblewrap traced", closed, []string{"--seccomp"}, []string{c.self, "attack", "trace"}},
			{"bubblewrap traced, network", open, []string{"--seccomp"}, []string{c.self, "attack", "trace"}},
			{"bubblewrap's memory", closed, []string{"/proc/1"}, []string{c.self, "attack", "memory", "/proc/1/mem"}},
			{"bubblewrap's memory, network", open, []string{"/proc/1"}, []string{c.self, "attack", "memory", "/proc/1/task/1/mem"}},
			{"user namespace by flag", closed, []string{"--seccomp", "--disable-userns"}, []string{c.self, "attack", "namespace"}},
			{"own socket", hiding, own, []string{c.self, "attack", "connect", "unix", door}},
			{"socket in own home", hiding, own, []string{c.self, "attack", "connect", "unix", home + "/sock"}},
			{"own home listed", hiding, own, []string{"/bin/ls", home}},
			{"settings", closed, []string{c.dir + "/.codex"}, []string{"/bin/sh", "-c", "chmod 755 .codex; mkdir -p .codex && echo x > .codex/config.toml && rm -r .codex"}},
			{"a hook", closed, []string{c.dir + "/.git"}, []string{"/bin/sh", "-c", "chmod 755 .git; mkdir -p .git/hooks && echo x > .git/hooks/post-checkout && rm -r .git"}},
			{"skills", open, []string{c.dir + "/.agents"}, []string{"/bin/sh", "-c", "chmod 755 .agents; mkdir -p .agents && echo x > .agents/f && rm -r .agents"}},
			{"keys", open, []string{c.dir + "/.aws"}, []string{"/bin/sh", "-c", "chmod 755 .aws; mkdir -p .aws && echo x > .aws/f && rm -r .aws"}},
			{"settings moved in", closed, []string{c.dir + "/.codex"}, []string{"/bin/sh", "-c", "mkdir made && { rmdir .codex; mv -T made .codex && rm -r .codex; }"}},
		} {
			out, ok := c.run(a.policy, a.without, a.argv...)
			if !ok {
				t.Errorf("%s does not work without its guard, so nothing is proven: %s", a.name, out)
			}
			if out, ok := c.run(a.policy, nil, a.argv...); ok {
				t.Errorf("%s: %s", a.name, out)
			}
			_ = os.RemoveAll(c.dir + "/made")
			if left, err := os.ReadDir(c.dir); err != nil || len(left) > 0 {
				t.Fatalf("%s left %v, %v", a.name, left, err)
			}
		}
		// What the filter leaves: debuggers where there is a network, pairs of sockets.
		if out, ok := c.run(open, nil, "/bin/sh", "-c", "exec 2>&1; echo fine"); !ok || out != "fine" {
			t.Errorf("an ordinary program: %s", out)
		}
	})
}

// TestExistingAndNamed: what is there stays readable; who names a path decides.
func TestExistingAndNamed(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		c := newCell(t)
		if err := os.MkdirAll(c.dir+"/.git/hooks", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.dir+"/.git/config", []byte("kept"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := c.policy(protocol.NetworkRestricted, nil)
		if out, ok := c.run(p, nil, "/bin/cat", ".git/config"); !ok || out != "kept" {
			t.Errorf("read: %s", out)
		}
		if out, ok := c.run(p, nil, "/bin/sh", "-c", "echo x > .git/hooks/h"); ok {
			t.Errorf("a hook was written: %s", out)
		}
		named := c.policy(protocol.NetworkRestricted, nil, entry(c.dir+"/.git", protocol.AccessWrite))
		if out, ok := c.run(named, nil, "/bin/sh", "-c", "echo x > .git/hooks/h"); !ok {
			t.Errorf("the profile allows it: %s", out)
		}
		// Something deeper that is not there holds its first missing parent.
		deep := c.policy(protocol.NetworkRestricted, nil, entry(c.dir+"/a/b/c", protocol.AccessDeny))
		if out, ok := c.run(deep, nil, "/bin/sh", "-c", "mkdir -p a/b/c"); ok {
			t.Errorf("a denied path was made: %s", out)
		}
		if err := os.Symlink("/nowhere", c.dir+"/.codex"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.wrapper.Wrap(c.policy(protocol.NetworkRestricted, nil), Program{Path: "/bin/true", Dir: c.dir, Argv: []string{"true"}}); err == nil {
			t.Error("a link that can be replaced is no protection")
		}
		left, err := os.ReadDir(c.dir)
		if err != nil || len(left) != 2 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// TestEnvironmentIsTheProgramsAlone: what variables ask of the loader is done in the
// sandbox, by the program, and not by bubblewrap before it.
func TestEnvironmentIsTheProgramsAlone(t *testing.T) {
	c := newCell(t)
	out := t.TempDir()
	log := filepath.Join(out, "log")
	logged := func() bool {
		made, err := filepath.Glob(log + "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range made {
			_ = os.Remove(f)
		}
		return len(made) > 0
	}
	c.env = append(c.env, "LD_DEBUG=libs", "LD_DEBUG_OUTPUT="+log, "A=a line\nand another", "EMPTY=")
	p := c.policy(protocol.NetworkRestricted, nil)
	const said = "[libs][a line\nand another][][unset]"
	argv := []string{"/bin/sh", "-c", `printf '[%s][%s][%s][%s]' "$LD_DEBUG" "$A" "${EMPTY-unset}" "${HOME-unset}"`}
	if got, ok := c.run(p, nil, argv...); !ok || !strings.HasSuffix(got, said) {
		t.Errorf("the program's variables: %q", got)
	}
	if logged() {
		t.Error("bubblewrap obeyed them")
	}
	cmd := exec.Command(c.wrapper.bwrap, "--version")
	cmd.Env = c.env
	if _ = cmd.Run(); !logged() {
		t.Skip("this bubblewrap is not linked at run time")
	}
	for _, kv := range []string{"", "A", "=b", "A=b\x00--bind\x00/\x00/"} {
		if _, err := c.wrapper.Wrap(p, Program{Path: "/bin/true", Dir: c.dir, Argv: []string{"true"}, Env: []string{kv}}); err == nil {
			t.Errorf("%q was taken", kv)
		}
	}
}

// TestMovedAway: a program that may write above what is restricted, or above another
// writable directory, does not put something else in its place.
func TestMovedAway(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		c := newCell(t)
		for _, dir := range []string{"/a/b/secret", "/p/q/project"} {
			if err := os.MkdirAll(c.dir+dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		entries := []protocol.FSEntry{entry(c.dir+"/a/b/secret", protocol.AccessDeny), entry(c.dir+"/p/q/project", protocol.AccessWrite)}
		p := c.policy(protocol.NetworkRestricted, nil, entries...)
		for name, script := range map[string]string{
			"a denied directory":   "mv a c || mv a/b a/c",
			"a writable directory": "mv p c || mv p/q p/c",
		} {
			if out, ok := c.run(p, nil, "/bin/sh", "-c", script); ok {
				t.Errorf("%s: %s", name, out)
			}
		}
		if out, ok := c.run(p, nil, "/bin/sh", "-c", "mkdir new && mv new newer && rmdir newer && echo x > a/f && rm a/f"); !ok {
			t.Errorf("what is allowed: %s", out)
		}
	})
}

// TestPlaceholdersStayWhereTheyBelong: a directory that a process with a wider profile
// exchanges for a link, again and again, leads no placeholder out.
func TestPlaceholdersStayWhereTheyBelong(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	project, other := dir+"/project", dir+"/other"
	if err := errors.Join(os.Mkdir(project, 0o755), os.Symlink(out, other)); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, project, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			}
		}
	})
	held := 0
	for i := range 200 {
		s := &Stays{}
		if _, err := s.hold(fmt.Sprintf("%s/.p%d", project, i)); err == nil {
			held++
		}
		s.End()
	}
	close(stop)
	wg.Wait()
	for _, place := range []string{out, project, other} {
		if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
			t.Errorf("%s has %v, %v", place, left, err)
		}
	}
	if held == 0 {
		t.Error("none was held")
	}
}

// TestALockStopsNoStart: a program that may read a placeholder locks it for as long as it
// lives.
func TestALockStopsNoStart(t *testing.T) {
	c := newCell(t)
	if err := unix.Mkdir(c.dir+"/.codex", unix.S_ISVTX|0o555); err != nil {
		t.Fatal(err)
	}
	attacker, err := os.Open(c.dir + "/.codex")
	if err != nil {
		t.Fatal(err)
	}
	defer attacker.Close()
	if err := unix.Flock(int(attacker.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	var late atomic.Bool
	timer := time.AfterFunc(30*time.Second, func() { late.Store(true); _ = unix.Flock(int(attacker.Fd()), unix.LOCK_UN) })
	defer timer.Stop()
	if out, ok := c.run(c.policy(protocol.NetworkRestricted, nil), nil, "/bin/sh", "-c", "mkdir -p .codex/x || echo refused"); !ok || !strings.HasSuffix(out, "refused") {
		t.Error(out)
	}
	if left, err := os.ReadDir(c.dir); late.Load() || err != nil || len(left) > 0 {
		t.Errorf("it waited for the lock: %t; left: %v, %v", late.Load(), left, err)
	}
}

// TestPatternsCover: a pattern hides what it matches however its fixed part is reached, the
// file that a matching link leads to, and nothing twice.
func TestPatternsCover(t *testing.T) {
	c := newCell(t)
	for _, dir := range []string{"/real/keys/deep", "/elsewhere"} {
		if err := os.MkdirAll(c.dir+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"/real/a.pem", "/real/keys/b.pem", "/real/keys/deep/c.pem", "/elsewhere/d", "/real/plain"} {
		if err := os.WriteFile(c.dir+f, []byte("content"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	alias := t.TempDir() + "/alias"
	for name, target := range map[string]string{alias: c.dir + "/real", c.dir + "/real/linked.pem": "../elsewhere/d"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	pattern := func(p string) protocol.FSEntry {
		return protocol.FSEntry{Path: protocol.FSPath{Type: protocol.FSPathGlob, Pattern: p}, Access: protocol.AccessDeny}
	}
	p := c.policy(protocol.NetworkRestricted, nil, pattern(alias+"/**/*.pem"), pattern(alias+"/keys"), entry(c.dir+"/real/keys/deep", protocol.AccessDeny))
	for _, f := range []string{"real/a.pem", "real/keys/b.pem", "real/keys/deep/c.pem", "real/linked.pem", "elsewhere/d"} {
		if out, ok := c.run(p, nil, "/bin/cat", f); ok {
			t.Errorf("%s: %s", f, out)
		}
	}
	if out, ok := c.run(p, nil, "/bin/cat", "real/plain"); !ok || out != "content" {
		t.Errorf("an ordinary file: %s", out)
	}
	for _, f := range []string{"/real/a.pem", "/real/keys/b.pem"} {
		if p.Access(c.dir+f) != None {
			t.Errorf("file calls reach %s", f)
		}
	}
}

// TestPlacesInADeniedDirectory: the more specific entry wins for programs too. Nothing else of
// the directory is shown, and nothing is made there.
func TestPlacesInADeniedDirectory(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		c := newCell(t)
		if err := os.MkdirAll(c.dir+"/no/open/deep", 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"/no/secret", "/no/shown", "/no/open/f"} {
			if err := os.WriteFile(c.dir+f, []byte("content"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p := c.policy(protocol.NetworkRestricted, nil, entry(c.dir+"/no", protocol.AccessDeny), entry(c.dir+"/no/shown", protocol.AccessRead), entry(c.dir+"/no/open", protocol.AccessWrite))
		if out, ok := c.run(p, nil, "/bin/sh", "-c", "cat no/shown no/open/f && echo x > no/open/made"); !ok || out != "contentcontent" {
			t.Errorf("what the entries show: %s", out)
		}
		for _, script := range []string{"cat no/secret", "ls no", "chmod 755 no", "echo x > no/made", "echo x > no/shown", "mkdir no/new", "rmdir no/open/deep && mv no/open no/other"} {
			if out, ok := c.run(p, nil, "/bin/sh", "-c", script); ok {
				t.Errorf("%s: %s", script, out)
			}
		}
	})
}

// TestTheHostsProcesses: whatever a profile lists, a program sees the processes of its
// sandbox and file calls see none.
func TestTheHostsProcesses(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		c := newCell(t)
		environ := fmt.Sprintf("/proc/%d/environ", os.Getpid())
		for _, access := range []string{protocol.AccessRead, protocol.AccessWrite} {
			p := c.policy(protocol.NetworkRestricted, nil, entry("/proc", access))
			if out, ok := c.run(p, nil, "/bin/cat", environ); ok {
				t.Errorf("%s: %s", access, out)
			}
			if out, ok := c.run(p, nil, "/bin/sh", "-c", "test $(cat /proc/self/comm) = cat && ! test -w /proc/sys/kernel/hostname"); !ok {
				t.Errorf("its own: %s", out)
			}
			if p.Access(environ) != None || !p.Denied(environ) || p.Access("/process") == None {
				t.Error("file calls reach the processes out here")
			}
		}
	})
}

// TestNothingIsMadeAtTheEnd: bubblewrap ends before what runs on in the background
// is killed; the guard stays until that is gone. Here nobody kills it in time.
func TestNothingIsMadeAtTheEnd(t *testing.T) {
	c := newCell(t)
	script := c.self + ` attack again .codex running >/dev/null 2>&1 & while ! test -e running; do :; done`
	w, err := c.wrapper.Wrap(c.policy(protocol.NetworkRestricted, nil), Program{Path: "/bin/sh", Dir: c.dir, Argv: []string{"sh", "-c", script}, Env: c.env})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(w.Path)
	cmd.Args, cmd.ExtraFiles, cmd.Dir, cmd.Env = strike(w.Argv, []string{"--die-with-parent"}), w.Files, "/", []string{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range w.Files {
		f.Close()
	}
	w.Stays.Started()
	first, err := unix.Dup(int(w.Stays.end.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(first)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); w.Stays.End() }()
	for range 300 { // it lives and tries
		_ = os.Remove(c.dir + "/running")
		poll.Until(t, "the attacker", func() bool { _, err := os.Stat(c.dir + "/running"); return err == nil })
	}
	if fi, err := os.Lstat(c.dir + "/.codex"); err != nil || !isPlaceholder(fi) {
		t.Errorf("the guard is gone before the attacker: %v, %v", fi, err)
	}
	if err := unix.PidfdSendSignal(first, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	<-ended
	_ = os.Remove(c.dir + "/running")
	if left, err := os.ReadDir(c.dir); err != nil || len(left) > 0 {
		t.Fatalf("left: %v, %v", left, err)
	}
}

// TestPlaceholdersOfMany: the last sandbox removes them, none removes another's,
// and what a killed server left goes with the next.
func TestPlaceholdersOfMany(t *testing.T) {
	c := newCell(t)
	p := c.policy(protocol.NetworkRestricted, nil)
	if err := unix.Mkdir(c.dir+"/.aws", unix.S_ISVTX|0o555); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 15 {
				if out, ok := c.run(c.policy(protocol.NetworkRestricted, nil), nil, "/bin/sh", "-c", "(while :; do mkdir -p .codex/x .aws/x; done) 2>/dev/null & mkdir .codex .aws && echo made"); ok {
					t.Errorf("made: %s", out)
				}
			}
		})
	}
	wg.Wait()
	if left, err := os.ReadDir(c.dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	// What another process put there meanwhile stays.
	w, err := c.wrapper.Wrap(p, Program{Path: "/bin/true", Dir: c.dir, Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range w.Files {
		f.Close()
	}
	if os.Getuid() == 0 {
		if err := os.WriteFile(c.dir+"/.codex/mine", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.Stays.End()
	if fi, err := os.Stat(c.dir + "/.codex"); os.Getuid() == 0 && (err != nil || fi.Mode().Perm() != 0o755 || isPlaceholder(fi)) {
		t.Errorf("somebody's directory: %v, %v", fi, err)
	}
}
