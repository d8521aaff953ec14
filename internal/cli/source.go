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
	exclude(cmd, "repo", "here", "empty")
	for _, flag := range []string{"ref", "dirty"} {
		exclude(cmd, flag, "here")
		exclude(cmd, flag, "empty")
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
		if _, err := os.Stat(local); err == nil || git.Transport(repo) == "" && !strings.Contains(repo, "://") && !strings.Contains(repo, "::") {
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

// chooseAway refuses directories of this machine for a team server, which does not see them;
// without flags its threads begin without files.
func (e *Env) chooseAway(f *sourceFlags) error {
	s, err := e.server()
	if err != nil || s == nil {
		return err
	}
	if f.here || f.dirty || f.dir != "" || f.repo != "" && git.Transport(f.repo) == "" && !strings.Contains(f.repo, "://") {
		return onlyOnServer("a directory of this machine", "name a repository by its URL with --repo, or begin with --empty")
	}
	f.empty = f.repo == ""
	return nil
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

// inRepository reports whether a directory is in the working tree of a repository, or in a
// bare one. Git is not asked: it would read the repository's configuration. An empty .git does
// not count: that is how the executors of threads that work here keep agents from making one.
func inRepository(dir string) bool {
	for {
		at := filepath.Join(dir, ".git")
		if info, err := os.Stat(at); err == nil {
			if _, err = os.Lstat(filepath.Join(at, "HEAD")); err == nil || !info.IsDir() {
				return true
			}
		}
		if isBare(dir) {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// isBare reports whether a directory looks like a bare repository.
func isBare(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	info, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil && info.Mode().IsRegular()
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
		if len(from.Submodules) > 0 {
			putf(w, "submodules are empty there: %s (git submodule update --init fetches them, where the agent can reach them)\n", listed(from.Submodules))
		}
		if len(from.LFS) > 0 {
			putf(w, "Git LFS content is not there, files are pointers: %s\n", listed(from.LFS))
		}
		for _, left := range from.LeftOut {
			putf(w, "left out: %s\n", oneLine(left, 200))
		}
	case thole.SourceHere:
		putln(w, "in", v.Cwd)
	case thole.SourceEmpty:
		putln(w, "without files; --here works in the directory you are in, --repo on a repository")
	}
}

// listed is a list of names that a repository chose, on one line.
func listed(names []string) string { return oneLine(strings.Join(names, ", "), 200) }

func short(commit string) string { return commit[:min(len(commit), 12)] }

// printNext says what to do with what a thread made: changed files, or -1 where that is not
// known.
func (e *Env) printNext(w io.Writer, v app.ThreadView, changed int) {
	id, program := v.Thread.ID, "thole"
	if e.Home != "" {
		program += " --home " + e.Home
	}
	step := func(what, command string) { putf(w, "  %-20s %s %s\n", what, program, command) }
	putln(w)
	if changed != 0 {
		step("see the changes", "thread diff "+id)
	}
	if v.Files != nil && changed > 0 {
		switch thole.SourceKind(v.Files.Kind) {
		case thole.SourceBranch:
			step("take them over", "thread apply "+id)
			step("or as a branch", "thread pull "+id)
		case thole.SourceHere:
			step("take the turn back", "thread undo "+id)
		default:
			step("copy the files", "workspace export "+id+" DIR")
		}
	}
	step("go on", "thread send "+id+` "…"`)
}
