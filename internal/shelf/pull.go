package shelf

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/git"
)

// Pulled is a branch that a repository of the user has now.
type Pulled struct {
	Repo, Branch, Commit string
	Old                  string // what the branch was at, "" for a new one
	Commits              int
	Notes                []string
}

// Pull puts a thread's branch into a repository of the user. A branch that is there moves
// forward only, unless force is set. Nothing is checked out.
func (s *Shelf) Pull(ctx context.Context, th fold.Thread, dir string, repo, name string, force bool) (Pulled, error) {
	if th.Files.InPlace() {
		return Pulled{}, inPlace()
	}
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return Pulled{}, err
	}
	defer done()
	r, err := findRepository(repo)
	if err != nil {
		return Pulled{}, err
	}
	return o.pull(ctx, r, name, force)
}

func (o *one) pull(ctx context.Context, r *userRepo, name string, force bool) (Pulled, error) {
	w, err := o.prepare(ctx, name)
	p := Pulled{Repo: r.Name(), Branch: w.Branch, Commit: w.Commit, Commits: w.Commits, Notes: w.Notes}
	if err != nil {
		return p, err
	}
	ref := "refs/heads/" + w.Branch
	if p.Old, err = r.commitOf(ctx, o.cfg.Git, ref); err != nil || p.Old == p.Commit {
		return p, err
	}
	if at := r.checkedOut(ref); at != "" {
		return p, thole.Errorf(thole.CodeConflict, "branch %s is checked out in %s", w.Branch, at).WithHint("check out another branch there, or pull under another name with --as NAME")
	}
	if err := o.send(ctx, r, w, p.Old); err != nil {
		return p, err
	}
	if p.Old != "" && !force {
		_, err := r.run(ctx, o.cfg.Git, git.Cmd{Args: []string{"merge-base", "--is-ancestor", p.Old, p.Commit}})
		var failed *git.Error
		if errors.As(err, &failed) && failed.Exit == 1 {
			return p, thole.Errorf(thole.CodeConflict, "branch %s in %s has commits that the thread's has not", w.Branch, p.Repo).
				WithHint("pull under another name with --as NAME, or give them up with --force")
		}
		if err != nil {
			return p, err
		}
	}
	none := strings.Repeat("0", len(p.Commit))
	old := p.Old
	if old == "" {
		old = none
	}
	_, err = r.run(ctx, o.cfg.Git, git.Cmd{Args: []string{"update-ref", "-m", "thole: pull", ref, p.Commit, old}, Readable: true, Env: o.identity()})
	if failed := (*git.Error)(nil); errors.As(err, &failed) && strings.Contains(failed.Stderr, "; cannot create") {
		err = thole.Errorf(thole.CodeConflict, "%s has a branch whose name has no room for %s next to it", p.Repo, w.Branch).
			WithHint("pull under another name with --as NAME: to git, a and a/b cannot both be branches")
	}
	return p, err
}

// commitOf is the commit that a name means in the repository, "" for none.
func (r *userRepo) commitOf(ctx context.Context, g *git.Runner, name string) (string, error) {
	out, err := r.run(ctx, g, git.Cmd{Args: []string{"rev-parse", "--verify", "-q", name + "^{commit}"}})
	var failed *git.Error
	if errors.As(err, &failed) && failed.Exit == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// checkedOut is the working tree of the repository that is at a branch, "" if none is.
func (r *userRepo) checkedOut(ref string) string {
	if head, err := readHead(r.Common, r.Common); err == nil && head.Branch == ref && firstLine(r.Common, "config") != "" {
		if filepath.Base(r.Common) == ".git" {
			return filepath.Dir(r.Common)
		}
		if r.Top != "" {
			return r.Top
		}
	}
	entries, _ := os.ReadDir(filepath.Join(r.Common, "worktrees")) // mostly there are none
	for _, e := range entries {
		dir := filepath.Join(r.Common, "worktrees", e.Name())
		if head, err := readHead(dir, r.Common); err == nil && head.Branch == ref {
			return filepath.Dir(firstLine(dir, "gitdir"))
		}
	}
	return ""
}

// send copies a thread's commits into a repository, which checks them.
func (o *one) send(ctx context.Context, r *userRepo, w Work, old string) error {
	in := w.Commit + "\n"
	for _, have := range []string{old, w.Base, o.th.Files.Carried} {
		if have == "" {
			continue
		}
		there, err := r.commitOf(ctx, o.cfg.Git, have)
		if err != nil {
			return err
		}
		if _, err := o.line(ctx, "cat-file", "-e", have+"^{commit}"); err == nil && there != "" {
			in += "^" + have + "\n"
		}
	}
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := o.own(ctx, git.Cmd{Args: []string{"pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "-q"}, Stdin: strings.NewReader(in), Stdout: writer, Limit: maxPack})
		writer.CloseWithError(err)
		packed <- err
	}()
	args, pack, err := unpackArgs(reader)
	if err == nil {
		_, err = r.run(ctx, o.cfg.Git, git.Cmd{Args: args, Readable: true, Stdin: pack, Timeout: lookTime})
	}
	reader.CloseWithError(errors.New("the pack was refused"))
	if failed := <-packed; errors.As(failed, new(*git.Error)) || err == nil {
		return failed
	}
	return err
}

// loose is up to how many objects are kept as files of their own, as git does.
const loose = 100

// unpackArgs are the arguments of git that take in a pack and check it, and the pack.
func unpackArgs(pack io.Reader) ([]string, io.Reader, error) {
	var header [12]byte
	if _, err := io.ReadFull(pack, header[:]); err != nil {
		return nil, nil, err
	}
	args := []string{"index-pack", "--stdin", "--fix-thin", "--strict"}
	if n := binary.BigEndian.Uint32(header[8:]); n < loose {
		args = []string{"unpack-objects", "-q", "--strict"}
	}
	return args, io.MultiReader(strings.NewReader(string(header[:])), pack), nil
}

// Merged is what became of an attempt to merge a thread's branch.
type Merged struct {
	Pulled
	Into        string // the branch that is checked out, or HEAD and its commit
	Done        bool
	FastForward bool
	Conflicts   []Conflict
}

// Merge pulls a thread's branch and merges it into the one that is checked out. Where
// something is in the way it merges nothing; the branch is there all the same.
func (s *Shelf) Merge(ctx context.Context, th fold.Thread, dir string, repo, name string) (m Merged, err error) {
	if th.Files.InPlace() {
		return m, inPlace()
	}
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return m, err
	}
	defer done()
	r, err := findRepository(repo)
	if err != nil {
		return m, err
	}
	if r.Top == "" {
		return m, thole.Errorf(thole.CodeInvalid, "%s is a bare repository: no branch is checked out", repo).WithHint("use thole thread pull")
	}
	head, err := r.Head()
	if err != nil {
		return m, err
	}
	if head.Commit == "" {
		return m, thole.Errorf(thole.CodeConflict, "%s has no commit yet", r.Top).WithHint("use thole thread pull")
	}
	if m.Into = strings.TrimPrefix(head.Branch, "refs/heads/"); m.Into == "" {
		m.Into = "HEAD (" + head.Commit[:7] + ")"
	}
	if m.Pulled, err = o.pull(ctx, r, name, false); err != nil {
		return m, err
	}
	base, err := r.run(ctx, o.cfg.Git, git.Cmd{Args: []string{"merge-base", head.Commit, m.Commit}})
	var failed *git.Error
	if errors.As(err, &failed) && failed.Exit == 1 {
		return m, thole.Errorf(thole.CodeConflict, "%s and %s have no common beginning", m.Into, m.Branch).WithHint("use thole thread apply")
	}
	if err != nil {
		return m, err
	}
	m.FastForward = strings.TrimSpace(string(base)) == head.Commit
	if strings.TrimSpace(string(base)) == m.Commit {
		m.Done = true // it has been merged
		return m, nil
	}
	out, err := r.run(ctx, o.cfg.Git, git.Cmd{Args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--messages", head.Commit, m.Commit}})
	tree, conflicts, err := parseMerge(out, err, side{head.Commit, m.Into}, side{m.Commit, m.Branch})
	if m.Conflicts = conflicts; err != nil || len(m.Conflicts) > 0 {
		return m, err
	}
	// git merge itself writes over files that are ignored.
	out, err = r.run(ctx, o.cfg.Git, git.Cmd{Args: append(slices.Clone(changed), head.Commit, tree), Limit: maxRaw})
	if err != nil {
		return m, err
	}
	files, err := parseDiff(out)
	if m.Conflicts = inTheWay(r.Top, files, "a file that is not committed has this name"); err != nil || len(m.Conflicts) > 0 {
		return m, err
	}
	env, err := o.author(ctx)
	if err != nil {
		return m, err
	}
	_, err = r.run(ctx, o.cfg.Git, git.Cmd{Args: []string{"merge", "-q", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-autostash", "--no-stat", "-m", "Merge branch '" + m.Branch + "'", m.Commit}, Readable: true, Env: env})
	if errors.As(err, &failed) {
		if m.Conflicts = overwritten(failed.Stderr); len(m.Conflicts) > 0 {
			return m, nil
		}
		return m, thole.Errorf(thole.CodeConflict, "git would not merge: %s", strings.TrimSpace(failed.Stderr)).WithHint("branch %s is there: git merge %s", m.Branch, m.Branch)
	}
	m.Done = err == nil
	return m, err
}

// overwritten are the files of the user that a merge would have written over.
func overwritten(stderr string) (out []Conflict) {
	why := ""
	for line := range strings.Lines(stderr) {
		switch {
		case strings.Contains(line, "untracked working tree files would be"):
			why = "a file that is not committed has this name"
		case strings.Contains(line, "local changes to the following files would be"):
			why = "it has changes that are not committed"
		case strings.HasPrefix(line, "\t") && why != "":
			out = append(out, Conflict{strings.TrimSpace(line), why})
		case strings.HasPrefix(line, "  ") && why != "": // git names several in one line
			for path := range strings.FieldsSeq(line) {
				out = append(out, Conflict{path, why})
			}
		default:
			why = ""
		}
	}
	return out
}
