package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
)

const (
	manyFiles = 200_000
	// share is how much of a plain copy's own objects a thread may have.
	share = 100
	// slower is how many times as long as git's own checkout and status both ways may take. A step that looked at every file by itself would take far longer.
	slower = 20
)

// One change in a repository of many files costs what git itself needs to lay and to look at
// them, and no second object store. With THOLE_SOAK.
func TestManyFiles(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("with THOLE_SOAK")
	}
	r, open := newRig(t), lab.Open(t)
	repo := filepath.Join(open, "repo")
	r.many(repo)
	begin := time.Now()
	r.git(repo, "worktree", "add", "-q", filepath.Join(open, "plain"))
	r.git(filepath.Join(open, "plain"), "status")
	plain := time.Since(begin)

	begin = time.Now()
	steps := []string{fmt.Sprintf("git itself %s", plain.Round(time.Millisecond))}
	step := func(name string) {
		now := time.Now()
		steps = append(steps, fmt.Sprintf("%s %s", name, now.Sub(begin).Round(time.Millisecond)))
		begin = now
	}
	all := begin
	thread, _ := r.run(repo, "codex/default", "sim: run echo more >> d7/f7; echo new > d8/new ;; say done")
	step("run")
	if got := r.thole(repo, "thread", "diff", thread, "--name-only"); got != "d7/f7\nd8/new\n" {
		t.Errorf("changed are %q", got)
	}
	step("diff")
	r.thole(repo, "thread", "apply", thread)
	step("apply")
	if got := r.git(repo, "status", "--short"); got != " M d7/f7\n?? d8/new\n" {
		t.Errorf("git says %q", got)
	}
	// In place: every git directory is watched, and the state before a turn and after it kept.
	r.git(repo, "checkout", "-q", "d7/f7")
	if err := os.Remove(filepath.Join(repo, "d8", "new")); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	here, _ := r.run(repo, "codex/default", "--here", "sim: run echo here >> d9/f9 ;; say done")
	step("run --here")
	if got := r.thole(repo, "thread", "diff", here, "--name-only"); got != "d9/f9\n" {
		t.Errorf("in place changed are %q", got)
	}
	step("its diff")
	r.thole(repo, "thread", "undo", here)
	step("its undo")
	took := time.Since(all)
	t.Log(strings.Join(steps, ", "))
	if got := r.git(repo, "status", "--short"); got != "" {
		t.Errorf("after the undo git says %q", got)
	}
	if own, whole := size(t, filepath.Join(r.files(thread), ".git", "objects"))+size(t, filepath.Join(r.Dir, "shelves", thread+".git", "objects")), size(t, filepath.Join(repo, ".git", "objects")); own*share > whole {
		t.Errorf("the thread has %d bytes of objects, the repository %d", own, whole)
	} else {
		t.Logf("the thread has %d bytes of objects, the repository %d", own, whole)
	}
	if took > slower*plain {
		t.Errorf("it took %.1f times what git needs: %s", float64(took)/float64(plain), strings.Join(steps, ", "))
	}
}

// many makes a repository of many small files in one pack.
func (r *rig) many(repo string) {
	r.Helper()
	r.git("/", "init", "-q", "-b", "main", repo)
	r.write(filepath.Join(repo, "README.md"), "# Many\n")
	r.commit(repo)
	var in strings.Builder
	in.WriteString("commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 4\nmany\nfrom refs/heads/main^0\n")
	for n := range manyFiles {
		text := fmt.Sprintf("file %d\n", n)
		fmt.Fprintf(&in, "M 100644 inline d%d/f%d\ndata %d\n%s\n", n%1000, n, len(text), text)
	}
	file := filepath.Join(filepath.Dir(repo), "stream")
	r.write(file, in.String())
	r.tool(repo, "sh", "-c", `git fast-import --quiet < "$1"`, "sh", file)
	r.git(repo, "reset", "-q", "--hard")
}

// size is how many bytes the files below a directory have.
func size(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
