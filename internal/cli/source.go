package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/protocol/app"
)

// sourceFlags are where a thread's files come from, as flags say it.
type sourceFlags struct {
	repo, ref, dir     string
	dirty, here, empty bool
}

func (f *sourceFlags) flags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.repo, "repo", "", "repository to copy onto a new branch: a directory in it, or a URL (default: the one you are in)")
	s.StringVar(&f.ref, "ref", "", "branch, tag or commit to begin at (default: its HEAD)")
	s.BoolVar(&f.dirty, "dirty", false, "take uncommitted and untracked files along")
	s.BoolVar(&f.here, "here", false, "work on this directory itself instead of a copy")
	s.BoolVar(&f.empty, "empty", false, "begin without files")
	s.StringVarP(&f.dir, "cd", "C", "", "do as if started in this `DIR`ectory")
	cmd.MarkFlagsMutuallyExclusive("repo", "here", "empty")
	for _, flag := range []string{"ref", "dirty"} {
		cmd.MarkFlagsMutuallyExclusive(flag, "here")
		cmd.MarkFlagsMutuallyExclusive(flag, "empty")
	}
}

// choose makes the choice. Without flags it is a branch of the repository that the user
// is in, and elsewhere nothing.
func (f *sourceFlags) choose(message string) (*app.SourceChoice, error) {
	at, err := standing(f.dir)
	if err != nil {
		return nil, err
	}
	switch {
	case f.here:
		return &app.SourceChoice{Kind: string(thole.SourceHere), Dir: at}, nil
	case f.repo != "":
		repo := f.repo
		local := repo
		if !filepath.IsAbs(local) {
			local = filepath.Join(at, local)
		}
		if _, err := os.Stat(local); err == nil || git.Transport(repo) == "" && !strings.Contains(repo, "://") {
			repo = local
		}
		return f.branch(repo, message), nil
	case !f.empty && inRepository(at):
		return f.branch(at, message), nil
	case f.ref != "" || f.dirty:
		return nil, thole.Errorf(thole.CodeInvalid, "%s is in no git repository", at).WithHint("name one with --repo")
	}
	if !f.empty {
		return nil, nil // the server's default: nothing, but for a demo
	}
	return &app.SourceChoice{Kind: string(thole.SourceEmpty)}, nil
}

func (f *sourceFlags) branch(repo, message string) *app.SourceChoice {
	return &app.SourceChoice{Kind: string(thole.SourceBranch), Repo: repo, Ref: f.ref, Dirty: f.dirty, Name: message}
}

// standing is the directory that the user is in, or names with -C.
func standing(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", thole.Errorf(thole.CodeInvalid, "find the current directory: %w", err)
	}
	if info, err := os.Stat(at); err != nil || !info.IsDir() {
		return "", thole.Errorf(thole.CodeInvalid, "%s is not a directory", at).WithHint("correct -C")
	}
	return at, nil
}

// inRepository reports whether a directory is in the working tree of a repository. Git is
// not asked: it would read the repository's configuration. An empty .git does not count: that is
// how the executors of threads that work here keep agents from making one.
func inRepository(dir string) bool {
	for {
		at := filepath.Join(dir, ".git")
		if info, err := os.Stat(at); err == nil {
			if _, err = os.Lstat(filepath.Join(at, "HEAD")); err == nil || !info.IsDir() {
				return true
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// printSource says where a thread works.
func printSource(w io.Writer, v app.ThreadView) {
	from := v.Files
	if from == nil {
		return
	}
	switch thole.SourceKind(from.Kind) {
	case thole.SourceBranch:
		with := ""
		if from.Dirty {
			with = ", with uncommitted files"
		}
		putf(w, "on branch %s of %s at %s%s\n", from.Branch, from.Repo, short(from.Commit), with)
	case thole.SourceHere:
		putln(w, "in", v.Cwd)
	case thole.SourceEmpty:
		putln(w, "without files; --here works in the directory you are in, --repo on a repository")
	}
}

func short(commit string) string { return commit[:min(len(commit), 12)] }

// printNext says what to do with what a thread made.
func (e *Env) printNext(w io.Writer, v app.ThreadView) {
	id, program := v.Thread.ID, "thole"
	if e.Home != "" {
		program += " --home " + e.Home
	}
	step := func(what, command string) { putf(w, "  %-20s %s %s\n", what, program, command) }
	putln(w)
	if v.Files != nil {
		switch thole.SourceKind(v.Files.Kind) {
		case thole.SourceBranch:
			step("see the changes", "thread diff "+id)
			step("take them over", "thread apply "+id)
			step("or as a branch", "thread pull "+id)
		case thole.SourceHere:
			step("see the changes", "thread diff "+id)
			step("take the turn back", "thread undo "+id)
		default:
			step("copy the files", "workspace export "+id+" DIR")
		}
	}
	step("go on", "thread send "+id+` "…"`)
}
