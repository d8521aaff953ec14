package repository

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Find locates the repository of a directory that a person named, thole.CodeNotFound where
// it is in none.
func Find(dir string) (Place, error) {
	if !filepath.IsAbs(dir) {
		return Place{}, thole.Errorf(thole.CodeInvalid, "%q is not an absolute path", dir).WithHint("name the directory by its full path")
	}
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Place{}, thole.Errorf(thole.CodeNotFound, "look at %s: %w", dir, err).WithHint("correct the path")
	case err != nil:
		return Place{}, thole.Errorf(thole.CodeInvalid, "look at %s: %w", dir, err).WithHint("correct the path")
	}
	if fi, err := os.Stat(real); err != nil || !fi.IsDir() {
		return Place{}, refuse(dir, "is not a directory").WithHint("name the directory of a work tree, or of a bare repository")
	}
	p, err := Locate(real, nil)
	if err == nil && p.Git == "" {
		err = thole.Errorf(thole.CodeNotFound, "%s is in no git repository", dir).WithHint("name a directory of one")
	}
	return p, err
}

// Locate finds the repository of a directory, which is absolute and without links, by the
// rule of this package. allowed says why a directory cannot be shown to agents: such a work
// tree does not count, and a git directory like that is refused. nil allows all.
func Locate(dir string, allowed func(string) error) (Place, error) {
	if allowed == nil {
		allowed = func(string) error { return nil }
	}
	none := Place{Dir: dir}
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir && allowed(at) != nil {
			return none, nil //nolint:nilerr // without a repository
		}
		p := none
		found, err := p.open(at, allowed)
		if err == nil && found {
			err = p.findObjects(allowed)
		}
		switch {
		case err != nil:
			return none, err
		case found:
			return p, nil
		case at == filepath.Dir(at):
			return none, nil
		}
	}
}

// open looks for the repository whose work tree, or whose git directory, a directory is.
func (p *Place) open(at string, allowed func(string) error) (bool, error) {
	file := filepath.Join(at, ".git")
	fi, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.bare(at)
	case err != nil:
		return false, refuse(file, "cannot be looked at: %w", err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return false, refuse(file, "is a symbolic link, which an agent could replace").
			WithHint("a file with the line \"gitdir: PATH\" in its place does the same; or start the thread on a branch: --repo PATH")
	case fi.Mode().IsRegular():
		if err := p.linked(at, file, allowed); err != nil {
			return false, err
		}
	case !fi.IsDir():
		return false, refuse(file, "is neither a directory nor a file").WithHint("remove it if you did not make it")
	case !isGitDir(file):
		return false, nil
	default:
		p.Top, p.Git, p.Common = at, file, file
	}
	return true, errors.Join(p.leadsNowhere(), p.belongsToOne(at, file, p.Git, p.Common))
}

// bare takes a directory for a git directory, if it is one.
func (p *Place) bare(at string) (bool, error) {
	if isFile(filepath.Join(at, "HEAD")) && isFile(filepath.Join(at, "commondir")) {
		return false, refuse(at, "is a part of another repository").WithHint("name the work tree")
	}
	if !isGitDir(at) {
		return false, nil
	}
	p.Git, p.Common = at, at
	if filepath.Base(at) == ".git" {
		p.Top = filepath.Dir(at)
		return true, p.belongsToOne(p.Top, at)
	}
	return true, p.belongsToOne(at)
}

// linked fills in the git directory that the .git file of a work tree names. It must name
// the work tree in turn: a file alone, which anybody may have packed, opens nothing.
func (p *Place) linked(top, file string, allowed func(string) error) error {
	git, err := leads(file, "gitdir: ", top)
	if err != nil {
		return refuse(file, "leads nowhere: %w", err).WithHint("git worktree repair, in the main work tree, sets it right")
	}
	common := git
	if exists(filepath.Join(git, "commondir")) {
		if common, err = leads(filepath.Join(git, "commondir"), "", git); err != nil {
			return refuse(file, "leads to %s, which has no repository: %w", git, err).WithHint("git worktree prune, in the main work tree, removes what is left of it")
		}
		back, err := readLine(filepath.Join(git, "gitdir"))
		if err != nil || !same(back, file, git) || filepath.Dir(git) != filepath.Join(common, "worktrees") {
			return refuse(file, "leads to %s, which is of another work tree", git).WithHint("git worktree repair, in the main work tree, sets it right")
		}
	} else if bare, _ := configured(filepath.Join(git, "config"), "core.bare"); bare == "true" {
		return refuse(file, "leads to a bare repository, %s: there are no files here", git).WithHint("name one of its work trees, which git worktree list shows; or a branch of it: --repo %s", git)
	} else if !names(git, top) {
		return refuse(file, "leads to %s, which does not say that it belongs here", git).WithHint("if it does: git config core.worktree %s", top)
	}
	if !isGitDir(common) {
		return refuse(file, "leads to %s, which is no repository", common).WithHint("correct the path in it")
	}
	for _, dir := range []string{git, common} {
		if err := allowed(dir); err != nil {
			return err
		}
	}
	p.Top, p.Git, p.Common = top, git, common
	return nil
}

// names reports whether a git directory says that a work tree is its own. With
// configuration per work tree git keeps that in another file.
func names(git, top string) bool {
	for _, name := range []string{"config", "config.worktree"} {
		if tree, _ := configured(filepath.Join(git, name), "core.worktree"); same(tree, top, git) {
			return true
		}
	}
	return false
}

// leadsNowhere refuses a repository that takes its configuration from another one.
func (p *Place) leadsNowhere() error {
	if path := filepath.Join(p.Common, "commondir"); exists(path) {
		return refuse(path, "leads git to the configuration of another repository").WithHint("if you did not make that file, remove it before you run git there")
	}
	return nil
}

// belongsToOne refuses a repository that one user made around files of another, and records
// whose it is.
func (p *Place) belongsToOne(paths ...string) error {
	for i, path := range paths {
		fi, err := os.Lstat(path)
		if err != nil {
			return refuse(path, "cannot be looked at: %w", err)
		}
		uid := int(fi.Sys().(*syscall.Stat_t).Uid)
		if i > 0 && uid != p.UID {
			return refuse(path, "belongs to another user than %s", paths[0]).WithHint("have one user own both, or clone the repository")
		}
		p.UID = uid
	}
	return nil
}

// isGitDir reports whether git would take a directory for a repository.
func isGitDir(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || !fi.IsDir() {
			return false
		}
	}
	fi, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil && !fi.IsDir()
}

// leads reads a file that names a directory, after a prefix, and returns it without links.
func leads(file, prefix, from string) (string, error) {
	line, err := readLine(file)
	if err != nil {
		return "", err
	}
	to, ok := strings.CutPrefix(line, prefix)
	if !ok || to == "" {
		return "", errors.New("it does not name a git directory")
	}
	if to, err = filepath.EvalSymlinks(resolve(from, to)); err != nil {
		return "", err
	}
	if fi, err := os.Stat(to); err != nil || !fi.IsDir() {
		return "", errors.Join(err, errors.New(to+" is not a directory"))
	}
	return to, nil
}

// same reports whether a path, relative to a directory, is another.
func same(path, other, from string) bool {
	if path == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(resolve(from, path))
	return err == nil && real == other
}

func resolve(from, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(from, path)
}

// maxLine bounds the files that say where a repository is, maxConfig a configuration.
const (
	maxLine   = 64 << 10
	maxConfig = 1 << 20
)

// readLine reads a file that says one thing.
func readLine(path string) (string, error) {
	text, err := beneath.ReadFile(filepath.Dir(path), filepath.Base(path), maxLine)
	return strings.TrimRight(string(text), "\r\n"), err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isFile(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

func isLink(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode()&fs.ModeSymlink != 0
}
