package branch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/git"
)

// desk is where a commit of uncommitted files is made: an index and objects of its own, so
// that nothing in the user's repository changes.
type desk struct {
	b    *Branches
	at   repository
	dir  string
	base string // the commit below
}

const deskName = "carry-"

// carry makes a commit of what differs from the record's commit in the working tree:
// changed, deleted and untracked files, not ignored ones. Its objects come into a
// repository of the server.
func (b *Branches) carry(ctx context.Context, at repository, rec *record) error {
	now, err := b.commit(ctx, at, "")
	if err != nil {
		return err
	}
	if now != rec.Source.Commit {
		return thole.Errorf(thole.CodeInvalid, "uncommitted files of %s belong to its HEAD %s, not to %s", at.name(), short(now), short(rec.Source.Commit)).
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
	commit, err := d.commit(ctx)
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
	in, err := plain(filepath.Join(d.at.gitDir, "index"))
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
	var borrowed []string
	for _, dir := range d.at.objects {
		borrowed = append(borrowed, quoted(dir))
	}
	const who = "thole"
	c := git.Cmd{Dir: d.at.top, Args: args, Write: []string{d.dir}, Stdin: in, Stdout: out, Limit: 1 << 30, Timeout: 30 * time.Minute,
		Env: map[string]string{
			"GIT_WORK_TREE": d.at.top, "GIT_INDEX_FILE": filepath.Join(d.dir, "index"), "GIT_OBJECT_DIRECTORY": filepath.Join(d.dir, "objects"),
			"GIT_ALTERNATE_OBJECT_DIRECTORIES": strings.Join(borrowed, ":"),
			"GIT_AUTHOR_NAME":                  who, "GIT_AUTHOR_EMAIL": who, "GIT_COMMITTER_NAME": who, "GIT_COMMITTER_EMAIL": who,
		},
		Config: map[string]string{"advice.addEmbeddedRepo": "false"},
	}
	for _, name := range d.at.filters { // content is carried as it is; see unchanged
		for _, kind := range []string{"clean", "smudge", "process"} {
			c.Config["filter."+name+"."+kind] = ""
		}
		c.Config["filter."+name+".required"] = "false"
	}
	if out != nil {
		c.Limit = 0
	}
	if ignored := d.b.ignored(ctx); ignored != "" && d.at.uid == 0 {
		c.Config["core.excludesFile"] = ignored
		c.Show = append(c.Show, ignored)
	}
	said, err := d.b.run(ctx, d.at, c)
	return string(said), err
}

// ignored is the user's own list of files that git ignores everywhere, "" for none.
func (b *Branches) ignored(ctx context.Context) string {
	path := b.own(ctx)["core.excludesfile"]
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(b.cfg.UserHome, rest)
	}
	if path == "" {
		path = filepath.Join(b.cfg.UserHome, ".config", "git", "ignore")
	}
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// commit makes the commit, "" where nothing differs.
func (d *desk) commit(ctx context.Context) (string, error) {
	if _, err := d.git(ctx, nil, nil, "add", "-A", "--", ":/"); err != nil {
		return "", err
	}
	if err := d.unchanged(ctx); err != nil {
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
