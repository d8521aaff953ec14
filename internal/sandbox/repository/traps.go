package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// No mount keeps an agent from two things that make git run what it wants: a file that
// leads a git directory to another one's configuration, which breaks git for its owner
// wherever an empty one stands in its place, and a further repository that is put into the
// index, into which git goes by itself. They are seen when they happen; the sentinel
// ends the box, and then disarms them.

// Traps are what was set since the guards were made. The error says that an index cannot be
// read any more.
func (p Place) Traps(g *Guards) (all []Trap, err error) {
	for _, d := range g.repositories {
		if path := filepath.Join(d.path, "commondir"); d.common == d.path && exists(path) {
			all = append(all, Trap{Path: path, What: "leads git to another configuration"})
		}
		if d.links == nil {
			continue // it could not be read before either
		}
		links, broken := gitlinks(d.path, d.common)
		if broken != nil {
			err = broken
		}
		for _, link := range slices.Sorted(maps.Keys(links)) {
			if d.links[link] {
				continue
			}
			for _, top := range d.tops {
				all = append(all, Trap{Path: top + "/" + link, What: "is a repository that was put into the index", place: &p, guards: g})
			}
			if len(d.tops) == 0 {
				all = append(all, Trap{Path: filepath.Join(d.path, "index"), What: "has another repository", place: &p, guards: g})
			}
		}
	}
	return all, err
}

// Trap is one of them.
type Trap struct {
	Path, What string
	place      *Place // for a repository in an index
	guards     *Guards
}

// disarmed is what the git directory of a repository is called that was a trap.
const disarmed = ".git.disarmed"

// Disarm makes sure that git runs nothing because of a trap. Nothing runs in the box any
// more. A repository whose configuration names no program stays as it is: it may be its
// owner who added it, and from now on it is guarded.
func (t Trap) Disarm() error {
	if t.place == nil {
		return os.Remove(t.Path)
	}
	top, err := filepath.EvalSymlinks(t.Path)
	if errors.Is(err, fs.ErrNotExist) { // also where the work tree is not shown, and its index names what is next to it
		top, err = filepath.EvalSymlinks(filepath.Clean(t.Path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	git := filepath.Join(top, ".git")
	if !exists(git) || !t.place.writable(git) || t.guards.hold(git) || harmless(top) {
		return nil
	}
	to := filepath.Join(top, disarmed)
	for n := 2; exists(to); n++ {
		to = filepath.Join(top, fmt.Sprintf("%s-%d", disarmed, n))
	}
	return os.Rename(git, to)
}

// hold reports whether a .git was guarded all the time: it is its owner's.
func (g *Guards) hold(git string) bool {
	return slices.ContainsFunc(g.repositories, func(d *gitDir) bool { return d.path == git }) ||
		slices.ContainsFunc(g.Mounts, func(m Mount) bool { return m.Path == git && !m.Write })
}

// known are keys of a configuration that name no program and lead nowhere.
var known = []string{"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.worktree", "core.symlinks", "core.ignorecase", "core.precomposeunicode",
	"extensions.objectformat", "extensions.refstorage", "remote.url", "remote.fetch", "branch.remote", "branch.merge", "user.name", "user.email", "submodule.url", "submodule.active"}

// harmless reports whether git, when it goes into a repository, runs nothing.
func harmless(top string) bool {
	git := filepath.Join(top, ".git")
	fi, err := os.Lstat(git)
	if err != nil || fi.Mode()&os.ModeSymlink != 0 {
		return false
	}
	if !fi.IsDir() {
		if git, err = leads(git, "gitdir: ", top); err != nil {
			return false
		}
	}
	if exists(filepath.Join(git, "commondir")) || exists(filepath.Join(git, "config.worktree")) {
		return false
	}
	if fi, err := os.Lstat(filepath.Join(git, "config")); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxConfig {
		return false
	}
	all, err := entries(filepath.Join(git, "config"))
	if err != nil || slices.ContainsFunc(all, func(e entry) bool { return !slices.Contains(known, e.key()) }) {
		return false
	}
	hooks, _ := os.ReadDir(filepath.Join(git, "hooks"))
	if slices.ContainsFunc(hooks, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".sample") }) {
		return false
	}
	links, err := gitlinks(git, git)
	return err == nil && len(links) == 0
}
