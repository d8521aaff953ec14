//go:build linux

package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// TestThreadDiff measures the diff of a thread whose last turn changed some of many
// files, new ones included, against git diff in the same files, which does not look for
// new ones.
func TestThreadDiff(t *testing.T) {
	n, size := 5_000, 2_000
	if Long() {
		n, size = 50_000, 4_000
	}
	ctx := context.Background()
	repo, files := bigRepo(t, n, size), filepath.Join(t.TempDir(), "files")
	gitRun(t, t.TempDir(), "clone", "-q", "--shared", repo, files)
	out, err := exec.Command(lab.Git(t), "-C", repo, "rev-parse", "HEAD").Output()
	must(t, err)
	th := fold.Thread{ID: thole.NewID[thole.ThreadID](time.Now()), Turns: 1, Files: thole.Source{
		Kind: thole.SourceBranch, Repo: repo, Commit: string(out[:40]), Branch: "thole/bench", Objects: []string{filepath.Join(repo, ".git", "objects")}}}
	bwrap := lab.Bwrap(t)
	s := shelf.New(shelf.Config{Dir: t.TempDir(), Git: &git.Runner{Program: lab.Git(t), Self: lab.Thole(t), Box: func(context.Context) (string, error) { return bwrap, nil }}})
	for i := range 20 {
		must(t, os.WriteFile(filepath.Join(files, fmt.Sprintf("d%02d/e%d/file-%05d", i%20, i%70, i)), []byte("changed\n"), 0o644))
	}
	must(t, s.After(ctx, th, 1, files))
	Case{
		Name: "Diff of a thread", Unit: "s", Peer: "git diff HEAD in the same files", Promise: 1.3, Loose: 12,
		Note: fmt.Sprintf("%d files of %d bytes, 20 of them changed; from the call in the server to the patch's last byte, new files looked for too; starting `thole thread diff` itself is not part of it", n, size),
		Ours: func() float64 {
			start := time.Now()
			must(t, s.Patch(ctx, th, files, shelf.Range{Context: 3}, io.Discard))
			return time.Since(start).Seconds()
		},
		Theirs: func() float64 {
			start := time.Now()
			gitRun(t, files, "diff", "HEAD")
			return time.Since(start).Seconds()
		},
	}.Run(t)
}
