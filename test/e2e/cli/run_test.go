//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A person has an agent work: asked on the terminal, and shown at the end what it took, what it
// changed and what to type next.
func TestAPersonRunsAnAgent(t *testing.T) {
	r := newRig(t)
	for _, model := range agents {
		t.Run(strings.TrimSuffix(model, "/default"), func(t *testing.T) {
			r := r.of(t)
			name := strings.TrimSuffix(model, "/default")
			s := r.sit(100, "run", "--model", model, "--profile", "ask", "Say hello sim: escalate touch made ;; say it is made %tool%")
			s.sees("thread ")
			id := strings.TrimSpace(s.sees("on branch"))
			s.sees("? " + name + " wants to run a command")
			s.sees("touch made")
			s.sees("allow? y/")
			s.types("maybe\n")
			s.sees("not an answer: maybe")
			s.sees("allow? y/")
			s.types("y\n")
			s.sees("allowed")
			s.sees("it is made")
			s.sees("done in ")
			if line := s.sees("\n"); !regexp.MustCompile(`\d+ tokens in, \d+ out.* · 1 file changed, \+0 -0`).MatchString(line) {
				t.Errorf("the summary is %q", line)
			}
			s.sees("made")
			s.sees("thole thread diff " + id)
			s.sees("thole thread apply " + id)
			s.ends(0)
			if !strings.Contains(s.all(), "\x1b[") || !strings.ContainsAny(s.all(), "⠋⠙⠹⠸") {
				t.Error("no colours, or nothing moved while it waited")
			}
		})
	}
}

// A file goes with a message: the agent finds it in its workspace, and it is no change of the thread's.
func TestAFileGoesWithAMessage(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "numbers of today.csv")
	if err := os.WriteFile(file, []byte("from-the-user\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, model := range agents {
		t.Run(strings.TrimSuffix(model, "/default"), func(t *testing.T) {
			r := r.of(t)
			out := r.must("run", "--model", model, "--profile", "full", "--file", file, "--json", "sim: run cat '.thole/files/numbers of today.csv' ;; say read %tool%")
			if !regexp.MustCompile(`"text":"read [^"]*from-the-user`).MatchString(out) || !strings.Contains(out, "[file numbers of today.csv]") {
				t.Errorf("the agent did not read it: %s", out[max(0, len(out)-2000):])
			}
			id := regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindStringSubmatch(out)[1]
			if diff := r.must("thread", "diff", id); strings.Contains(diff, "numbers") {
				t.Errorf("it is among the changes: %s", diff)
			}
			if again := r.must("thread", "send", id, "--file", file, "sim: run ls .thole/files ;; say %tool%"); strings.Contains(again, "numbers of today-2.csv") {
				t.Errorf("the same file is there twice: %s", again)
			}
		})
	}
	if _, errs, code := r.in(r.repo, "run", "--file", "/nowhere", "hello"); code != 2 || !strings.Contains(errs, "--file /nowhere") {
		t.Errorf("a file that is not there: %d, %s", code, errs)
	}
}
