package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where a person stands, and what they say, decides what the agent gets; their own files
// change only where they asked for it.
func TestRun(t *testing.T) {
	r := newRig(t)
	sub := filepath.Join(r.repo, "web")
	head := strings.TrimSpace(r.git("rev-parse", "HEAD"))
	r.write("README.md", "# changed and not committed\n")
	before := r.git("status", "--porcelain")

	got, said := r.run(sub, "Fix the page: sim: write made.txt x ;; run pwd; git status --short; cat index.html ;; say %tool%")
	if got.Outcome != "completed" || got.Source.Kind != "branch" || got.Source.Repo != r.repo || got.Source.Commit != head || got.Source.Dirty || got.Cwd != "/workspace/web" {
		t.Errorf("in a subdirectory: %+v", got)
	}
	if !strings.HasPrefix(got.Source.Branch, "thole/fix-the-page-") || !strings.Contains(said, "/workspace/web\n?? made.txt\n<p>two</p>") {
		t.Errorf("branch %s, the agent said %q", got.Source.Branch, said)
	}
	if now := r.git("status", "--porcelain"); now != before {
		t.Errorf("the user's files changed: %q, was %q", now, before)
	}
	if out, _, _ := r.Run("--json", "thread", "list", "--dir", "/workspace/web"); !strings.Contains(out, got.ThreadID) || !strings.Contains(out, `"name":"Fix the page: sim: write`) {
		t.Errorf("the list by directory: %s", out)
	}

	if got, said = r.run(r.repo, "--dirty", "sim: run git status --short; cat README.md ;; say %tool%"); !got.Source.Dirty || !strings.Contains(said, " M README.md\n# changed") {
		t.Errorf("with --dirty: %+v %q", got, said)
	}
	if got, said = r.run(t.TempDir(), "--repo", r.repo, "--ref", "old", "sim: run cat web/index.html ;; say %tool%"); got.Source.Ref != "old" || !strings.Contains(said, "one") || got.Cwd != "/workspace" {
		t.Errorf("with --ref: %+v %q", got, said)
	}
	if got, said = r.run(r.repo, "--here", "sim: write made-here.txt x ;; run pwd ;; say %tool%"); got.Source.Kind != "here" || got.Cwd != r.repo || strings.TrimSpace(said) != r.repo {
		t.Errorf("with --here: %+v %q", got, said)
	}
	if info, err := os.Stat(filepath.Join(r.repo, "made-here.txt")); err != nil {
		t.Errorf("what was made in place: %v %v", info, err)
	}
	plain := filepath.Join(filepath.Dir(r.repo), "plain") // in no repository
	if err := os.Mkdir(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	got, _ = r.run(plain, "--here", "sim: write made.txt x")
	if out, errs, code := r.in(plain, "thread", "undo", got.ThreadID); code != 0 || out != "The files are what they were before turn 1: 1 file changed, 0 lines added, 1 removed.\ndeleted \"made.txt\"\n" {
		t.Errorf("undo where there is no git: exit %d: %s%s", code, out, errs)
	}
	for _, args := range [][]string{{"--empty", "sim: run ls -A ;; say nothing: %tool%"}, {"-C", t.TempDir(), "sim: run ls -A ;; say nothing: %tool%"}} {
		if got, said = r.run(r.repo, args...); got.Source.Kind != "empty" || got.Cwd != "/workspace" || strings.Contains(said, "README") {
			t.Errorf("%v: %+v %q", args, got, said)
		}
	}
}

// A run ends as its turn did. It says a failure first, and what to do with changes only where
// there are some.
func TestHowARunEnds(t *testing.T) {
	r := newRig(t)
	out, errs, code := r.in(r.repo, "run", "--model", "test/script", "sim: crash")
	if code != 9 || !strings.Contains(errs, "the turn failed") || !strings.Contains(out, "on branch thole/sim-crash-") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	id := strings.Fields(out)[1]
	if !strings.Contains(out, "thole thread send "+id) || strings.Contains(out, "thread diff") || strings.Contains(out, "thread apply") {
		t.Errorf("after a failure without changes: %s", out)
	}
	out, errs, code = r.in(r.repo, "run", "--model", "test/script", "--profile", "full", "sim: write made.txt x ;; crash")
	if code != 9 || !strings.Contains(errs, "the turn failed") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	id = strings.Fields(out)[1]
	for _, next := range []string{"thole thread diff " + id, "thole thread apply " + id, "thole thread send " + id} {
		if !strings.Contains(out, next) {
			t.Errorf("it does not say %q: %s", next, out)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a label":            {[]string{"thread", "start", "--dir", "/x", "--empty"}, 2, "--here -C /x works in that directory"},
		"two sources":        {[]string{"run", "--here", "--empty", "x"}, 2, "here"},
		"a ref of nothing":   {[]string{"run", "--here", "--ref", "main", "x"}, 2, "here"},
		"a ref outside":      {[]string{"run", "-C", "/", "--ref", "main", "x"}, 2, "in no git repository"},
		"no repository":      {[]string{"run", "--repo", "/", "x"}, 3, "in no git repository"},
		"no such repository": {[]string{"run", "--repo", "/no/such", "x"}, 3, "try: correct the path"},
		"no such ref":        {[]string{"run", "--ref", "nope", "x"}, 3, "nope"},
		"no such directory":  {[]string{"run", "-C", "/no/such", "x"}, 2, "is not a directory"},
		"no message":         {[]string{"run", " "}, 2, "empty"},
		"thole's own home":   {[]string{"run", "--here", "-C", r.Dir, "x"}, 6, "thole"},
		"a transport":        {[]string{"run", "--repo", "ext::sh -c id", "x"}, 2, ""},
		"thread start too":   {[]string{"thread", "start", "--repo", "/"}, 3, "in no git repository"},
		"a thread elsewhere": {[]string{"tui", "-C", "/", id}, 2, "-C is for a new one"},
	} {
		out, errs, code := r.in(r.repo, tc.args...)
		if code != tc.code || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit %d, want %d and %q: %s%s", name, code, tc.code, tc.want, out, errs)
		}
	}
}
