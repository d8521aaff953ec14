package branch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// desk is where a commit of uncommitted files is made: an index and objects of its own, so
// that nothing in the user's repository changes.
type desk struct {
	b    *Branches
	at   userRepo
	dir  string
	base string // the commit below
}

const deskName = "carry-"

// carry makes a commit of what differs from the record's commit in the working tree:
// changed, deleted and untracked files, not ignored ones. Its objects come into a
// repository of the server.
func (b *Branches) carry(ctx context.Context, at userRepo, rec *record) error {
	now, err := b.commit(ctx, at, "")
	if err != nil {
		return err
	}
	if now != rec.Source.Commit {
		return thole.Errorf(thole.CodeInvalid, "uncommitted files of %s belong to its HEAD %s, not to %s", at.Name(), short(now), short(rec.Source.Commit)).
			WithHint("leave out --ref or --dirty")
	}
	dir, err := os.MkdirTemp(b.dir(), deskName)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &desk{b: b, at: at, dir: dir, base: now}
	if err := d.prepare(); err != nil {
		return unusable(at, err)
	}
	commit, err := d.commit(ctx, rec)
	if err != nil {
		return unusable(at, err)
	}
	if commit == "" {
		return nil
	}
	to, err := d.keep(ctx, rec, commit)
	if err != nil {
		return unusable(at, err)
	}
	rec.Source.Carried = commit
	rec.Source.Objects = append(rec.Source.Objects, filepath.Join(to, "objects"))
	return nil
}

// prepare copies the index: what git knows there it need not read again.
func (d *desk) prepare() error {
	if err := os.Mkdir(filepath.Join(d.dir, "objects"), 0o700); err != nil {
		return err
	}
	root, err := beneath.Open(d.at.Git)
	if err != nil {
		return err
	}
	defer root.Close()
	in, err := root.Open("index")
	if err == nil {
		defer in.Close()
		out, err := os.OpenFile(filepath.Join(d.dir, "index"), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			out.Close()
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if d.at.uid == 0 {
		return nil
	}
	return filepath.WalkDir(d.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, d.at.uid, d.at.uid)
	})
}

// git runs git with the desk's index and objects.
func (d *desk) git(ctx context.Context, in io.Reader, out io.Writer, args ...string) (string, error) {
	return d.gitAt(ctx, filepath.Join(d.dir, "index"), in, out, args...)
}

// gitAt runs git with an index.
func (d *desk) gitAt(ctx context.Context, index string, in io.Reader, out io.Writer, args ...string) (string, error) {
	var borrowed []string
	for _, dir := range d.at.ObjectDirs() {
		borrowed = append(borrowed, quoted(dir))
	}
	const who = "thole"
	c := git.Cmd{Dir: d.at.Top, Args: args, Write: []string{d.dir}, Stdin: in, Stdout: out, Limit: 1 << 30, Timeout: 30 * time.Minute,
		Env: map[string]string{
			"GIT_WORK_TREE": d.at.Top, "GIT_INDEX_FILE": index, "GIT_OBJECT_DIRECTORY": filepath.Join(d.dir, "objects"),
			"GIT_ALTERNATE_OBJECT_DIRECTORIES": strings.Join(borrowed, ":"),
			"GIT_AUTHOR_NAME":                  who, "GIT_AUTHOR_EMAIL": who, "GIT_COMMITTER_NAME": who, "GIT_COMMITTER_EMAIL": who,
		},
		Config: map[string]string{"advice.addEmbeddedRepo": "false"},
	}
	for _, name := range d.at.filters { // content is carried as it is; see filtered
		for _, kind := range []string{"clean", "smudge", "process"} {
			c.Config["filter."+name+"."+kind] = ""
		}
		c.Config["filter."+name+".required"] = "false"
	}
	if out != nil {
		c.Limit = 0
	}
	if ignored := d.b.user().Ignored(ctx); ignored != "" && d.at.uid == 0 {
		c.Config["core.excludesFile"] = ignored
		c.Show = append(c.Show, ignored)
	}
	said, err := d.b.run(ctx, d.at, c)
	return string(said), err
}

// commit makes the commit, "" where nothing differs.
func (d *desk) commit(ctx context.Context, rec *record) (string, error) {
	if err := d.add(ctx, rec); err != nil {
		return "", err
	}
	changes, err := d.changes(ctx)
	if err == nil {
		err = errors.Join(d.filtered(ctx, rec, changes), d.below(ctx, rec, changes))
	}
	if err != nil {
		return "", err
	}
	tree, err := d.git(ctx, nil, nil, "write-tree")
	if err != nil {
		return "", err
	}
	before, err := d.git(ctx, nil, nil, "rev-parse", "--verify", d.base+"^{tree}")
	if err != nil {
		return "", err
	}
	if tree == before {
		return "", nil
	}
	commit, err := d.git(ctx, nil, nil, "commit-tree", strings.TrimSpace(tree), "-p", d.base, "-m", "uncommitted files")
	commit = strings.TrimSpace(commit)
	if err == nil && !validID(commit) {
		err = fmt.Errorf("git made commit %q", commit)
	}
	return commit, err
}

// add takes the files as they are into the index. What git cannot take is named, and the
// rest goes along.
func (d *desk) add(ctx context.Context, rec *record) error {
	_, err := d.git(ctx, nil, nil, "add", "-A", "--ignore-errors", "--", ":/")
	var some *git.Error
	if !errors.As(err, &some) || some.Exit != 1 {
		return err
	}
	for _, list := range [][]string{{"ls-files", "-z", "--others", "--exclude-standard"}, {"diff-files", "-z", "--name-only", "--ignore-submodules=all"}} {
		out, err := d.git(ctx, nil, nil, list...)
		if err != nil {
			return err
		}
		for name := range strings.SplitSeq(out, "\x00") {
			dir, isDir := strings.CutSuffix(name, "/")
			switch {
			case name == "":
			case isDir:
				rec.Source.LeftOut = noted(rec.Source.LeftOut, dir+": a repository without a commit")
			case rec.Sparse != "":
				rec.Source.LeftOut = noted(rec.Source.LeftOut, name+": outside of the sparse checkout, or not readable")
			default:
				rec.Source.LeftOut = noted(rec.Source.LeftOut, name+": it cannot be read")
			}
		}
	}
	return nil
}

// gitlink is the mode of a repository below another.
const gitlink = "160000"

// below leaves repositories out that lie in the working tree and of which the user's index
// does not know: there are no files of them to take along, and a branch that names them is in
// the way of theirs.
func (d *desk) below(ctx context.Context, rec *record, changes []change) error {
	var found []string
	for _, c := range changes {
		if c.kind == "A" && c.mode == gitlink {
			found = append(found, c.path)
		}
	}
	if len(found) == 0 {
		return nil
	}
	out, err := d.gitAt(ctx, filepath.Join(d.at.Git, "index"), nil, nil, append([]string{"--literal-pathspecs", "ls-files", "-z", "--"}, found...)...)
	if err != nil {
		return err
	}
	known := strings.Split(out, "\x00")
	var drop strings.Builder
	for _, path := range found {
		if !slices.Contains(known, path) {
			drop.WriteString(path + "\x00")
			rec.Source.LeftOut = noted(rec.Source.LeftOut, path+": a repository of its own")
		}
	}
	if drop.Len() == 0 {
		return nil
	}
	_, err = d.git(ctx, strings.NewReader(drop.String()), nil, "update-index", "--force-remove", "-z", "--stdin")
	return err
}

// keep moves the commit's objects into a repository of the server: as a pack, which is
// checked.
func (d *desk) keep(ctx context.Context, rec *record, commit string) (string, error) {
	pack, err := os.Create(filepath.Join(d.dir, "pack"))
	if err != nil {
		return "", err
	}
	defer pack.Close()
	if _, err := d.git(ctx, strings.NewReader(commit+"\n^"+d.base+"\n"), pack, "pack-objects", "--revs", "--stdout", "-q"); err != nil {
		return "", err
	}
	to := d.b.dir(carried, string(rec.Thread)+".git")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	own := d.b.cfg.Git
	if _, err := own.Own(ctx, to, "init", "--quiet", "--bare", "--template=", "--shared=0644", "--object-format="+rec.Format); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(to, "objects", "info"), 0o755); err != nil {
		return "", err
	}
	if err := atomicfile.Write(filepath.Join(to, "objects", "info", "alternates"), alternates(rec.Source.Objects), 0o644); err != nil {
		return "", err
	}
	if len(rec.Shallow) > 0 {
		if err := atomicfile.Write(filepath.Join(to, "shallow"), []byte(strings.Join(rec.Shallow, "\n")+"\n"), 0o644); err != nil {
			return "", err
		}
	}
	if err := d.b.unpack(ctx, to, pack); err != nil {
		return "", err
	}
	if _, err := own.Own(ctx, to, "update-ref", heldRef(rec.Thread), commit); err != nil {
		return "", err
	}
	return to, d.b.cfg.Step("branch.carry")
}

// alternates is the file that names directories to borrow objects from.
func alternates(dirs []string) []byte {
	var text strings.Builder
	for _, dir := range dirs {
		text.WriteString(quoted(dir) + "\n")
	}
	return []byte(text.String())
}
