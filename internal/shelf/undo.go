package shelf

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Undoable is the turn that an undo means: the one that is named, or with 0 the last one
// that changed files. It fails where the state before it is not known.
func (s *Shelf) Undoable(ctx context.Context, th fold.Thread, dir string, turn int) (int, error) {
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return 0, err
	}
	defer done()
	all, err := o.states(ctx)
	if err != nil {
		return 0, err
	}
	turns := all.turns()
	if turn == 0 {
		for i := len(turns) - 1; i >= 0 && turn == 0; i-- {
			if all.changed(turns[i]) {
				turn = turns[i]
			}
		}
		if turn == 0 {
			return 0, thole.Errorf(thole.CodeConflict, "no turn of the thread changed files")
		}
	}
	_, known := all.before(turn)
	if first := firstOf(turns); turn < 1 || turn > th.Turns || !known || turn < first && hasBefore(all, first) {
		return 0, thole.Errorf(thole.CodeNotFound, "the files as they were before turn %d are not known", turn).WithHint("thole thread diff %s --json lists the turns that are", th.ID)
	}
	return turn, nil
}

func firstOf(turns []int) int {
	if len(turns) == 0 {
		return 0
	}
	return turns[0]
}

func hasBefore(all states, turn int) bool {
	_, ok := all[refBefore(turn)]
	return ok
}

// gitlink is the mode of a repository below another.
const gitlink = "160000"

// undoTries is how often an undo begins again because files changed under it.
const undoTries = 3

// Undo puts the files back to what they were before a turn, as part of another one, which
// must not run an agent meanwhile. What they are now is kept first, as the state before
// that turn. Broken off, it can be repeated. It returns what it did, in words.
func (s *Shelf) Undo(ctx context.Context, th fold.Thread, dir string, as, turn int) (string, error) {
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return "", err
	}
	defer done()
	if o.dir == "" {
		return "", thole.Errorf(thole.CodeUnavailable, "the thread's files are not on this machine")
	}
	for try := 1; ; try++ {
		account, err := o.undo(ctx, as, turn)
		if err == nil || try == undoTries || !errors.Is(err, errMoved) {
			return account, err
		}
	}
}

// errMoved says that files changed between a look at them and the next.
var errMoved = errors.New("files changed meanwhile")

func (o *one) undo(ctx context.Context, as, turn int) (string, error) {
	all, err := o.begun(ctx)
	if err != nil {
		return "", err
	}
	to, known := all.before(turn)
	if !known {
		return "", thole.Errorf(thole.CodeNotFound, "the files as they were before turn %d are not known", turn)
	}
	now, left, err := o.now(ctx, all)
	if err != nil {
		return "", err
	}
	notes := each("left as it is: ", left)
	if !hasBefore(all, as) { // else of a try that broke off
		if err := o.keep(ctx, now, refBefore(as)); err != nil {
			return "", err
		}
	}
	if o.th.Files.InPlace() {
		if to.tree, err = o.without(ctx, all, now, as, turn); err != nil {
			return "", err
		}
		to.Commit = to.tree
	}
	d := Diff{From: now, To: to}
	if now.tree != to.tree {
		if err := o.list(ctx, &d, Range{}); err != nil {
			return "", err
		}
		if err := o.put(ctx, now, to); err != nil {
			return "", err
		}
	}
	for _, f := range d.Files {
		if f.Mode == gitlink || f.OldMode == gitlink {
			notes = append(notes, f.Path+" is a repository of its own and was left as it is")
		}
	}
	if note := o.putHead(ctx, all.moved(as, turn), to.head, d.Files); note != "" {
		notes = append(notes, note)
	}
	return account(turn, d, notes), nil
}

// without is the tree of the files without what turns did to them, the last one first.
// What others did since stays: the files are the user's, and another thread may work on
// them.
func (o *one) without(ctx context.Context, all states, now State, as, turn int) (string, error) {
	tree, after := now.tree, State{}
	for n := as - 1; n >= turn; n-- {
		before, known := all[refBefore(n)]
		if !known {
			if _, ran := all[refAfter(n)]; ran {
				return "", thole.Errorf(thole.CodeNotFound, "the files as they were before turn %d were not kept", n).WithHint("put back by hand what it changed")
			}
			continue // no agent ran
		}
		if end, known := all[refAfter(n)]; known {
			after = end
		}
		if after.Commit == "" {
			return "", thole.Errorf(thole.CodeNotFound, "what turn %d left was not kept, so nothing distinguishes it from what came after", n).WithHint("put the files back by hand: thole thread diff %s shows them", o.th.ID)
		}
		if before.tree != after.tree {
			merged, conflicts, err := o.desk.merge(ctx, o.identity(), map[string]string{"merge.renames": "false"}, after.Commit, side{tree, "now"}, side{before.tree, fmt.Sprintf("before turn %d", n)})
			if err != nil {
				return "", err
			}
			if len(conflicts) > 0 {
				return "", changedSince(n, conflicts)
			}
			tree = merged
		}
		after = before
	}
	return tree, nil
}

func changedSince(turn int, conflicts []Conflict) error {
	var names []string
	for i, c := range conflicts {
		if i == maxNamed {
			names = append(names, "…")
			break
		}
		names = append(names, strings.ToValidUTF8(c.Path, "\uFFFD"))
	}
	return thole.Errorf(thole.CodeInvalid, "nothing was put back: what turn %d changed was changed again since, and not by a turn of this thread: %s", turn, strings.Join(names, ", ")).
		WithHint("put these files in order by hand, or move them away; then repeat it")
}

// moved is where turns left the repository, if they alone moved it; else it has no commit.
func (s states) moved(as, turn int) Head {
	head, set := Head{}, false
	for n := turn; n < as; n++ {
		after, known := s[refAfter(n)]
		if !known {
			continue
		}
		if before, known := s[refBefore(n)]; known && set && before.head != head {
			return Head{}
		}
		head, set = after.head, true
	}
	return head
}

// maxNamed is how many files an account names.
const maxNamed = 20

// account says what an undo did.
func account(turn int, d Diff, notes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The files are what they were before turn %d: %s.", turn, d.Summary())
	for i, f := range d.Files {
		if i == maxNamed {
			fmt.Fprintf(&b, "\n… and %d more", d.Total-i)
			break
		}
		fmt.Fprintf(&b, "\n%s %q", f.Kind, f.Path)
	}
	for _, note := range notes {
		b.WriteString("\n" + note)
	}
	return strings.ToValidUTF8(b.String(), "�")
}

// put brings the files from one state to another. git looks at all of them before it
// writes the first.
func (o *one) put(ctx context.Context, from, to State) error {
	start := time.Now()
	_, err := o.desk.look(ctx, git.Cmd{Args: []string{"read-tree", "-m", "-u", from.Commit, to.Commit}, Readable: true, Write: []string{o.dir}})
	var failed *git.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "not uptodate") {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "put files back: %w", err).WithHint("what is in the way has to go; the undo can be repeated")
	}
	return o.desk.writeYoung(ctx, start, nil)
}

// putHead takes the branch of the repository in the files back to where it was, if it is
// where the turns left it, and takes what changed out of its index. It returns what it
// could not do.
func (o *one) putHead(ctx context.Context, from, to Head, changed []FileDiff) string {
	dir, common := o.inFiles()
	if dir == "" {
		return ""
	}
	uid, err := beneath.Owner(common)
	if err != nil {
		return "the repository was left as it is: " + err.Error()
	}
	r := &userRepo{Place: repository.Place{Top: o.dir, Git: dir, Common: common, Objects: append(o.objects(), o.bare), UID: uid}}
	if o.user != nil {
		r.Top = o.user.Top
	}
	now, err := readHead(dir, common)
	if err != nil {
		return "the repository was left as it is: " + err.Error()
	}
	first := to.Commit == "" && to.Branch != "" && now.Commit != ""
	if (to.Commit != "" || first) && now.Commit != to.Commit {
		switch {
		case now.Branch != to.Branch:
			return fmt.Sprintf("the repository was left at %s: it was at %s", short(now.Branch), short(to.Branch))
		case now.Commit != from.Commit:
			return "the branch was left as it is: it was moved by others too"
		}
		name := now.Branch
		if name == "" {
			name = "HEAD"
		}
		args := []string{"update-ref", "--no-deref", "-m", "thole: undo", name, to.Commit, now.Commit}
		if first {
			args = []string{"update-ref", "--no-deref", "-m", "thole: undo", "-d", name, now.Commit}
		}
		if _, err := r.run(ctx, o.cfg.Git, git.Cmd{Args: args, Readable: true, Env: o.identity()}); err != nil {
			return "the branch was left as it is: " + err.Error()
		}
	}
	if to.Commit == "" && !first {
		return ""
	}
	// Entries of the index that say something about these files are now wrong.
	var paths strings.Builder
	for _, f := range changed {
		for _, path := range []string{f.Path, f.Old} {
			if path == "" {
				continue
			}
			rel, err := filepath.Rel(r.Top, filepath.Join(o.dir, path))
			if err != nil {
				return "the repository's index was left as it is: " + err.Error()
			}
			paths.WriteString(rel + "\x00")
		}
	}
	args := []string{"reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul", "HEAD"}
	if now.Commit != to.Commit && !o.th.Files.InPlace() {
		args, paths = []string{"reset", "-q", "HEAD"}, strings.Builder{}
	} else if paths.Len() == 0 {
		return ""
	}
	if first {
		args = slices.DeleteFunc(args, func(a string) bool { return a == "HEAD" }) // there is none
	}
	_, err = r.run(ctx, o.cfg.Git, git.Cmd{Args: append([]string{"--literal-pathspecs"}, args...), Readable: true, Stdin: strings.NewReader(paths.String())})
	if err != nil {
		return "the repository's index was left as it is: " + err.Error()
	}
	return ""
}

func short(ref string) string {
	if ref == "" {
		return "no branch"
	}
	return strings.TrimPrefix(ref, "refs/heads/")
}
