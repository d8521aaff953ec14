package branch_test

import (
	"context"
	"path/filepath"
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
