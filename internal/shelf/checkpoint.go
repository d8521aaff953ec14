package shelf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Before keeps the files as a turn finds them, where nothing else will know that state:
// the files are the user's own, or they have no shelf yet.
func (s *Shelf) Before(ctx context.Context, th fold.Thread, turn int, dir string) error {
	if s.has(th.ID) && !th.Files.InPlace() || s.needsNone(th, dir) {
		return nil
	}
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return err
	}
	defer done()
	all, err := o.states(ctx)
	if err != nil {
		return err
	}
	_, begun := all[refBase]
	if _, ok := all[refBefore(turn)]; ok || begun && !th.Files.InPlace() {
		return nil // of an earlier try, before the agent had begun
	}
	st, _, err := o.take(ctx, all)
	if err != nil {
		return err
	}
	if begun {
		return o.keep(ctx, st, refBefore(turn))
	}
	return o.keep(ctx, st, refBefore(turn), refBase)
}

// After keeps the files as a turn left them.
func (s *Shelf) After(ctx context.Context, th fold.Thread, turn int, dir string) error {
	if s.needsNone(th, dir) {
		return nil
	}
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return err
	}
	defer done()
	all, err := o.begun(ctx)
	if err != nil {
		return err
	}
	st, _, err := o.take(ctx, all)
	if err != nil {
		return err
	}
	if !s.has(th.ID) {
		if err := o.keep(ctx, all[refBase], refBase); err != nil {
			return err
		}
	}
	if err := o.keep(ctx, st, refAfter(turn)); err != nil {
		return err
	}
	o.tidy()
	return nil
}

// needsNone reports whether there is nothing to keep: the files are on another machine, or
// there is no shelf and no file.
func (s *Shelf) needsNone(th fold.Thread, dir string) bool {
	return dir == "" && !th.Files.InPlace() || !s.has(th.ID) && !th.Files.InPlace() && th.Files.Kind != thole.SourceBranch && isEmpty(dir)
}

// isEmpty reports whether a directory certainly has no files.
func isEmpty(dir string) bool {
	d, err := beneath.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Names()
	return err == nil && (len(names) == 0 || len(names) == 1 && names[0] == dataDir)
}

// begun is the states of a shelf that has a beginning. Where nobody kept one, it is an empty
// one, or, where the files are the user's, what there is now: they were there before the
// thread. That one is not kept here: who only looks at a thread of an earlier version must
// not have the next turn believe that what it finds is known.
func (o *one) begun(ctx context.Context) (states, error) {
	all, err := o.states(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := all[refBase]; ok {
		return all, nil
	}
	var st State
	if o.th.Files.InPlace() {
		st, _, err = o.take(ctx, all)
	} else {
		st, err = o.nothing(ctx)
	}
	if err != nil {
		return nil, err
	}
	all[refBase] = st
	return all, nil
}

// take makes a checkpoint of the files as they are, and names what it left out. Where
// there are no files now, the last one has them.
func (o *one) take(ctx context.Context, all states) (State, []string, error) {
	last, known := all.last()
	if o.dir == "" {
		if !known {
			return last, nil, thole.Errorf(thole.CodeNotFound, "the thread has no files yet").WithHint("a turn makes some")
		}
		return last, nil, nil
	}
	if now, ok := all[refNow]; ok {
		last, known = now, true // nearer
	}
	if !known {
		var err error
		if last, err = o.userHead(ctx); err != nil {
			return last, nil, err
		}
	}
	tree, left, err := o.tree(ctx, last)
	if err != nil && ctx.Err() == nil {
		// What stands on the desk may be damaged: once more without it.
		if err := o.desk.clear(); err != nil {
			return last, nil, err
		}
		tree, left, err = o.tree(ctx, last)
	}
	if err != nil {
		return last, nil, fmt.Errorf("look at the files: %w", err)
	}
	head, note := o.head(ctx, last)
	if note != "" {
		left = append(left, note)
	}
	if tree == last.tree && head == last.head {
		return last, left, nil
	}
	st, err := o.record(ctx, tree, head)
	if err == nil {
		err = o.desk.setHead(st.Commit)
	}
	return st, left, err
}

// tree brings the tree of the files onto the shelf.
func (o *one) tree(ctx context.Context, last State) (tree string, left []string, err error) {
	if err := o.desk.lay(last.Commit, o.sha256()); err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, o.desk.sweep()) }()
	tree, left, err = o.desk.scan(ctx, last.Commit, last.tree)
	if err == nil && tree != last.tree {
		// Named by itself too: git subtracts a commit's tree only from commits.
		err = o.bring(ctx, tree, []string{last.Commit, last.tree}, nil)
	}
	return tree, append(left, o.desk.passedOver()...), err
}

// userHead is what the user's repository is at, from which the first checkpoint of files
// in place begins. It is kept from being collected there, because the shelf refers to it.
func (o *one) userHead(ctx context.Context) (State, error) {
	if o.user == nil {
		return State{}, nil
	}
	head, err := o.user.Head()
	if err != nil || head.Commit == "" {
		return State{}, nil //nolint:nilerr // then the first checkpoint has everything
	}
	rel, err := filepath.Rel(o.user.Top, o.dir)
	if err != nil || !isFolder(o.user.Common, "objects") {
		return State{}, err
	}
	if err := replace(filepath.Join(o.bare, borrowed), filepath.Join(o.user.Common, "objects")+"\n"); err != nil {
		return State{}, err
	}
	if err := errors.Join(o.borrow(), o.sit(ctx)); err != nil {
		return State{}, err
	}
	tree, err := o.line(ctx, "rev-parse", "--verify", "-q", head.Commit+":"+strings.TrimPrefix(filepath.ToSlash(rel), "."))
	if err != nil {
		return State{}, nil //nolint:nilerr // likewise
	}
	if err := o.pin(ctx, head.Commit); err != nil {
		return State{}, err
	}
	return o.record(ctx, tree, Head{})
}

// head is what the repository in the files is at, with its commits on the shelf. What
// cannot be brought there is left out, and said.
func (o *one) head(ctx context.Context, last State) (Head, string) {
	dir, common := o.inFiles()
	if dir == "" {
		return Head{}, ""
	}
	head, err := readHead(dir, common)
	if err != nil || head.Commit == "" {
		return Head{Branch: head.Branch}, ""
	}
	if head.Commit == last.head.Commit {
		return head, ""
	}
	if _, err := o.line(ctx, "cat-file", "-e", head.Commit+"^{tree}"); err == nil {
		return head, ""
	}
	if !isFolder(common, "objects") {
		return Head{Branch: head.Branch}, "the repository's commits: its objects are elsewhere"
	}
	if err := o.bring(ctx, head.Commit, []string{last.Commit, last.head.Commit, o.th.Files.Commit}, []string{filepath.Join(common, "objects")}); err != nil {
		return Head{Branch: head.Branch}, "the repository's commits: " + err.Error()
	}
	return head, ""
}

// inFiles are the directories of git of the repository in the files, "" for none.
func (o *one) inFiles() (dir, common string) {
	switch {
	case o.user != nil:
		return o.user.Git, o.user.Common
	case isFolder(o.dir, ".git"):
		// An empty one keeps the name for as long as an executor works in a user's directory.
		if dir = filepath.Join(o.dir, ".git"); firstLine(dir, "HEAD") != "" {
			return dir, dir
		}
	}
	return "", ""
}

// isFolder reports whether a name in a directory is a directory itself, and no link to one.
func isFolder(dir, name string) bool {
	st, err := os.Lstat(filepath.Join(dir, name))
	return err == nil && st.IsDir()
}

// maxPack bounds what leaves a box at once.
const maxPack = 8 << 30

// bring moves what a commit or tree has, besides what the shelf has already, from the
// desk to the shelf. more are directories of objects that the agent writes.
func (o *one) bring(ctx context.Context, id string, have, more []string) error {
	in := id + "\n"
	for _, h := range have {
		if h != "" {
			in += "^" + h + "\n"
		}
	}
	from := o.desk
	from.objects, from.show = append(from.objects[:len(from.objects):len(from.objects)], more...), append(from.show[:len(from.show):len(from.show)], more...)
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := from.look(ctx, git.Cmd{Args: []string{"pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "-q"}, Stdin: strings.NewReader(in), Stdout: w, Limit: maxPack})
		w.CloseWithError(err)
		packed <- err
	}()
	err := o.unpack(ctx, r)
	r.CloseWithError(errors.New("the pack was refused"))
	if failed := <-packed; errors.As(failed, new(*git.Error)) || err == nil {
		return failed
	}
	return err
}

// unpack reads a pack onto the shelf. git checks each object, and that what it refers to
// is there.
func (o *one) unpack(ctx context.Context, pack io.Reader) error {
	args, pack, err := unpackArgs(pack)
	if err != nil {
		return err
	}
	_, err = o.own(ctx, git.Cmd{Args: args, Stdin: pack, Timeout: lookTime})
	if errors.As(err, new(*git.Error)) {
		return thole.Errorf(thole.CodeInvalid, "git's check refuses what is in the files: %w", err).WithHint("look for a .gitmodules that is not as it should be")
	}
	return err
}

// pin keeps a commit of the user's repository from being collected there.
func (o *one) pin(ctx context.Context, commit string) error {
	if err := replace(filepath.Join(o.bare, "pinned"), o.user.Common+"\n"); err != nil {
		return err
	}
	_, err := o.user.run(ctx, o.cfg.Git, git.Cmd{Args: []string{"update-ref", pinned(o.th.ID), commit}})
	return err
}

func pinned(id thole.ThreadID) string { return "refs/thole/base/" + string(id) }

// unpin takes back what pin wrote, if its repository is still there.
func (s *Shelf) unpin(ctx context.Context, id thole.ThreadID) error {
	dir := firstLine(s.path(id), "pinned")
	if trees := filepath.Dir(dir); filepath.Base(trees) == "worktrees" {
		dir = filepath.Dir(trees) // an earlier version named the git directory of a linked work tree
	}
	r, err := findRepository(dir)
	if err != nil || r.Common != dir {
		return nil //nolint:nilerr // another one is not ours to change
	}
	_, err = r.run(ctx, s.cfg.Git, git.Cmd{Args: []string{"update-ref", "-d", pinned(id)}})
	return err
}
