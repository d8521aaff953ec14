package tui

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// place is a directory in which several agents work, with the home that they belong to.
type place struct {
	*testing.T
	home    *home.Home
	dir     string
	threads []string // in the order in which they came
}

func (p *place) thole(args ...string) string {
	p.Helper()
	out, errs, code := p.home.Run(args...)
	if code != 0 {
		p.Fatalf("thole %v: exit %d: %s%s", args, code, out, errs)
	}
	return out
}

// newest is the thread of the directory that was not there before.
func (p *place) newest() string {
	p.Helper()
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(p.thole("--json", "thread", "list", "--dir", p.dir)), &list); err != nil {
		p.Fatal(err)
	}
	for _, th := range list {
		if !slices.Contains(p.threads, th.ID) {
			p.threads = append(p.threads, th.ID)
			return th.ID
		}
	}
	p.Fatalf("no new thread among %+v", list)
	return ""
}

// files compares the directory with names in alphabetical order.
func (p *place) files(want string) {
	p.Helper()
	all, err := os.ReadDir(p.dir)
	if err != nil {
		p.Fatal(err)
	}
	var names []string
	for _, e := range all {
		if e.Name() != ".git" {
			names = append(names, e.Name())
		}
	}
	if got := strings.Join(names, " "); got != want {
		p.Errorf("the directory has %q, want %q", got, want)
	}
}

// idle waits until the server has announced the end of a thread's turn: the screen may
// show its last words before that.
func (p *place) idle(thread string) {
	p.Helper()
	poll.Until(p.T, "the end of the turn", func() bool {
		line, _, _ := strings.Cut(p.thole("thread", "show", thread), "\n")
		return strings.HasSuffix(line, " idle")
	})
}

// diff compares what a thread's diff names.
func (p *place) diff(want, thread string, args ...string) {
	p.Helper()
	out := p.thole(append([]string{"thread", "diff", thread, "--name-only"}, args...)...)
	if got := strings.Join(strings.Fields(out), " "); got != want {
		p.Errorf("diff %s %v has %q, want %q", thread, args, got, want)
	}
}

// commands has the agent of a terminal run a command, which the user allows.
func (s *screen) commands(command, then string) {
	s.t.Helper()
	s.say("sim: escalate " + command + " ;; say " + then + " %tool%")
	s.wait("Yes, proceed")
	s.keys("y")
}

// ended waits for the end of the turn in which the agent said a text, and returns the
// screen from there on.
func (s *screen) ended(said string) string {
	s.t.Helper()
	at := -1
	shown := s.until("the end of the turn", func(shown string) bool {
		at = strings.LastIndex(shown, "• "+said)
		return at >= 0 && strings.LastIndex(shown, "Worked for") > at
	})
	return shown[at:]
}

// Two terminals are open in one directory, and a third agent works there. Each sees what
// the others made. A turn's changes are what happened while it ran, and taking one back
// leaves the files of the others alone.
func TestTwoTerminalsInOneDirectory(t *testing.T) {
	codex := lab.Codex(t)
	p := &place{T: t, home: home.New(t), dir: lab.Open(t)}
	p.home.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex, "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t)}
	p.home.Up()
	git := exec.Command(lab.Git(t), "init", "-q", p.dir)
	git.Env = p.home.Env()
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	terminal := func() *screen {
		s := showIn(t, p.dir, []string{"THOLE_HOME=" + p.home.Dir}, p.home.Binary, "tui", "--codex", checkedCodex(p.T, p.home))
		s.wait("Codex default")
		return s
	}
	left, right := terminal(), terminal()
	left.commands("echo 1 > one", "wrote")
	left.ended("wrote")
	one := p.newest()
	p.idle(one)
	right.commands("echo 2 > two; ls", "beside")
	if shown := right.ended("beside"); !strings.Contains(shown, "one") {
		t.Errorf("the right terminal does not see the left one's file:\n%s", shown)
	}
	two := p.newest()
	p.idle(two)
	out := p.thole("run", "--here", "-C", p.dir, "--profile", "full", "--model", "claude/default", "sim: write three 3\\n ;; run ls ;; say saw %tool%")
	if !strings.Contains(out, "one") || !strings.Contains(out, "two") {
		t.Errorf("claude does not see the others' files:\n%s", out)
	}
	three := p.newest()

	// A turn of the left terminal goes on while the right one has its own.
	left.commands("touch .git/begun; cat three; while [ ! -e .git/go ]; do sleep 0.05; done; echo 4 > four", "waited")
	left.until("the command", func(string) bool { _, err := os.Stat(filepath.Join(p.dir, ".git", "begun")); return err == nil })
	right.commands("echo 5 > five", "meanwhile")
	right.ended("meanwhile")
	p.idle(two)
	if err := os.WriteFile(filepath.Join(p.dir, ".git", "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if shown := left.ended("waited"); !strings.Contains(shown, "Output:\n  3\n") {
		t.Errorf("the left terminal does not see claude's file:\n%s", shown)
	}
	p.idle(one)
	p.files("five four one three two")

	p.diff("one", one, "--turn", "1")
	p.diff("two", two, "--turn", "1")
	p.diff("three", three, "--turn", "1")
	p.diff("five", two, "--turn", "2")
	p.diff("five four", one, "--turn", "2")
	p.diff("five four one three two", one)
	p.diff("five four three two", two)

	p.thole("thread", "undo", two, "2")
	p.files("four one three two")
	p.thole("thread", "undo", one, "1")
	p.files("three two")
	right.commands("ls", "there are")
	if shown := right.ended("there are"); strings.Contains(shown, "one") || !strings.Contains(shown, "three") {
		t.Errorf("the right terminal shows %s", shown)
	}
	p.idle(two)
	p.thole("thread", "undo", two, "1")
	p.files("three")
	p.thole("thread", "undo", three)
	p.files("")
}
