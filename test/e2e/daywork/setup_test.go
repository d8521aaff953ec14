//go:build linux

package daywork

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// A copy of a repository is set up before its first agent, once, whose commits are the
// user's; a person may do it again.
func TestACopyIsSetUp(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	repo := filepath.Join(t.TempDir(), "repo")
	for name, text := range map[string]string{
		filepath.Join(repo, ".thole", "setup"): "echo preparing; echo run >> ~/runs\n",
		filepath.Join(h.Dir, ".gitconfig"):     "[user]\n\tname = A Person\n\temail = person@example.com\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=o", "-c", "user.email=o@example.com", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command(lab.Git(t), args...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	h.Up()
	first, errs, code := h.Run("thread", "start", "--repo", repo, "--model", "test/test", "--profile", "full", "sim: run cat ~/runs; git commit -q --allow-empty -m second; git log --format='%an <%ae>'")
	if code != 0 || !strings.Contains(first, "$ sh .thole/setup\n| preparing\n") || !strings.Contains(first, "| run\n| A Person <person@example.com>\n| o <o@example.com>\n") {
		t.Fatalf("%s%s", first, errs)
	}
	id := strings.Fields(first)[1]
	if again, errs, code := h.Run("thread", "setup", id); code != 0 || !strings.Contains(again, "$ sh .thole/setup\n| preparing\n") {
		t.Errorf("by hand: %s%s", again, errs)
	}
	if next, errs, code := h.Run("thread", "send", id, "sim: run cat ~/runs"); code != 0 || !strings.HasSuffix(strings.TrimSpace(next), "| run\n| run") {
		t.Errorf("the next turn: %s%s", next, errs)
	}
}
