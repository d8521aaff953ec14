package branch

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/platform/view"
)

const (
	// maxBranches bounds the branches that Inspect lists, maxStatus what it reads of a status
	// and inspectTime how long it counts changes.
	maxBranches = 500
	maxStatus   = 8 << 20
	inspectTime = 20 * time.Second
)

// Inspect looks into the repository of this machine that a directory is in: its branches,
// where its HEAD is, and how many files have changes that are not committed.
func (b *Branches) Inspect(ctx context.Context, path string) (view.Repository, error) {
	at, err := find(path)
	if err != nil {
		return view.Repository{}, err
	}
	if err := b.allowed(at); err != nil {
		return view.Repository{}, err
	}
	out := view.Repository{Repo: at.Name(), Dir: at.below(), Bare: at.Top == "", Branches: []view.BranchRef{}}
	if head, err := b.run(ctx, at, git.Cmd{Args: []string{"symbolic-ref", "--quiet", "--short", "HEAD"}}); err == nil {
		out.Branch = strings.TrimSpace(string(head))
	}
	if head, err := b.run(ctx, at, git.Cmd{Args: []string{"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}}); err == nil {
		out.Commit = strings.TrimSpace(string(head))
	}
	list, err := b.run(ctx, at, git.Cmd{Args: []string{"for-each-ref", "--count=" + strconv.Itoa(maxBranches+1), "--sort=-committerdate", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads"}, Limit: maxStatus})
	if err != nil {
		return out, unusable(at, err)
	}
	for line := range strings.Lines(string(list)) {
		commit, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if out.Truncated = len(out.Branches) == maxBranches; !out.Truncated {
			out.Branches = append(out.Branches, view.BranchRef{Name: name, Commit: commit})
		}
	}
	if out.Bare {
		return out, nil
	}
	return out, b.count(ctx, at, &out)
}

// count counts uncommitted changes. A repository in which that takes too long, or in which
// there are too many, has some.
func (b *Branches) count(ctx context.Context, at userRepo, out *view.Repository) error {
	state, err := b.run(ctx, at, git.Cmd{
		Dir: at.Top, Env: map[string]string{"GIT_WORK_TREE": at.Top}, Limit: maxStatus, Timeout: inspectTime,
		Args: []string{"status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all"},
	})
	switch {
	case errors.Is(err, git.ErrTooLong), errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		out.Truncated = true
	case err != nil:
		return unusable(at, err)
	}
	for entry := range bytes.SplitSeq(state, []byte{0}) {
		switch {
		case len(entry) < 4:
		case bytes.HasPrefix(entry, []byte("??")):
			out.Untracked++
		default:
			out.Changed++
		}
	}
	return nil
}
