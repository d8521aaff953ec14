// Package repository knows where a directory lies in a git repository, and what of the
// repositories below it git takes programs and paths from: hooks, configuration,
// attributes, and the files that lead to another git directory. A box in which an agent
// works in the user's own directory shows those read-only. The package runs no git, mounts
// nothing, and follows no link.
package repository

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	thole "github.com/tholehq/thole"
)

// Place is where a directory lies.
type Place struct {
	// Dir is the directory, absolute and without links.
	Dir string `json:"dir"`
	// Top is the work tree that Dir is in, "" where there is none.
	Top string `json:"top,omitempty"`
	// Git is that work tree's git directory, Common the one with its objects, branches and
	// configuration. They differ in a linked work tree.
	Git    string `json:"git,omitempty"`
	Common string `json:"common,omitempty"`
	// Objects are directories of objects elsewhere that Common refers to.
	Objects []string `json:"objects,omitempty"`
	// Home is what ~ means in a configuration of the owner's.
	Home string `json:"home,omitempty"`
}

// Outside are the git directories that do not lie in Dir, parents first.
func (p Place) Outside() (out []string) {
	for _, dir := range []string{p.Common, p.Git} {
		if dir != "" && !within(dir, p.Dir) && !slices.ContainsFunc(out, func(have string) bool { return within(dir, have) }) {
			out = append(out, dir)
		}
	}
	return out
}

// Locate finds the repository of a directory, as git would. allowed says why a directory
// cannot be shown to agents: such a work tree does not count, and a git directory like that
// is refused.
func Locate(dir string, allowed func(string) error) (Place, error) {
	p := Place{Dir: dir}
	if slices.Contains(strings.Split(dir, "/"), ".git") {
		return p, refuse(dir, "lies in a git directory").WithHint("name the work tree")
	}
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir && allowed(at) != nil {
			return p, nil //nolint:nilerr // without a repository
		}
		fi, err := os.Lstat(filepath.Join(at, ".git"))
		switch {
		case errors.Is(err, os.ErrNotExist):
			if isGitDir(at) {
				return p, refuse(dir, "lies in a bare repository, %s", at).WithHint("a thread on a branch of it has a work tree: --repo %s", at)
			}
		case err != nil:
			return p, fmt.Errorf("look for a repository: %w", err)
		case fi.Mode()&os.ModeSymlink != 0:
			return p, refuse(filepath.Join(at, ".git"), "is a symbolic link, which an agent could replace").WithHint("a file with the line \"gitdir: PATH\" in its place does the same; or start the thread on a branch: --repo %s", at)
		case fi.IsDir() && isGitDir(filepath.Join(at, ".git")):
			p.Top, p.Git, p.Common = at, filepath.Join(at, ".git"), filepath.Join(at, ".git")
			if path := filepath.Join(p.Git, "commondir"); exists(path) {
				return p, refuse(path, "leads git to the configuration of another repository").WithHint("if you did not make that file, remove it before you run git there")
			}
		case fi.Mode().IsRegular():
			if err := p.linked(at, allowed); err != nil {
				return p, err
			}
		}
		if p.Top != "" {
			p.Objects, err = alternates(filepath.Join(p.Common, "objects"), allowed)
			return p, err
		}
		if at == "/" {
			return p, nil
		}
	}
}

// linked fills in the git directory that the .git file of a work tree names. It must name
// the work tree in turn: a file alone, which anybody may have packed, opens nothing.
func (p *Place) linked(top string, allowed func(string) error) error {
	file := filepath.Join(top, ".git")
	git, err := leads(file, "gitdir: ", top)
	if err != nil {
		return refuse(file, "leads nowhere: %w", err).WithHint("git worktree repair, in the main work tree, sets it right")
	}
	common := git
	if _, err := os.Lstat(filepath.Join(git, "commondir")); err == nil {
		if common, err = leads(filepath.Join(git, "commondir"), "", git); err != nil {
			return refuse(file, "leads to %s, which has no repository: %w", git, err).WithHint("git worktree prune, in the main work tree, removes what is left of it")
		}
		back, err := readLine(filepath.Join(git, "gitdir"))
		if err != nil || !same(back, file, git) {
			return refuse(file, "leads to %s, which is of another work tree", git).WithHint("git worktree repair, in the main work tree, sets it right")
		}
	} else if tree, _ := configured(filepath.Join(git, "config"), "core.worktree"); !same(tree, top, git) {
		return refuse(file, "leads to %s, which does not say that it belongs here", git).WithHint("if it does: git config core.worktree %s", top)
	}
	if !isGitDir(common) {
		return refuse(file, "leads to %s, which is no repository", common)
	}
	for _, dir := range []string{git, common} {
		if err := allowed(dir); err != nil {
			return err
		}
	}
	p.Top, p.Git, p.Common = top, git, common
	return nil
}

// alternates are the directories of objects that one refers to, and so on.
func alternates(objects string, allowed func(string) error) (all []string, err error) {
	const most = 16
	for todo := []string{objects}; len(todo) > 0; todo = todo[1:] {
		text, err := read(filepath.Join(todo[0], "info", "alternates"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for shared objects: %w", err)
		}
		for line := range strings.Lines(text) {
			dir := strings.TrimRight(line, "\r\n")
			if dir == "" || dir[0] == '#' {
				continue
			}
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(todo[0], dir)
			}
			if dir, err = filepath.EvalSymlinks(dir); err != nil || slices.Contains(all, dir) || within(dir, objects) {
				continue // git does without
			}
			if err := allowed(dir); err != nil {
				return nil, err
			}
			if all = append(all, dir); len(all) > most {
				return nil, refuse(objects, "shares the objects of more than %d others", most).WithHint("git repack -a -d, and then remove objects/info/alternates, makes it whole")
			}
			todo = append(todo, dir)
		}
	}
	return all, nil
}

func refuse(path, format string, args ...any) *thole.Error {
	return thole.Errorf(thole.CodeInvalid, "%s "+format, append([]any{path}, args...)...)
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
	if !ok {
		return "", errors.New("it does not name a git directory")
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(from, to)
	}
	if to, err = filepath.EvalSymlinks(to); err != nil {
		return "", err
	}
	if fi, err := os.Stat(to); err != nil || !fi.IsDir() {
		return "", errors.Join(err, fmt.Errorf("%s is not a directory", to))
	}
	return to, nil
}

// same reports whether a path, relative to a directory, is another.
func same(path, other, from string) bool {
	if path == "" {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && real == other
}

// maxFile bounds the files that are read here.
const maxFile = 1 << 20

// read reads a regular file.
func read(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(text), err
}

func readLine(path string) (string, error) {
	text, err := read(path)
	return strings.TrimRight(text, "\r\n"), err
}

// within reports whether a path is a directory or lies in it.
func within(path, dir string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}
