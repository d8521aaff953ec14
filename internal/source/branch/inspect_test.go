package branch_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
)

func TestInspect(t *testing.T) {
	r := newRig(t)
	repo := newRepo(t)
	head := line(host(t, repo, "rev-parse", "HEAD"))
	host(t, repo, "branch", "other")
	clean, err := r.b.Inspect(context.Background(), repo)
	if err != nil {
		t.Fatal(err)
	}
	if clean.Repo != repo || clean.Dir != "" || clean.Bare || clean.Commit != head || clean.Branch == "" || len(clean.Branches) < 2 || clean.Changed != 0 || clean.Untracked != 0 {
		t.Errorf("a clean repository: %+v", clean)
	}
	write(t, filepath.Join(repo, "new dir", "with\nnewline"), "x", 0o644)
	dirty, err := r.b.Inspect(context.Background(), filepath.Join(repo, "new dir"))
	if err != nil || dirty.Repo != repo || dirty.Dir != "new dir" || dirty.Untracked != 1 || dirty.Changed != 0 {
		t.Errorf("with a file that git does not know: %+v, %v", dirty, err)
	}
	if _, err := r.b.Inspect(context.Background(), t.TempDir()); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("no repository: %v", err)
	}
}

func TestNamesOfAThreadThatHasNotBegun(t *testing.T) {
	r := newRig(t)
	repo := newRepo(t)
	write(t, filepath.Join(repo, "sub", "with\nnewline"), "x", 0o644)
	write(t, filepath.Join(repo, "sub", "built.log"), "x", 0o644)
	write(t, filepath.Join(repo, ".gitignore"), "*.log\n", 0o644)
	has := func(path, ref string, dirty bool, name string, want bool) {
		t.Helper()
		names, err := r.b.Names(context.Background(), path, ref, dirty)
		if err != nil || slices.Contains(names, name) != want {
			t.Errorf("%s at %q, dirty %t: %q is there: %t, %v in %q", path, ref, dirty, name, !want, err, names)
		}
	}
	has(repo, "", false, "sub/with\nnewline", false)
	has(repo, "", true, "sub/with\nnewline", true)
	has(filepath.Join(repo, "sub"), "", true, "with\nnewline", true)
	has(repo, "", true, "sub/built.log", false)
	host(t, repo, "checkout", "-q", "-b", "other")
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "more")
	has(repo, "other", false, "sub/with\nnewline", true)
	has(repo, "HEAD~1", false, "sub/with\nnewline", false)
	for _, ref := range []string{"gone", "--all", "HEAD:sub"} {
		if names, err := r.b.Names(context.Background(), repo, ref, false); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("%q: %q, %v", ref, names, err)
		}
	}
}
