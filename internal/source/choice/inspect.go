package choice

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/platform/view"
)

const (
	// maxBranches bounds the branches that are listed, maxStatus what is read of a status.
	maxBranches = 500
	maxStatus   = 8 << 20
	inspectTime = 30 * time.Second
)

// Inspect looks into a repository of this machine, in a box: its branches, where its HEAD
// is, and how many files have changes that are not committed.
func (s *Service) Inspect(ctx context.Context, path string) (view.Repository, error) {
	if git.Transport(path) != "" {
		return view.Repository{}, thole.Errorf(thole.CodeUnsupported, "branches of another machine's repository are not listed").WithHint("name the branch as ref")
	}
	at, err := s.openable(path)
	if err != nil {
		return view.Repository{}, err
	}
	top := find(at)
	if top == "" {
		return view.Repository{}, thole.Errorf(thole.CodeNotFound, "%s is in no git repository", path).WithHint("git init makes one; source here works without")
	}
	if s.hidden(top) {
		return view.Repository{}, thole.Errorf(thole.CodeForbidden, "%s is not shown: keys or thole's own files are there", top)
	}
	dirs, bare, err := s.parts(top)
	if err != nil {
		return view.Repository{}, err
	}
	out := view.Repository{Repo: top, Bare: bare, Branches: []view.BranchRef{}}
	if rel, err := filepath.Rel(top, at); err == nil && rel != "." {
		out.Dir = rel
	}
	run := func(limit int64, args ...string) ([]byte, error) {
		return s.cfg.Git.Run(ctx, git.Cmd{Dir: top, Args: args, Show: dirs, UID: ownerOf(top), Limit: limit, Timeout: inspectTime})
	}
	if _, err := run(0, "rev-parse", "--git-dir"); err != nil {
		return out, thole.Errorf(thole.CodeInvalid, "%s cannot be read as a git repository: %w", top, err)
	}
	if b, err := run(0, "symbolic-ref", "--quiet", "--short", "HEAD"); err == nil {
		out.Branch = strings.TrimSpace(string(b))
	}
	if b, err := run(0, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err == nil {
		out.Commit = strings.TrimSpace(string(b))
	}
	b, err := run(maxStatus, "for-each-ref", "--count=501", "--sort=-committerdate", "--format=%(objectname) %(refname:short)", "refs/heads")
	if err != nil {
		return out, thole.Errorf(thole.CodeUnavailable, "list branches of %s: %w", top, err)
	}
	for line := range strings.Lines(string(b)) {
		commit, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			continue
		}
		if len(out.Branches) == maxBranches {
			out.Truncated = true
			break
		}
		out.Branches = append(out.Branches, view.BranchRef{Name: name, Commit: commit})
	}
	if out.Bare {
		return out, nil
	}
	b, err = run(maxStatus, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
	switch {
	case errors.Is(err, git.ErrTooLong), errors.Is(err, context.DeadlineExceeded):
		out.Truncated = true
	case err != nil:
		return out, thole.Errorf(thole.CodeUnavailable, "read the state of %s: %w", top, err)
	}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		switch {
		case len(entry) < 4:
		case bytes.HasPrefix(entry, []byte("??")):
			out.Untracked++
		default:
			out.Changed++
		}
	}
	return out, nil
}

// find walks up to the top of the repository that a directory is in.
func find(dir string) string {
	for {
		if isRepository(dir) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// parts are the directories that git reads of a repository: its top, and where the .git
// file of a worktree or submodule and the alternates lead.
func (s *Service) parts(top string) (dirs []string, bare bool, err error) {
	gitDir := filepath.Join(top, ".git")
	info, err := os.Lstat(gitDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		gitDir, bare = top, true
	case err != nil:
		return nil, false, unreadable(gitDir, err)
	case !info.IsDir():
		to, ok := strings.CutPrefix(readName(gitDir), "gitdir: ")
		if !ok {
			return nil, false, thole.Errorf(thole.CodeInvalid, "%s is neither a directory nor a file that names one", gitDir)
		}
		gitDir = from(top, to)
	}
	dirs = []string{top, gitDir}
	common := gitDir
	if to := readName(filepath.Join(gitDir, "commondir")); to != "" {
		common = from(gitDir, to)
		dirs = append(dirs, common)
	}
	objects := filepath.Join(common, "objects")
	for line := range strings.Lines(readText(filepath.Join(objects, "info", "alternates"))) {
		if to := strings.TrimSpace(line); to != "" && !strings.HasPrefix(to, "#") {
			dirs = append(dirs, from(objects, to))
		}
	}
	for _, d := range dirs {
		if real, err := filepath.EvalSymlinks(d); err != nil || s.hidden(real) {
			return nil, bare, thole.Errorf(thole.CodeForbidden, "repository %s refers to %s, which is not shown", top, d)
		}
	}
	return dirs, bare, nil
}

func from(dir, to string) string {
	if filepath.IsAbs(to) {
		return filepath.Clean(to)
	}
	return filepath.Join(dir, to)
}

// readText is the beginning of a regular file, "" for anything else.
func readText(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	return string(b)
}

func readName(path string) string { return strings.TrimSuffix(readText(path), "\n") }

// ownerOf is whom git runs as: the owner of the files.
func ownerOf(path string) int {
	if info, err := os.Stat(path); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(st.Uid)
		}
	}
	return 0
}
