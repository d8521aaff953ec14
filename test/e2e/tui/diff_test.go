package tui

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

// diffs are the threads on which /diff is tried; the rest of the pairs with THOLE_SOAK.
var diffs = []struct {
	agent, source string
	soak          bool
}{
	{agent: "codex", source: "here"}, {agent: "claude", source: "branch"}, {agent: "opencode", source: "here"},
	{agent: "codex", source: "branch", soak: true}, {agent: "claude", source: "here", soak: true}, {agent: "opencode", source: "branch", soak: true},
}

// /diff of the installed TUI shows what git says in the thread's own files, whichever agent
// works there and wherever they are from, and so do the contract and thole thread diff.
func TestDiff(t *testing.T) {
	h := home.New(t)
	codex := lab.Codex(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex, "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	for _, d := range diffs {
		if d.soak && os.Getenv("THOLE_SOAK") == "" {
			continue
		}
		t.Run(d.agent+" "+d.source, func(t *testing.T) {
			repo := repository(t)
			where := []string{"--repo", repo}
			if d.source == "here" {
				where = []string{"--here", "-C", repo}
			}
			out, errs, code := h.Run(append([]string{"thread", "start", "--model", d.agent + "/default", "sim: say made by a script"}, where...)...)
			if code != 0 {
				t.Fatalf("%d %s%s", code, out, errs)
			}
			thread := strings.Fields(out)[1]
			s := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", checkedCodex(t, h), thread)
			s.wait("made by a script")

			c := dial(t, "unix://"+daemon.Socket(h.Dir))
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r, err := c.Resume(ctx, app.ThreadResumeParams{ThreadID: thread, ExcludeTurns: true})
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"README.md": "b25lCnR3bwp0aHJlZQo=", "new.txt": "dW50cmFja2VkCg==", "out.log": "aWdub3JlZAo="} {
				if err := c.Call(ctx, "fs/writeFile", app.FsWriteFileParams{Path: filepath.Join(r.Cwd, name), DataBase64: text}, nil); err != nil {
					t.Fatalf("write %s: %v", name, err)
				}
			}
			s.say("/diff")
			shown := s.wait("D I F F", "README.md", "+two", "new.txt", "+untracked")
			if strings.Contains(shown, "ignored") {
				t.Errorf("an ignored file is shown:\n%s", shown)
			}

			git := func(args ...string) string {
				t.Helper()
				var res app.CommandExecResult
				if err := c.Call(ctx, "command/exec", app.CommandExecParams{Command: append([]string{"git"}, args...), Cwd: &r.Cwd, DisableOutputCap: true}, &res); err != nil || res.ExitCode > 1 || res.Stderr != "" {
					t.Fatalf("git %v: %+v %v", args, res, err)
				}
				return res.Stdout
			}
			got := patches(git("diff") + git("diff", "--no-index", "--", "/dev/null", "new.txt"))
			if len(got) != 2 {
				t.Errorf("the contract's diff is %q", got)
			}
			said, errs, _ := h.Run("thread", "diff", thread)
			if !slices.Equal(patches(said), got) {
				t.Errorf("thole thread diff is %q %s, the contract's %q", patches(said), errs, got)
			}
			if d.source == "here" {
				if host := patches(gitIn(t, repo, "diff") + gitIn(t, repo, "diff", "--no-index", "--", "/dev/null", "new.txt")); !slices.Equal(host, got) {
					t.Errorf("git diff is %q, the contract's %q", host, got)
				}
			}
		})
	}
}

// repository makes one that agents of root, who are other users, can read.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for up := dir; len(up) > len("/tmp"); up = filepath.Dir(up) {
		_ = os.Chmod(up, 0o755)
	}
	for name, text := range map[string]string{"README.md": "one\nthree\n", ".gitignore": "*.log\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, dir, "init", "-q", "-b", "main", ".")
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "-m", "one")
	return dir
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org"}
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: there are differences
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// patches are the files of a patch in order, without the sums that programs cut off at
// different lengths.
func patches(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "diff --git") {
			out = append(out, "")
		}
		if len(out) > 0 && !strings.HasPrefix(line, "index ") {
			out[len(out)-1] += line
		}
	}
	slices.Sort(out)
	return out
}
