package branch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// repository is one of this machine, found without git.
type repository struct {
	top     string   // of its working tree, "" if it has none
	gitDir  string   // of this working tree
	common  string   // of all working trees
	objects []string // its own, then those that it borrows from
	uid     int      // its owner, where we are root
	filters []string // that its configuration names
}

// shown is what a box has to show of it.
func (r repository) shown() []string {
	all := append([]string{r.gitDir, r.common}, r.objects...)
	if r.top != "" {
		all = append(all, r.top)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// name is what the repository is called: the top of its working tree.
func (r repository) name() string {
	if r.top != "" {
		return r.top
	}
	return r.common
}

// find looks for the repository that a directory is in. All paths of it are absolute and
// without links.
func find(path string) (r repository, below string, err error) {
	if !filepath.IsAbs(path) {
		return r, "", thole.Errorf(thole.CodeInvalid, "%q is not an absolute path", path).WithHint("name the repository by its full path, or by a URL")
	}
	start, err := filepath.EvalSymlinks(path)
	if err != nil {
		return r, "", thole.Errorf(thole.CodeNotFound, "repository %s cannot be read: %w", path, err).WithHint("correct the path")
	}
	if st, err := os.Stat(start); err != nil || !st.IsDir() {
		return r, "", thole.Errorf(thole.CodeInvalid, "repository %s is not a directory", path).WithHint("name the directory of a working tree, or of a bare repository")
	}
	for at := start; ; at = filepath.Dir(at) {
		found, err := r.open(at)
		if err != nil {
			return r, "", thole.Errorf(thole.CodeInvalid, "repository %s cannot be used: %w", at, err).WithHint("git -C %s status shows whether git can", at)
		}
		if found {
			if r.top != "" {
				below, _ = filepath.Rel(r.top, start)
			}
			if below == "." || strings.HasPrefix(below, "..") {
				below = ""
			}
			return r, below, nil
		}
		if at == "/" {
			return r, "", thole.Errorf(thole.CodeNotFound, "%s is in no git repository", path).
				WithHint("git init && git add -A && git commit makes one; without --repo the thread starts with no files")
		}
	}
}

// open reads what is in one directory. A repository that another person packed may lead to
// another one of the user's, which agents would then see: what leads out of it is followed
// only where the other end leads back.
func (r *repository) open(dir string) (bool, error) {
	dot := filepath.Join(dir, ".git")
	st, err := os.Lstat(dot)
	switch {
	case err == nil && st.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(dot)
		return false, fmt.Errorf(".git is a link to %s; name that directory itself", to)
	case err == nil && st.IsDir() && layout(dot):
		r.top, r.gitDir, r.common = dir, dot, dot
	case err == nil && st.Mode().IsRegular():
		if err := r.follow(dir, dot); err != nil {
			return false, err
		}
	case layout(dir):
		r.gitDir, r.common = dir, dir
		if filepath.Base(dir) == ".git" {
			r.top = filepath.Dir(dir)
		}
	default:
		return false, nil
	}
	if _, err := os.Lstat(filepath.Join(r.common, "commondir")); err == nil {
		return false, fmt.Errorf("%s is a part of another repository; name its working tree", r.common)
	}
	if r.objects, err = objectDirs(filepath.Join(r.common, "objects"), 0); err != nil {
		return false, err
	}
	r.uid = owner(r.common)
	return true, nil
}

// follow reads the file .git of a worktree or a submodule.
func (r *repository) follow(dir, dot string) error {
	text, err := small(dot)
	if err != nil {
		return err
	}
	to, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return errors.New(".git is a file that leads nowhere")
	}
	gitDir, err := filepath.EvalSymlinks(resolve(dir, to))
	if err != nil {
		return err
	}
	r.top, r.gitDir, r.common = dir, gitDir, gitDir
	strange := fmt.Errorf(".git leads to %s, which does not lead back; name that directory itself", gitDir)
	to, err = small(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) { // of a submodule
		for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
			if within(gitDir, filepath.Join(at, ".git", "modules")) {
				return nil
			}
			if at == "/" {
				return strange
			}
		}
	}
	if err != nil {
		return err
	}
	if r.common, err = filepath.EvalSymlinks(resolve(gitDir, to)); err != nil {
		return err
	}
	back, err := small(filepath.Join(gitDir, "gitdir"))
	if err == nil {
		back, err = filepath.EvalSymlinks(resolve(gitDir, back))
	}
	if err != nil || back != dot || filepath.Dir(gitDir) != filepath.Join(r.common, "worktrees") {
		return strange
	}
	return nil
}

// borrows reports whether objects of the repository lie in another one.
func (r repository) borrows() bool {
	return len(r.objects) != 1 || r.objects[0] != filepath.Join(r.common, "objects")
}

// layout reports whether a directory looks like a git directory.
func layout(dir string) bool {
	for _, name := range []string{"HEAD", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	_, objects := os.Stat(filepath.Join(dir, "objects"))
	_, common := os.Stat(filepath.Join(dir, "commondir"))
	return objects == nil || common == nil
}

// Bounds of what a repository borrows: git itself follows five.
const (
	maxDepth   = 5
	maxObjects = 16
)

// objectDirs are a directory of objects and those that it borrows from.
func objectDirs(dir string, depth int) ([]string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	all := []string{real}
	text, err := small(filepath.Join(real, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, `"`) {
			if line, err = strconv.Unquote(line); err != nil {
				return nil, fmt.Errorf("%s borrows from a directory with an odd name", real)
			}
		}
		if depth >= maxDepth {
			return nil, fmt.Errorf("%s borrows through more than %d repositories", real, maxDepth)
		}
		more, err := objectDirs(resolve(real, line), depth+1)
		if err != nil {
			return nil, fmt.Errorf("it borrows objects that are not there: %w", err)
		}
		if all = append(all, more...); len(all) > maxObjects {
			return nil, fmt.Errorf("it borrows from more than %d repositories", maxObjects)
		}
	}
	return all, nil
}

// quoted is a path in the form of a list of alternates, which is git's and not Go's.
func quoted(path string) string {
	if !strings.ContainsAny(path, "\n\r\"\\:") && !strings.HasPrefix(path, "#") {
		return path
	}
	out := []byte{'"'}
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c == 0x7f:
			out = fmt.Appendf(out, `\%03o`, c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

func resolve(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// maxSmall bounds the files that say where a repository is.
const maxSmall = 64 << 10

// small reads a small regular file, without its last line's end.
func small(path string) (string, error) {
	f, err := plain(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if len(text) > maxSmall {
		return "", fmt.Errorf("%s is too long", path)
	}
	return strings.TrimRight(string(text), "\r\n"), err
}

// plain opens a regular file: no pipe, for which one would wait, and no link, which may
// lead to a file that agents must not read.
func plain(path string) (*os.File, error) {
	dir, err := beneath.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Open(filepath.Base(path))
}

// owner is who owns a path, 0 unless we are root and could be that user.
func owner(path string) int {
	if os.Geteuid() != 0 {
		return 0
	}
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0
	}
	return int(st.Uid)
}
