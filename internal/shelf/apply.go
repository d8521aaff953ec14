package shelf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Conflict is a file in the way, and why.
type Conflict struct{ Path, Why string }

// Applied is what became of an attempt to bring changes into a directory.
type Applied struct {
	Dir       string
	Done      bool
	Files     []FileDiff // what changed there, or would
	Total     int
	Conflicts []Conflict
	Notes     []string
}

// Mode says what Apply does.
type Mode string

const (
	ApplyNow   Mode = ""
	ApplyCheck Mode = "check" // says what would happen
	ApplyAbort Mode = "abort" // puts back what an attempt that broke off left
)

// Apply merges what a thread changed into a directory of the user, which may have other
// changes: three ways, with the thread's beginning as the common one. It writes all of it
// or, where something is in the way, nothing. The index of a repository there is not
// touched.
func (s *Shelf) Apply(ctx context.Context, th fold.Thread, dir string, to string, mode Mode) (Applied, error) {
	if th.Files.InPlace() {
		return Applied{}, inPlace()
	}
	o, done, err := s.open(ctx, th, dir)
	if err != nil {
		return Applied{}, err
	}
	defer done()
	t, err := o.target(ctx, to)
	if err != nil {
		return Applied{}, err
	}
	if mode == ApplyAbort {
		return t.abort(ctx)
	}
	all, err := o.begun(ctx)
	if err != nil {
		return Applied{}, err
	}
	st, left, err := o.now(ctx, all)
	if err != nil {
		return Applied{}, err
	}
	a, err := t.apply(ctx, all[refBase], st, mode == ApplyCheck)
	a.Notes = append(a.Notes, each("left out: ", left)...)
	return a, err
}

func inPlace() error {
	return thole.Errorf(thole.CodeConflict, "this thread works on your own directory: its changes are there already").WithHint("thole thread diff shows them, thole thread undo takes them back")
}

// target is a directory of the user that changes are brought into.
type target struct {
	*one
	desk   desk
	repo   *userRepo // that it is the top of, nil for none
	intent string    // the file that says what is being written
}

// target looks at a directory. Of a repository it is the top.
func (o *one) target(ctx context.Context, dir string) (*target, error) {
	if !filepath.IsAbs(dir) {
		return nil, thole.Errorf(thole.CodeInvalid, "directory %q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "look at %s: %w", dir, err).WithHint("name a directory that is there")
	}
	t := &target{one: o}
	repo, err := findRepository(real)
	switch {
	case err == nil && repo.Top == "":
		return nil, thole.Errorf(thole.CodeInvalid, "%s is a bare repository: it has no files to change", dir).WithHint("use thole thread pull")
	case err == nil && (o.th.Files.Kind == thole.SourceBranch || repo.Top == real):
		t.repo, real = repo, repo.Top
	case err != nil && thole.CodeOf(err) != thole.CodeNotFound:
		return nil, err
	}
	uid, err := beneath.Owner(real)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "look at %s: %w", real, err)
	}
	at := o.bare + ".apply"
	t.intent = filepath.Join(at, "intent.json")
	t.desk = desk{git: o.cfg.Git, maxFile: o.cfg.MaxFile, maxFiles: o.cfg.MaxFiles, at: at, tree: real, uid: uid, objects: []string{filepath.Join(o.bare, "objects")}, show: append(o.objects(), o.bare)}
	if t.repo != nil {
		t.desk.objects, t.desk.show = append(t.desk.objects, t.repo.ObjectDirs()...), append(t.desk.show, t.repo.ObjectDirs()...)
		err = t.desk.follow(ctx, t.repo)
	}
	return t, err
}

// intent is what is being written into a directory.
type intent struct {
	Dir    string `json:"dir"`
	Before string `json:"before"` // tree of its files
	After  string `json:"after"`
}

func (t *target) readIntent() (i intent, found bool, err error) {
	text, err := os.ReadFile(t.intent)
	if errors.Is(err, fs.ErrNotExist) {
		return i, false, nil
	}
	if err == nil {
		err = strictjson.Unmarshal(text, &i)
	}
	return i, true, err
}

func (t *target) apply(ctx context.Context, base, st State, check bool) (a Applied, err error) {
	a = Applied{Dir: t.desk.tree}
	broken, found, err := t.readIntent()
	if err != nil {
		return a, err
	}
	if found && broken.Dir != t.desk.tree {
		return a, brokeOff(t.th, broken.Dir)
	}
	user, err := t.scan(ctx, found)
	if err != nil {
		return a, fmt.Errorf("look at %s: %w", t.desk.tree, err)
	}
	if found && user != broken.Before && user != broken.After {
		return a, brokeOff(t.th, broken.Dir)
	}
	theirs, dropped, err := t.plain(ctx, base.tree, st.tree)
	if err != nil {
		return a, err
	}
	for _, path := range dropped {
		a.Notes = append(a.Notes, path+" is a repository of its own and is not applied")
	}
	merged, conflicts, err := t.desk.merge(ctx, t.identity(), nil, base.Commit, side{user, "yours"}, side{theirs, threadName(t.th)})
	if err != nil {
		return a, err
	}
	if a.Conflicts = conflicts; len(conflicts) > 0 {
		return a, t.desk.clear()
	}
	if a.Files, err = t.between(ctx, user, merged); err != nil {
		return a, err
	}
	a.Conflicts = inTheWay(t.desk.tree, a.Files, "a file that git ignores has this name")
	if a.Total = len(a.Files); a.Total > maxListed {
		a.Files = a.Files[:maxListed]
	}
	if len(a.Conflicts) > 0 || check {
		return a, t.desk.clear()
	}
	if a.Total > 0 {
		if err := t.write(ctx, user, merged, &a); err != nil || len(a.Conflicts) > 0 {
			return a, err
		}
	}
	a.Done = true
	return a, t.desk.clear()
}

func brokeOff(th fold.Thread, dir string) error {
	return thole.Errorf(thole.CodeConflict, "an earlier apply into %s broke off, and some of its files are written and some are not", dir).
		WithHint("thole thread apply %s --abort --to %s puts them back; what you changed in them since goes too", th.ID, dir)
}

// scan makes a tree of the files of the directory. keep: what the desk has is still needed,
// the index of the scan before among it.
func (t *target) scan(ctx context.Context, keep bool) (string, error) {
	if !keep {
		if err := t.desk.clear(); err != nil {
			return "", err
		}
	}
	var from, tree string
	if t.repo != nil {
		if head, err := t.repo.Head(); err == nil && head.Commit != "" {
			from = head.Commit
		}
	}
	if err := t.desk.lay(from, t.sha256()); err != nil {
		return "", err
	}
	if from != "" {
		var err error
		if tree, err = t.desk.line(ctx, "rev-parse", "--verify", "-q", from+"^{tree}"); err != nil {
			return "", err
		}
	}
	if !keep && t.repo != nil {
		if err := t.borrowIndex(ctx); err != nil {
			return "", err
		}
	}
	got, left, err := t.desk.scan(ctx, from, tree)
	if err != nil && !keep && ctx.Err() == nil { // an index of a kind that cannot stand alone
		if err := os.Remove(t.desk.index()); err != nil {
			return "", err
		}
		got, left, err = t.desk.scan(ctx, from, tree)
	}
	if err == nil && len(left) > 0 {
		err = thole.Errorf(thole.CodeConflict, "some of its files cannot be read: %s", left[0]).WithHint("make them readable, or have .gitignore name them")
	}
	return got, err
}

// maxIndex bounds the index of a user's repository.
const maxIndex = 1 << 30

// borrowIndex begins with a copy of the repository's own index: what it says of unchanged
// files need not be found out again.
func (t *target) borrowIndex(ctx context.Context) error {
	text, err := beneath.ReadFile(t.repo.Git, "index", maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.desk.index(), text, 0o644); err != nil { // nothing of another's is in the room yet
		return err
	}
	if err := t.desk.give(t.desk.index()); err != nil {
		return err
	}
	return t.seeAll(ctx)
}

// seeAll has git look at the files that the user has it overlook: what they changed there is
// theirs all the same, and would be written over. A file that is not there because the user
// checked out others alone stays overlooked.
func (t *target) seeAll(ctx context.Context) error {
	out, err := t.desk.look(ctx, git.Cmd{Args: []string{"ls-files", "-v", "-z"}, Limit: maxRaw})
	if errors.As(err, new(*git.Error)) {
		return nil // an index of a kind that cannot stand alone, as the scan finds too
	}
	if err != nil {
		return err
	}
	flags := map[string][]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		tag, path, ok := strings.Cut(entry, " ")
		if !ok || tag == "H" {
			continue
		}
		if strings.ToLower(tag) == tag {
			flags["--no-assume-unchanged"] = append(flags["--no-assume-unchanged"], path)
		}
		if strings.EqualFold(tag, "s") && t.there(path) {
			flags["--no-skip-worktree"] = append(flags["--no-skip-worktree"], path)
		}
	}
	for flag, paths := range flags {
		if _, err := t.desk.look(ctx, git.Cmd{Args: []string{"update-index", flag, "-z", "--stdin"}, Stdin: strings.NewReader(listed(paths))}); err != nil {
			return err
		}
	}
	return nil
}

// there reports whether the directory has something at a path.
func (t *target) there(path string) bool {
	_, err := os.Lstat(filepath.Join(t.desk.tree, path))
	return err == nil
}

// plain leaves changes of repositories below out of a tree: where they are only a commit,
// there are no files to write.
func (t *target) plain(ctx context.Context, base, tree string) (string, []string, error) {
	out, err := t.desk.look(ctx, git.Cmd{Args: []string{"diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", tree, base}, Limit: maxRaw})
	if err != nil {
		return "", nil, err
	}
	var back bytes.Buffer
	var paths []string
	for _, r := range parseRaw(out) {
		if r.oldMode == gitlink || r.mode == gitlink {
			fmt.Fprintf(&back, "%s %s\t%s\x00", r.mode, r.id, r.path)
			paths = append(paths, r.path)
		}
	}
	if len(paths) == 0 {
		return tree, nil, nil
	}
	out, err = t.inIndex(ctx, "plain", git.Cmd{Args: []string{"read-tree", tree}}, git.Cmd{Args: []string{"update-index", "-z", "--index-info"}, Stdin: &back}, git.Cmd{Args: []string{"write-tree"}})
	return strings.TrimSpace(string(out)), paths, err
}

// inIndex runs commands over an index of their own and returns what the last one says.
func (t *target) inIndex(ctx context.Context, name string, all ...git.Cmd) (out []byte, err error) {
	for _, c := range all {
		c.Env = map[string]string{"GIT_INDEX_FILE": filepath.Join(t.desk.room(), name)}
		if out, err = t.desk.look(ctx, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rawDiff is one record of git diff-tree --raw without renames.
type rawDiff struct{ oldMode, mode, oldID, id, path string }

func parseRaw(out []byte) (all []rawDiff) {
	for fields := strings.Split(string(out), "\x00"); len(fields) >= 2; fields = fields[2:] {
		p := strings.Fields(strings.TrimPrefix(fields[0], ":"))
		if len(p) != 5 {
			break
		}
		all = append(all, rawDiff{p[0], p[1], p[2], p[3], fields[1]})
	}
	return all
}

// each puts words before every line of a list.
func each(before string, list []string) (out []string) {
	for _, text := range list {
		out = append(out, before+text)
	}
	return out
}

func tail(list []string, n int) []string { return list[min(n, len(list)):] }

// changed has git list how the two trees that follow differ.
var changed = []string{"diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", "--numstat"}

// between lists how two trees differ.
func (t *target) between(ctx context.Context, from, to string) ([]FileDiff, error) {
	out, err := t.desk.look(ctx, git.Cmd{Args: append(slices.Clone(changed), from, to), Limit: maxRaw})
	if err != nil {
		return nil, err
	}
	return parseDiff(out)
}

// inTheWay finds new files below top whose names, or those of their directories, are taken
// by files that git does not see: it would write over them.
func inTheWay(top string, files []FileDiff, why string) (out []Conflict) {
	goes := map[string]bool{} // a directory may take the place of a file that is deleted
	for _, f := range files {
		goes[f.Path] = f.Kind == Deleted
	}
	told := map[string]bool{}
	for _, f := range files {
		if f.Kind != Added {
			continue
		}
		for at := range prefixes(f.Path) {
			info, err := os.Lstat(filepath.Join(top, at))
			if err != nil || goes[at] {
				break
			}
			if at == f.Path || !info.IsDir() {
				if !told[at] {
					told[at], out = true, append(out, Conflict{at, why})
				}
				break
			}
		}
	}
	return out
}

// prefixes are the directories on the way to a path, the first one first, and the path.
func prefixes(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, c := range path {
			if c == '/' && !yield(path[:i]) {
				return
			}
		}
		yield(path)
	}
}

// write brings the files from one tree to another. git looks at all of them before it
// writes the first; a crash after that leaves the intent.
func (t *target) write(ctx context.Context, from, to string, a *Applied) error {
	text, err := json.Marshal(intent{t.desk.tree, from, to})
	if err == nil {
		err = atomicfile.Write(t.intent, text, 0o600)
	}
	if err != nil {
		return err
	}
	c := git.Cmd{Args: []string{"read-tree", "-m", "-u", from, to}, Readable: true, Write: []string{t.desk.tree}}
	if t.repo != nil && t.repo.Git == filepath.Join(t.desk.tree, ".git") {
		c.Show = []string{t.repo.Git} // read-only in what is written
	}
	_, err = t.desk.look(ctx, c)
	var failed *git.Error
	if !errors.As(err, &failed) {
		return err
	}
	now, unknown := t.scan(ctx, true)
	if unknown != nil || now != from {
		return thole.Errorf(thole.CodeUnavailable, "%w", err).WithHint("%s", thole.HintOf(brokeOff(t.th, t.desk.tree)))
	}
	for line := range strings.Lines(failed.Stderr) {
		if why, ok := strings.CutPrefix(strings.TrimSpace(line), "error: "); ok {
			a.Conflicts = append(a.Conflicts, Conflict{Why: why})
		}
	}
	if len(a.Conflicts) == 0 {
		return errors.Join(err, t.desk.clear())
	}
	return t.desk.clear()
}

// abort puts the files back that an apply was about to write.
func (t *target) abort(ctx context.Context) (a Applied, err error) {
	a = Applied{Dir: t.desk.tree}
	i, found, err := t.readIntent()
	if err != nil {
		return a, err
	}
	if !found || i.Dir != t.desk.tree {
		return a, thole.Errorf(thole.CodeNotFound, "no apply into %s broke off", t.desk.tree)
	}
	if a.Files, err = t.between(ctx, i.After, i.Before); err != nil {
		return a, err
	}
	a.Total = len(a.Files)
	out, err := t.desk.look(ctx, git.Cmd{Args: []string{"diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", i.Before, i.After}, Limit: maxRaw})
	if err != nil {
		return a, err
	}
	// Trees of these files alone, so that no other is touched.
	var before, after bytes.Buffer
	for _, r := range parseRaw(out) {
		if r.oldMode != noMode {
			fmt.Fprintf(&before, "%s %s\t%s\x00", r.oldMode, r.oldID, r.path)
		}
		if r.mode != noMode {
			fmt.Fprintf(&after, "%s %s\t%s\x00", r.mode, r.id, r.path)
		}
	}
	trees := map[string]string{}
	for name, side := range map[string]*bytes.Buffer{"before": &before, "after": &after} {
		out, err := t.inIndex(ctx, name, git.Cmd{Args: []string{"read-tree", "--empty"}}, git.Cmd{Args: []string{"update-index", "-z", "--index-info"}, Stdin: side}, git.Cmd{Args: []string{"write-tree"}})
		if err != nil {
			return a, err
		}
		trees[name] = strings.TrimSpace(string(out))
	}
	if _, err := t.inIndex(ctx, "after", git.Cmd{Args: []string{"read-tree", "--reset", "-u", trees["before"]}, Readable: true, Write: []string{t.desk.tree}}); err != nil {
		return a, err
	}
	a.Done = true
	return a, t.desk.clear()
}

// noMode is the mode of a file that is not there.
const noMode = "000000"
