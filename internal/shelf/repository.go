package shelf

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// userRepo is a repository of this machine that is not ours, as its files say. Nothing
// of its configuration was obeyed to find it.
type userRepo struct {
	repository.Place
	sha256 bool
}

// Bounds of what is read of a repository that is not ours.
const (
	maxSmallFile  = 64 << 10
	maxPackedRefs = 64 << 20
)

// findRepository finds the repository that a directory is in, thole.CodeNotFound if it is
// in none.
func findRepository(dir string) (*userRepo, error) {
	at, err := repository.Find(dir)
	if err != nil {
		return nil, err
	}
	r := &userRepo{Place: at}
	head, _ := r.Head() // without one it has no commit to go by
	r.sha256 = len(head.Commit) == 64
	return r, nil
}

// Head is what a working tree is at.
type Head struct {
	Commit string // "" before the first
	Branch string // the full name of its ref, "" for none
}

// Head reads what the working tree is at.
func (r *userRepo) Head() (Head, error) { return readHead(r.Git, r.Common) }

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
	packed, err := beneath.ReadFile(common, "packed-refs", maxPackedRefs)
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

// firstLine is the first line of a small file, "" where there is none.
func firstLine(dir, path string) string {
	text, err := beneath.ReadFile(dir, path, maxSmallFile)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r")
}

// values reads values of the repository's configuration whose names match. They are read
// in a box and not obeyed; what the configuration includes is left out.
func (r *userRepo) values(ctx context.Context, g *git.Runner, names string) (map[string]string, error) {
	out, err := g.Run(ctx, git.Cmd{Dir: "/", Args: []string{"config", "--file", filepath.Join(r.Common, "config"), "--no-includes", "-z", "--get-regexp", names}, Show: []string{r.Common}, Limit: maxSmallFile, UID: r.UID})
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

// settings are what configuration says in the repository, the user's own and its own.
func (r *userRepo) settings(ctx context.Context, g *git.Runner) (map[string]string, error) {
	c := git.Cmd{Dir: r.Common, Show: []string{r.Git, r.Common}, Env: map[string]string{"GIT_DIR": r.Git, "GIT_WORK_TREE": r.Name()}, UID: r.UID}
	if r.Top != "" {
		c.Show = append(c.Show, r.Top)
	}
	return theUser(g).SettingsIn(ctx, c, r.UID == os.Geteuid())
}

// run runs git on the repository, in a box that shows it writable.
func (r *userRepo) run(ctx context.Context, g *git.Runner, c git.Cmd) ([]byte, error) {
	c.UID = r.UID
	env := map[string]string{"GIT_DIR": r.Git}
	if c.Dir = r.Git; r.Top != "" {
		c.Dir, env["GIT_WORK_TREE"] = r.Top, r.Top
		c.Write = append(c.Write, r.Top)
	}
	maps.Copy(env, c.Env)
	c.Env, c.Write = env, append(c.Write, r.Git, r.Common)
	for _, dir := range []string{r.Git, r.Common} {
		for _, name := range []string{"config", "config.worktree", "hooks", "info", "modules"} { // what git obeys
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				c.Show = append(c.Show, filepath.Join(dir, name))
			}
		}
	}
	for _, dir := range r.Objects {
		if !beneath.Within(dir, c.Write...) { // its own are writable with it
			c.Show = append(c.Show, dir)
		}
	}
	c.Files = r.Top
	return g.Run(ctx, c)
}
