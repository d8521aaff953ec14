package shelf

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Repository is a repository of this machine that is not ours, as its files say. Nothing
// of its configuration was obeyed to find it.
type Repository struct {
	Top string // of the working tree, "" for a bare one
	// Dir is the directory of git for this working tree, Common the one that its other
	// working trees have too; mostly they are the same.
	Dir, Common string
	// Objects are the directories with its objects, its own first.
	Objects []string
	SHA256  bool
	led     bool // found by a file that names another directory, which does not name it
}

// Bounds of what is read of a repository that is not ours.
const (
	maxSmallFile  = 64 << 10
	maxPackedRefs = 64 << 20
	maxAlternates = 5 // git's own depth
)

// FindRepository finds the repository that a directory is in, thole.CodeNotFound if it is
// in none. A person named the directory: where its files lead elsewhere, they are followed.
func FindRepository(dir string) (*Repository, error) { return findRepository(dir, false) }

// findRepository finds a repository. In a directory that an agent writes it has to be there
// itself, or be a working tree that its repository knows: a file that leads to another one
// would bring what that has onto the shelf.
func findRepository(dir string, written bool) (*Repository, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "look at %s: %w", dir, err)
	}
	for at := real; ; at = filepath.Dir(at) {
		if r := repositoryAt(at); r != nil && (!written || !r.led) {
			return r, nil
		}
		if at == filepath.Dir(at) {
			return nil, thole.Errorf(thole.CodeNotFound, "%s is in no git repository", dir).WithHint("name a directory of one with --to")
		}
	}
}

// repositoryAt is the repository whose top, or whose own directory, a directory is.
func repositoryAt(dir string) *Repository {
	at := filepath.Join(dir, ".git")
	st, err := os.Lstat(at)
	switch {
	case err != nil:
		if looksLikeGit(dir) {
			return fill(&Repository{Dir: dir})
		}
		return nil
	case st.IsDir():
		if looksLikeGit(at) {
			return fill(&Repository{Top: dir, Dir: at})
		}
		return nil
	case !st.Mode().IsRegular():
		return nil
	}
	text, ok := strings.CutPrefix(firstLine(dir, ".git"), "gitdir: ")
	if !ok {
		return nil
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	real, err := filepath.EvalSymlinks(text)
	if err != nil || !looksLikeGit(real) {
		return nil
	}
	r := fill(&Repository{Top: dir, Dir: real})
	if r != nil {
		back, err := filepath.EvalSymlinks(firstLine(real, "gitdir"))
		r.led = err != nil || back != at || r.Common == r.Dir
	}
	return r
}

// looksLikeGit reports whether a directory has what every directory of git has, so that
// no other is taken for one because a file says so.
func looksLikeGit(dir string) bool {
	if st, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil || !st.Mode().IsRegular() {
		return false
	}
	for _, name := range []string{"objects", "commondir"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

func fill(r *Repository) *Repository {
	r.Common = r.Dir
	if common := firstLine(r.Dir, "commondir"); common != "" {
		if !filepath.IsAbs(common) {
			common = filepath.Join(r.Dir, common)
		}
		real, err := filepath.EvalSymlinks(common)
		if err != nil || !looksLikeGit(real) || filepath.Dir(r.Dir) != filepath.Join(real, "worktrees") {
			return nil
		}
		r.Common = real
	}
	r.addObjects(filepath.Join(r.Common, "objects"), 0)
	head, _ := r.Head()
	r.SHA256 = len(head.Commit) == 64
	return r
}

func (r *Repository) addObjects(dir string, depth int) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || depth > maxAlternates || slices.Contains(r.Objects, real) {
		return
	}
	if st, err := os.Stat(filepath.Join(real, "pack")); err != nil || !st.IsDir() {
		if st, err := os.Stat(filepath.Join(real, "info")); err != nil || !st.IsDir() {
			return
		}
	}
	r.Objects = append(r.Objects, real)
	text, _ := readSmall(real, "info/alternates", maxSmallFile)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line == "" || line[0] == '#' || line[0] == '"' {
			continue // quoted ones name no directory that we would show
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(real, line)
		}
		r.addObjects(line, depth+1)
	}
}

// Head is what a working tree is at.
type Head struct {
	Commit string // "" before the first
	Branch string // the full name of its ref, "" for none
}

// Head reads what the working tree is at.
func (r *Repository) Head() (Head, error) { return readHead(r.Dir, r.Common) }

// readHead follows HEAD through the files of a directory of git.
func readHead(dir, common string) (Head, error) {
	line := firstLine(dir, "HEAD")
	ref, symbolic := strings.CutPrefix(line, "ref: ")
	if !symbolic {
		if !validID(line) {
			return Head{}, thole.Errorf(thole.CodeUnsupported, "HEAD of the repository cannot be read")
		}
		return Head{Commit: line}, nil
	}
	if !validRef(ref) {
		return Head{}, thole.Errorf(thole.CodeUnsupported, "HEAD of the repository names no branch that can be read")
	}
	if id := firstLine(common, ref); validID(id) {
		return Head{Commit: id, Branch: ref}, nil
	}
	packed, err := readSmall(common, "packed-refs", maxPackedRefs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Head{}, err
	}
	lines := bufio.NewScanner(bytes.NewReader(packed))
	for lines.Scan() {
		if id, name, ok := strings.Cut(lines.Text(), " "); ok && name == ref && validID(id) {
			return Head{Commit: id, Branch: ref}, nil
		}
	}
	return Head{Branch: ref}, nil
}

func validID(id string) bool {
	return (len(id) == 40 || len(id) == 64) && strings.Trim(id, "0123456789abcdef") == ""
}

// validRef takes the names of branches that lead nowhere else.
func validRef(ref string) bool {
	if !strings.HasPrefix(ref, "refs/") || len(ref) > 1000 || beneath.CheckPath(ref) != nil {
		return false
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part[0] == '.' || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") {
			return false
		}
	}
	return !strings.Contains(ref, "..") && !strings.Contains(ref, "@{") && !strings.ContainsFunc(ref, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) })
}

// readSmall reads a regular file below a directory, by names that are no links, and
// refuses one that is longer than it may be.
func readSmall(dir, path string, limit int64) ([]byte, error) {
	root, err := beneath.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	in, name, err := root.Parent(path, false)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = thole.Errorf(thole.CodeInvalid, "%s in %s has more than %d bytes", path, dir, limit)
	}
	return text, err
}

// firstLine is the first line of a small file, "" where there is none.
func firstLine(dir, path string) string {
	text, err := readSmall(dir, path, maxSmallFile)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r")
}

// values reads values of the repository's configuration whose names match. They are read
// in a box and not obeyed; what the configuration includes is left out.
func (r *Repository) values(ctx context.Context, g *git.Runner, names string) (map[string]string, error) {
	uid, err := ownerOf(r.Common)
	if err != nil {
		return nil, err
	}
	out, err := g.Run(ctx, git.Cmd{Dir: "/", Args: []string{"config", "--file", filepath.Join(r.Common, "config"), "--no-includes", "-z", "--get-regexp", names}, Show: []string{r.Common}, Limit: maxSmallFile, UID: uid})
	var failed *git.Error
	if err != nil && (!errors.As(err, &failed) || failed.Exit != 1) { // 1: there are none
		return nil, err
	}
	all := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			all[key] = value
		}
	}
	return all, nil
}

// ownerOf is whose a directory is.
func ownerOf(dir string) (int, error) {
	d, err := beneath.Open(dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	return d.Owner()
}

// run runs git on the repository, in a box that shows it writable.
func (r *Repository) run(ctx context.Context, g *git.Runner, c git.Cmd) (out []byte, err error) {
	if c.UID, err = ownerOf(r.Common); err != nil {
		return nil, err
	}
	env := map[string]string{"GIT_DIR": r.Dir}
	if c.Dir = r.Dir; r.Top != "" {
		c.Dir, env["GIT_WORK_TREE"] = r.Top, r.Top
		c.Write = append(c.Write, r.Top)
	}
	maps.Copy(env, c.Env)
	c.Env, c.Write = env, append(c.Write, r.Dir, r.Common)
	for _, dir := range []string{r.Dir, r.Common} {
		for _, name := range []string{"config", "config.worktree", "hooks", "info", "modules"} { // what git obeys
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				c.Show = append(c.Show, filepath.Join(dir, name))
			}
		}
	}
	for _, dir := range r.Objects {
		if !beneath.Within(dir, c.Write) { // its own are writable with it
			c.Show = append(c.Show, dir)
		}
	}
	return g.Run(ctx, c)
}
