package repository

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// kept waits until the files that a turn left are kept: what others do before that counts
// as the turn's.
func (r *rig) kept(thread string, turn int) {
	r.Helper()
	poll.Until(r.TB, "the state after the turn", func() bool {
		var changes struct{ Turns []struct{ Number int } }
		if err := json.Unmarshal([]byte(r.thole(r.Dir, "--json", "thread", "diff", thread)), &changes); err != nil {
			r.Fatal(err)
		}
		return len(changes.Turns) > 0 && changes.Turns[len(changes.Turns)-1].Number >= turn
	})
}

// Two agents work side by side in a directory of the user. Each sees the other's files,
// and a turn that is taken back takes along what that thread did, nothing of the other's
// and nothing of the user's.
func TestTwoAgentsHere(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(lab.Open(t), "repo")
	r.npmPackage(dir)
	at := func(name string) string { return text(filepath.Join(dir, name)) }
	first, _ := r.run(dir, "claude/default", "--here", "sim: write first one\\n")
	r.kept(first, 1)
	second, _ := r.run(dir, "opencode/default", "--here", "sim: write second two\\n ;; run cat first ;; say %tool%")
	r.kept(second, 1)
	r.write(filepath.Join(dir, "mine"), "of the user\n")
	out := r.thole(dir, "thread", "send", first, "sim: write third three\\n ;; run cat second ;; say saw %tool%")
	if !strings.Contains(out, "saw two") {
		t.Errorf("the first does not see the second's file:\n%s", out)
	}
	r.kept(first, 2)
	for _, c := range []struct{ thread, turn, want string }{{first, "1", "first\n"}, {second, "1", "second\n"}, {first, "2", "third\n"}} {
		if got := r.thole(dir, "thread", "diff", c.thread, "--turn", c.turn, "--name-only"); got != c.want {
			t.Errorf("turn %s of %s changed %q, want %q", c.turn, c.thread, got, c.want)
		}
	}
	for _, out := range []string{"apply", "pull", "merge"} {
		if _, errs, code := r.in(dir, "thread", out, first); code != 4 || !strings.Contains(errs, "works on your own directory") {
			t.Errorf("%s: exit %d: %s", out, code, errs)
		}
	}
	r.thole(dir, "thread", "undo", first, "1")
	if at("first")+at("third") != "" || at("second") != "two\n" || at("mine") != "of the user\n" {
		t.Errorf("after the undo there are %s", r.git(dir, "status", "--short"))
	}
	r.thole(dir, "thread", "undo", second)
	if got := r.git(dir, "status", "--short"); got != "?? mine\n" {
		t.Errorf("after both there are %q", got)
	}
}
