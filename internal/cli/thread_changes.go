package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/shelf"
)

// destination is a directory as flags name it.
type destination struct{ to string }

func (d *destination) flag(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&d.to, "to", "", what+" (default: where the thread's files came from, else the current directory)")
}

// resolve is the directory that was named, "" for none, and the current one.
func (d *destination) resolve() (to, cwd string, err error) {
	if cwd, err = os.Getwd(); err != nil {
		return "", "", thole.Errorf(thole.CodeInvalid, "current directory: %w", err)
	}
	if d.to != "" {
		to, err = filepath.Abs(d.to)
	}
	return to, cwd, err
}

// bring asks for changes to be written where dest says, shows the result, and makes an error
// of what is in the way of it.
func bring[R any](cmd *cobra.Command, env *Env, dest destination, method string, params func(to, cwd string) any, show func(w io.Writer, r R), inWay func(r R) ([]view.Conflict, string)) error {
	to, cwd, err := dest.resolve()
	if err != nil {
		return err
	}
	var r R
	if err := env.ask(cmd.Context(), method, params(to, cwd), &r); err != nil {
		return err
	}
	if err := env.print(r, func(w io.Writer) { show(w, r) }); err != nil {
		return err
	}
	return inTheWay(inWay(r))
}

func newThreadApply(env *Env) *cobra.Command {
	var dest destination
	var check, abort bool
	cmd := &cobra.Command{
		Use: "apply THREAD", Short: "Write a thread's changes into your files, without a commit",
		Long: "Merges what the thread changed into a directory, which may have changes of its own. Where both changed the same lines,\n" +
			"or a file is in the way, it lists the files and writes nothing. The index of your repository stays as it is.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := changes.ApplyParams{Thread: thole.ThreadID(args[0])}
			switch {
			case check:
				p.Mode = shelf.ApplyCheck
			case abort:
				p.Mode = shelf.ApplyAbort
			}
			return bring(cmd, env, dest, changes.MethodApply,
				func(to, cwd string) any { p.To, p.Cwd = to, cwd; return p },
				func(w io.Writer, a view.Applied) { printApplied(w, env.Err, a, p.Mode) },
				func(a view.Applied) ([]view.Conflict, string) { return a.Conflicts, a.Dir })
		},
	}
	dest.flag(cmd, "directory to write to")
	cmd.Flags().BoolVar(&check, "check", false, "say what would happen, and write nothing")
	cmd.Flags().BoolVar(&abort, "abort", false, "put back what an apply that broke off has written")
	exclude(cmd, "check", "abort")
	return cmd
}

func printApplied(w, errw io.Writer, a view.Applied, mode shelf.Mode) {
	t := newTable(w)
	for _, f := range a.Files {
		printChanged(t, f)
	}
	_ = t.Flush()
	if more := a.Total - len(a.Files); more > 0 {
		putf(w, "… and %d more\n", more)
	}
	switch {
	case len(a.Conflicts) > 0:
	case mode == shelf.ApplyAbort:
		is := "are"
		if a.Total == 1 {
			is = "is"
		}
		putf(w, "%s in %s %s as before\n", count(a.Total, "file"), a.Dir, is)
	case a.Done && a.Total == 0:
		putf(w, "%s has all of it already\n", a.Dir)
	case a.Done:
		putf(w, "%s changed in %s\n", count(a.Total, "file"), a.Dir)
	default:
		putf(w, "%s would change in %s; nothing is in the way\n", count(a.Total, "file"), a.Dir)
	}
	printNotes(errw, a.Notes)
}

func printNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		putln(w, "thole:", note)
	}
}

// inTheWay makes an error of conflicts, one line each.
func inTheWay(list []view.Conflict, dir string) error {
	if len(list) == 0 {
		return nil
	}
	text := make([]string, len(list))
	for i, c := range list {
		text[i] = oneLine(strings.Trim(c.Path+": "+c.Why, ": "), 200)
	}
	return thole.Errorf(thole.CodeConflict, "nothing was written to %s, because something is in the way:\n%s", dir, strings.Join(text, "\n")).
		WithHint("move these out of the way or commit them, or look at the thread's side with thole thread diff")
}

func newThreadPull(env *Env) *cobra.Command {
	var dest destination
	var p changes.PullParams
	cmd := &cobra.Command{
		Use: "pull THREAD", Short: "Get a thread's work as a branch of your repository",
		Long: "Puts the thread's branch, thole/NAME, into your repository: the agent's own commits, and one more by you of what it did\n" +
			"not commit. Nothing is checked out. A branch that is there moves forward only.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Thread = thole.ThreadID(args[0])
			return bring(cmd, env, dest, changes.MethodPull,
				func(to, cwd string) any { p.To, p.Cwd = to, cwd; return p },
				func(w io.Writer, got view.Pulled) {
					printPulled(w, got)
					printNotes(env.Err, got.Notes)
				},
				func(view.Pulled) ([]view.Conflict, string) { return nil, "" }) // it only moves a branch
		},
	}
	dest.flag(cmd, "repository")
	cmd.Flags().StringVar(&p.As, "as", "", "another name for the branch")
	cmd.Flags().BoolVar(&p.Force, "force", false, "also where the branch has commits that would be lost")
	return cmd
}

func printPulled(w io.Writer, p view.Pulled) {
	if p.Old == p.Commit {
		putf(w, "branch %s of %s is there already, at %.12s\n", p.Branch, p.Repo, p.Commit)
		return
	}
	putf(w, "branch %s of %s is at %.12s: %s\n", p.Branch, p.Repo, p.Commit, count(p.Commits, "commit"))
}

func newThreadMerge(env *Env) *cobra.Command {
	var dest destination
	var p changes.PullParams
	cmd := &cobra.Command{
		Use: "merge THREAD", Short: "Merge a thread's work into the branch that you have checked out",
		Long: "Pulls the thread's branch and merges it. Where that needs your hand it lists the files and merges nothing; the branch is\n" +
			"there all the same. No hook of the repository runs.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Thread = thole.ThreadID(args[0])
			return bring(cmd, env, dest, changes.MethodMerge,
				func(to, cwd string) any { p.To, p.Cwd = to, cwd; return p },
				func(w io.Writer, m view.Merged) {
					printPulled(w, m.Pulled)
					if m.Done {
						putf(w, "it is merged into %s\n", m.Into)
					}
					printNotes(env.Err, m.Notes)
				},
				func(m view.Merged) ([]view.Conflict, string) { return m.Conflicts, m.Into })
		},
	}
	dest.flag(cmd, "repository")
	cmd.Flags().StringVar(&p.As, "as", "", "another name for the branch")
	return cmd
}

func newThreadPush(env *Env) *cobra.Command {
	var p changes.PushParams
	cmd := &cobra.Command{
		Use: "push THREAD", Short: "Push a thread's work as a branch to the repository's remote",
		Long: "Runs your own git, with your configuration, keys and credential helpers; it may ask you. The branch is the one that pull\n" +
			"would make, and goes to the origin of the repository that the thread's files came from.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Thread = thole.ThreadID(args[0])
			r, err := env.push(cmd.Context(), p, func(string) error { return nil })
			if err != nil {
				return err
			}
			return env.print(r.Pushed, func(w io.Writer) { putf(w, "pushed %s to %s at %.12s\n", r.Branch, r.Remote, r.Commit) })
		},
	}
	cmd.Flags().StringVar(&p.Remote, "remote", "", "address to push to")
	cmd.Flags().StringVar(&p.As, "as", "", "another name for the branch")
	cmd.Flags().BoolVar(&p.Force, "force", false, "also where the branch there has commits that would be lost")
	return cmd
}

// push pushes a thread's branch with the user's own git, unless may has something against
// where it would go.
func (e *Env) push(ctx context.Context, p changes.PushParams, may func(remote string) error) (changes.PushResult, error) {
	var r changes.PushResult
	if err := e.ask(ctx, changes.MethodPush, p, &r); err != nil {
		return r, err
	}
	if err := may(r.Remote); err != nil {
		return r, err
	}
	printNotes(e.Err, r.Notes)
	putf(e.Err, "thole: pushing %s (%s) to %s\n", r.Branch, count(r.Commits, "commit"), r.Remote)
	git := exec.CommandContext(ctx, "git", r.Args...)
	git.Dir, git.Env, git.Stdin, git.Stdout, git.Stderr = r.Dir, ownGit(os.Environ()), e.In, e.rawErr, e.rawErr
	err := git.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && ctx.Err() == nil:
		return r, thole.Errorf(thole.CodeUnavailable, "git did not push").WithHint("see what it said above; it ran in %s", r.Dir)
	case err != nil:
		return r, thole.Errorf(thole.CodeUnavailable, "run git: %w", err).WithHint("install git")
	}
	return r, nil
}

// ownGit is an environment without what would send git to another repository, as a hook
// of git has it.
func ownGit(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_GRAFT_FILE":
			return true
		}
		return false
	})
}

func newThreadUndo(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "undo THREAD [TURN]", Short: "Put a thread's files back to what they were before a turn",
		Long: "Without a number it is the last turn that changed files. Later turns' changes go too. What the files are now is kept, so that\n" +
			"an undo can be undone. A branch that the agent moved goes back; files that git ignores and repositories below stay. The\n" +
			"agent hears of it with the next message.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := changes.UndoParams{Thread: thole.ThreadID(args[0])}
			if len(args) == 2 {
				n, err := strconv.Atoi(args[1])
				if err != nil || n < 1 {
					return thole.Errorf(thole.CodeInvalid, "%q is not the number of a turn", args[1]).WithHint("thole thread diff %s --json lists turns", args[0])
				}
				p.Turn = n
			}
			var u view.Undone
			if err := env.ask(cmd.Context(), changes.MethodUndo, p, &u); err != nil {
				return err
			}
			var r changes.UndoneResult
			if err := env.ask(cmd.Context(), changes.MethodUndone, changes.UndoneParams{Thread: p.Thread, Turn: thole.TurnID(u.RunID)}, &r); err != nil {
				return err
			}
			return env.print(struct {
				view.Undone
				changes.UndoneResult
			}{u, r}, func(w io.Writer) {
				for line := range strings.SplitSeq(r.Text, "\n") { // names of files in it are quoted
					putln(w, line)
				}
			})
		},
	}
}
