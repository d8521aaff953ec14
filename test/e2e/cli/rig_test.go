//go:build linux

// Package cli uses the command line as a person does: the program as it is built, on real
// terminals, with the three real agents on the scripted model.
package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agents are the models of the real CLIs.
var agents = []string{"codex/default", "claude/default", "opencode/default"}

// rig is a home that is up, with all three CLIs on the scripted model.
type rig struct {
	*testing.T
	*home.Home
	repo string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	lab.Git(t)
	lab.Bwrap(t)
	r := &rig{T: t, Home: home.New(t)}
	r.Vars = []string{
		config.Variable("providers.codex") + "=" + lab.Codex(t), config.Variable("providers.claude") + "=" + lab.Claude(t),
		config.Variable("providers.opencode") + "=" + lab.Opencode(t), "TERM=xterm-256color", "LANG=C.UTF-8",
	}
	r.Up()
	r.repo = r.repository("app")
	return r
}

// of is the rig of a test below.
func (r *rig) of(t *testing.T) *rig {
	below := *r
	below.T = t
	return &below
}

// repository makes one with a file in it.
func (r *rig) repository(name string) string {
	r.Helper()
	dir := filepath.Join(r.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "readme"), []byte("one\n"), 0o644); err != nil {
		r.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", "."}, {"add", "-A"}, {"-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "one"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = dir, r.Env()
		if out, err := git.CombinedOutput(); err != nil {
			r.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// must runs a command that succeeds, in the repository.
func (r *rig) must(args ...string) string {
	r.Helper()
	out, errs, code := r.in(r.repo, args...)
	if code != 0 {
		r.Fatalf("thole %q: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

func (r *rig) in(dir string, args ...string) (stdout, stderr string, code int) {
	r.Helper()
	cmd := r.Command(args...)
	cmd.Dir = dir
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// seat is a person at a terminal.
type seat struct {
	*testing.T
	keys *os.File
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
	read chan struct{} // closed when all it said was read

	mu   sync.Mutex // guards said
	said string     // all that the terminal was sent
	seen int        // how much of it was waited for
}

// sit runs thole on a terminal of its own, in the repository.
func (r *rig) sit(columns uint16, args ...string) *seat {
	r.Helper()
	return r.sitAt(columns, r.Command(args...))
}

// sitAt runs a program on a terminal of its own, in the repository.
func (r *rig) sitAt(columns uint16, cmd *exec.Cmd) *seat {
	r.Helper()
	master, slave, err := process.OpenTerminal(nil, columns, 40)
	if err != nil {
		r.Fatal(err)
	}
	cmd.Dir = r.repo
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	_ = slave.Close()
	s := &seat{T: r.T, keys: master, cmd: cmd, done: make(chan struct{}), read: make(chan struct{})}
	go func() {
		defer close(s.read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.said += string(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { _ = cmd.Wait(); close(s.done) }()
	r.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.done
		_ = master.Close()
		<-s.read
		if r.Failed() {
			r.Logf("the terminal of %q:\n%s", cmd.Args, s.all())
		}
	})
	return s
}

func (s *seat) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

var sequences = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\]2;thole: [^\x07]*\x07|\x07")

// sees waits for a text after what was seen before, without our colours, and returns what is
// before it.
func (s *seat) sees(want string) (before string) {
	s.Helper()
	poll.Until(s.T, "the text "+want, func() bool {
		ended := false
		select {
		case <-s.read: // nothing more comes
			ended = true
		default:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		rest := sequences.ReplaceAllString(s.said[s.seen:], "")
		b, after, ok := strings.Cut(rest, want)
		if ok {
			before, s.seen = b, len(s.said)-lengthIn(s.said[s.seen:], after)
		} else if ended {
			s.Fatalf("it ended without %q", want)
		}
		return ok
	})
	return before
}

// lengthIn is how many bytes at the end of raw show as a text.
func lengthIn(raw, shown string) int {
	for n := len(shown); n <= len(raw); n++ {
		if sequences.ReplaceAllString(raw[len(raw)-n:], "") == shown {
			return n
		}
	}
	return len(raw)
}

func (s *seat) types(keys string) {
	s.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.Fatal(err)
	}
}

// ends waits for the end of the program.
func (s *seat) ends(code int) {
	s.Helper()
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.Fatal("it did not end")
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.Errorf("exit %d, want %d", got, code)
	}
}
