package shelf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// desk is where git looks at files that are not ours:
//
//	git    a directory of git that a box shows read-only: no configuration, what to leave
//	       out, and HEAD at the last checkpoint
//	room   what git may write there: the index, which makes the next look cheap, and new
//	       objects
//	of     the directory that the index is of, and its owner
//	young  files that the index may be wrong about
//	pipes  those among the files that git must not open
//
// The server opens nothing below room: git in a box has read an agent's files there.
type desk struct {
	git  *git.Runner
	at   string // where the desk is
	tree string // the files
	uid  int    // whose they are
	// objects are directories with objects that are there already; show has them, and
	// what they refer to.
	objects, show []string
	exclude       string // what is left out besides what .gitignore names
	// values are of the files' own repository: how it writes lines and what the file system
	// can do. Only a repository whose configuration no agent writes is asked.
	values   map[string]string
	maxFile  int64
	maxFiles int
	// cone is what of a repository was checked out, nil for all: what lies outside of it and
	// is not there was never there.
	cone *source.Cone
	// pipes are among the files and git must not open them; refused have names that git takes
	// for its own. No look has either, and none can be written over by git.
	pipes, refused []string
}

// dataDir is where an agent's own record is in a workspace of an earlier version. It is
// no part of the files.
const dataDir = ".agent_data"

// lookTime bounds each look at files.
const lookTime = 5 * time.Minute

func (d *desk) gitDir() string  { return filepath.Join(d.at, "git") }
func (d *desk) room() string    { return filepath.Join(d.at, "room") }
func (d *desk) index() string   { return filepath.Join(d.room(), "index") }
func (d *desk) results() string { return filepath.Join(d.room(), "objects") }

// lay makes the desk ready for a look at the files that begins with a commit, "" for none.
func (d *desk) lay(commit string, sha256 bool) error {
	of, whose := filepath.Join(d.at, "of"), fmt.Sprintf("%d %s", d.uid, d.tree)
	if have, err := os.ReadFile(of); err != nil || string(have) != whose {
		if err := d.clear(); err != nil {
			return err
		}
		for _, sub := range []string{"git/objects", "git/refs", "git/info", "room"} {
			if err := os.MkdirAll(filepath.Join(d.at, sub), 0o755); err != nil {
				return err
			}
		}
		if err := errors.Join(d.give(d.room()), d.sweep()); err != nil {
			return err
		}
		format := "[core]\n\trepositoryformatversion = 0\n"
		if sha256 {
			format = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
		}
		if err := os.WriteFile(filepath.Join(d.gitDir(), "config"), []byte(format), 0o644); err != nil {
			return err
		}
		if err := atomicfile.Write(of, []byte(whose), 0o644); err != nil {
			return err
		}
	}
	if err := os.Remove(d.index() + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a crash
		return err
	}
	if err := d.setHead(commit); err != nil {
		return err
	}
	d.readPipes()
	return replace(filepath.Join(d.gitDir(), "info", "exclude"), "/"+dataDir+"/\n"+d.exclude+"\n")
}

func (d *desk) setHead(commit string) error {
	if commit == "" {
		commit = "ref: refs/heads/none"
	}
	return replace(filepath.Join(d.gitDir(), "HEAD"), commit+"\n")
}

// clear takes the desk away: the next look begins with nothing.
func (d *desk) clear() error { return os.RemoveAll(d.at) }

// sweep removes the objects that were made, once another place has them.
func (d *desk) sweep() error {
	if err := os.RemoveAll(d.results()); err != nil {
		return err
	}
	if err := os.Mkdir(d.results(), 0o755); err != nil {
		return err
	}
	return d.give(d.results())
}

// give makes a directory that of the files' owner.
func (d *desk) give(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(dir, d.uid, -1)
}

// replace writes a file of the desk if it differs.
func replace(path, text string) error {
	if have, err := os.ReadFile(path); err == nil && string(have) == text {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// look runs git over the files, which the box shows read-only unless the command says
// that they are to be written.
func (d *desk) look(ctx context.Context, c git.Cmd) ([]byte, error) {
	c.Dir, c.UID = d.tree, d.uid
	if c.Timeout == 0 {
		c.Timeout = lookTime
	}
	c.Show = append(append(c.Show, d.tree, d.gitDir()), d.show...)
	c.Write = append(c.Write, d.room())
	var objects []string
	for _, dir := range d.objects {
		objects = append(objects, quote(dir))
	}
	env := map[string]string{
		"GIT_DIR": d.gitDir(), "GIT_WORK_TREE": d.tree, "GIT_INDEX_FILE": d.index(), "GIT_OBJECT_DIRECTORY": d.results(),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES": strings.Join(objects, ":"), "GIT_OPTIONAL_LOCKS": "1",
	}
	maps.Copy(env, c.Env)
	config := map[string]string{"core.untrackedCache": "true", "core.fsync": "none", "core.bigFileThreshold": "32m"}
	maps.Copy(config, d.values)
	maps.Copy(config, c.Config)
	c.Env, c.Config = env, config
	return d.past(ctx, c)
}

// follow takes over what a repository says about its own files, as far as that is harmless.
func (d *desk) follow(ctx context.Context, r *userRepo) error {
	text, err := beneath.ReadFile(r.Common, "info/exclude", maxSmallFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.exclude = r.ignoredByUser(ctx, d.git) + ignoredAbove(r.Top, d.tree) + string(text)
	all, err := r.values(ctx, d.git, `^core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode)$`)
	d.values = map[string]string{}
	for key, value := range all {
		switch value {
		case "true", "false", "input", "lf", "crlf", "native":
			d.values[key] = value
		}
	}
	return err
}

// scan makes a tree of the files as they are, and names what it left out. It begins with
// a commit whose tree is known. New objects are in the desk's results until they are swept.
func (d *desk) scan(ctx context.Context, from, fromTree string) (tree string, left []string, err error) {
	began, index := time.Now(), d.indexTime()
	d.refused = nil
	if _, err := os.Lstat(d.index()); err != nil {
		args := []string{"read-tree", "--empty"}
		if from != "" {
			args = []string{"read-tree", from}
		}
		if _, err := d.look(ctx, git.Cmd{Args: args}); err != nil {
			return "", nil, err
		}
	}
	changed, err := d.status(ctx)
	if err != nil {
		return "", nil, err
	}
	young, listing := d.readYoung(), []byte(nil)
	defer func() {
		if err == nil && (len(young) > 0 || d.indexTime() != index) {
			err = d.writeYoung(ctx, began, listing)
		}
	}()
	if len(changed) == 0 && len(young) == 0 && fromTree != "" {
		return fromTree, nil, nil
	}
	changed = slices.Compact(slices.Sorted(slices.Values(append(changed, young...))))
	take, gone, left, err := d.takable(changed)
	if err != nil {
		return "", nil, err
	}
	gone = append(gone, young...) // and back in, with what they are now
	more, tree, listing, err := d.put(ctx, take, gone)
	if err == nil && !validID(tree) {
		err = thole.Errorf(thole.CodeInternal, "git named no tree")
	}
	return tree, append(left, more...), err
}

// maxPassedOver bounds how many files are named that git passed over.
const maxPassedOver = 100

// passedOver are the files that the last scan did not look at, and why.
func (d *desk) passedOver() (left []string) {
	for _, path := range d.pipes {
		left = append(left, path+": a pipe")
	}
	for _, path := range d.refused {
		left = append(left, path+": git refuses files of this name")
	}
	if more := len(left) - maxPassedOver; more > 0 {
		left = append(left[:maxPassedOver], fmt.Sprintf("… and %d more", more))
	}
	return left
}

// maxUnreadable is how many files git may fail to read, one after the other, before the
// look is given up.
const maxUnreadable = 50

// putting is what one box does, since each costs more than most of what git does in it: files
// leave the index and others come into it, and what it has is a tree and listed. Not git add:
// that starts git in repositories below, which do what they are configured to.
const putting = `!f() { set -e; git update-index --force-remove -z --stdin <"$GIT_DIR/gone"; git update-index --add --remove --replace -z --stdin <"$GIT_DIR/take"; git write-tree; git ls-files -z --debug; }; f`

// put brings files into the index, those that are gone out of it first, and returns its tree
// and its listing. It names files that git could not read.
func (d *desk) put(ctx context.Context, take, gone []string) (left []string, tree string, listing []byte, err error) {
	for range maxUnreadable {
		for name, paths := range map[string][]string{"gone": gone, "take": take} {
			if err := os.WriteFile(filepath.Join(d.gitDir(), name), []byte(listed(paths)), 0o644); err != nil {
				return left, "", nil, err
			}
		}
		said := &start{left: maxSaid}
		var out []byte
		out, err = d.look(ctx, git.Cmd{Args: []string{"put"}, Config: map[string]string{"alias.put": putting}, Stderr: said, Limit: 17 * maxRaw})
		var failed *git.Error
		if !errors.As(err, &failed) {
			d.refused = refused(said.String(), take)
			id, listing, _ := bytes.Cut(out, []byte("\n"))
			return left, string(id), listing, err
		}
		_, bad, ok := strings.Cut(failed.Stderr, "fatal: Unable to process path ")
		bad = strings.TrimSuffix(bad, "\n")
		i := slices.Index(take, bad)
		if !ok || i < 0 {
			return left, "", nil, err
		}
		left, take = append(left, bad+": "+reason(failed.Stderr)), slices.Delete(slices.Clone(take), i, i+1)
	}
	return left, "", nil, err
}

// refused are files whose names git takes for its own on some machine, as sub/.GIT or
// git~1. It passes them over and only says so.
func refused(said string, paths []string) (out []string) {
	const passed = "Ignoring path "
	if !strings.Contains(said, passed) {
		return nil
	}
	names := map[string]bool{}
	for line := range strings.Lines(said) {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), passed); ok {
			names[name] = true
		}
	}
	for _, path := range paths {
		if names[path] || strings.Contains(path, "\n") && strings.Contains(said, passed+path+"\n") {
			names[path], out = false, append(out, path)
		}
	}
	return out
}

// maxSaid bounds what is read of what git says.
const maxSaid = 4 << 20

// start keeps the beginning of what is written.
type start struct {
	strings.Builder
	left int
}

func (s *start) Write(p []byte) (int, error) {
	kept := p[:min(len(p), s.left)]
	s.left -= len(kept)
	_, _ = s.Builder.Write(kept)
	return len(p), nil
}

// listed are paths as git reads them with -z.
func listed(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return strings.Join(paths, "\x00") + "\x00"
}

// reason is why git could not read a file.
func reason(stderr string) string {
	for line := range strings.Lines(stderr) {
		if i := strings.LastIndex(line, "): "); strings.HasPrefix(line, "error: open(") && i > 0 {
			return strings.TrimSpace(line[i+3:])
		}
	}
	return "git could not read it"
}

// line runs git on the desk and returns its output without the end of the line.
func (d *desk) line(ctx context.Context, args ...string) (string, error) {
	out, err := d.look(ctx, git.Cmd{Args: args})
	return strings.TrimSpace(string(out)), err
}

// status lists what differs between the files, the index and HEAD. A repository below
// ends with a slash while the index does not have it.
func (d *desk) status(ctx context.Context) (changed []string, err error) {
	out, err := d.look(ctx, git.Cmd{
		Args:   []string{"status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"},
		Config: map[string]string{"status.showUntrackedFiles": "all"}, Limit: maxRaw, // what the cache of untracked files goes by
	})
	if errors.Is(err, git.ErrTooLong) {
		return nil, d.tooMany()
	}
	if err != nil {
		return nil, err
	}
	for record := range bytes.SplitSeq(out, []byte{0}) {
		if len(record) == 0 {
			continue
		}
		fields := map[byte]int{'1': 9, '2': 10, 'u': 11, '?': 2}[record[0]]
		if fields == 0 {
			continue
		}
		parts := bytes.SplitN(record, []byte(" "), fields)
		if path := string(parts[len(parts)-1]); !d.away(path) {
			changed = append(changed, path)
		}
	}
	if len(changed) > d.maxFiles {
		return nil, d.tooMany()
	}
	return changed, nil
}

// away reports whether a file is not there because it was not checked out.
func (d *desk) away(path string) bool {
	if d.cone == nil || d.cone.Has(path) {
		return false
	}
	_, err := os.Lstat(filepath.Join(d.tree, path))
	return errors.Is(err, fs.ErrNotExist)
}

func (d *desk) tooMany() error {
	return thole.Errorf(thole.CodeUnsupported, "more than %d files changed", d.maxFiles).WithHint("have .gitignore name what is made and not written")
}

// takable are the changed files that git can read, those that are gone, and why others
// are left out: one that is mostly holes costs an agent nothing, and a reader an hour.
func (d *desk) takable(changed []string) (take, gone, left []string, err error) {
	root, err := beneath.Open(d.tree)
	if err != nil {
		return nil, nil, nil, err
	}
	defer root.Close()
	at := &beneath.Cursor{Root: root}
	defer at.Close()
	for _, path := range changed {
		name, below := strings.CutSuffix(path, "/")
		if below {
			if head, err := readHead(filepath.Join(d.tree, name, ".git"), filepath.Join(d.tree, name, ".git")); err != nil || head.Commit == "" {
				left = append(left, name+": a repository without a commit")
				continue
			}
			take = append(take, name)
			continue
		}
		in, last, err := at.Parent(path, false)
		var st beneath.Stat
		if err == nil {
			st, err = in.Lstat(last)
		}
		switch {
		case errors.Is(err, fs.ErrPermission):
			left = append(left, path+": its directory cannot be read")
		case err != nil: // also where what was its directory is a link now
			gone = append(gone, path)
		case st.Kind == beneath.File && st.Size > d.maxFile:
			left = append(left, fmt.Sprintf("%s: larger than %d bytes", path, d.maxFile))
		default:
			take = append(take, path)
		}
	}
	return take, gone, left, nil
}

// merge merges two trees with a common beginning. The result is with the desk's results, and
// conflicts name the sides by what they are called.
func (d *desk) merge(ctx context.Context, identity, config map[string]string, base string, ours, theirs side) (tree string, conflicts []Conflict, err error) {
	args := []string{"merge-tree", "--write-tree", "-z", "--name-only", "--messages"}
	for _, s := range []*side{&ours, &theirs} {
		out, err := d.look(ctx, git.Cmd{Args: []string{"commit-tree", s.id, "-p", base, "-m", "side"}, Env: identity})
		if err != nil {
			return "", nil, err
		}
		s.id = strings.TrimSpace(string(out))
		args = append(args, s.id)
	}
	out, err := d.look(ctx, git.Cmd{Args: args, Config: config})
	return parseMerge(out, err, ours, theirs)
}
