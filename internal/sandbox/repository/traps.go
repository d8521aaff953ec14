package repository

import (
	"fmt"
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

// Traps are what was set since the guards were made.
func (p Place) Traps(g *Guards) (all []Trap, err error) {
	if p.Git == "" {
		return nil, nil
	}
	for git := range g.repositories {
		if path := filepath.Join(git, "commondir"); exists(path) {
			all = append(all, Trap{Path: path, What: "leads git to another configuration"})
		}
	}
	links, err := gitlinks(p.Git, p.Common)
	if err != nil {
		if g.links == nil {
			return all, nil // it could not be read before either
		}
		return all, err
	}
	for _, link := range slices.Sorted(maps.Keys(links)) {
		if !g.links[link] && g.links != nil {
			all = append(all, Trap{Path: filepath.Join(p.Top, filepath.FromSlash(link)), What: "is a repository that was put into the index", link: true})
		}
	}
	return all, nil
}

// Trap is one of them.
type Trap struct {
	Path, What string
	link       bool
}

// disarmed is what the git directory of a repository is called that was a trap.
const disarmed = ".git.disarmed"

// Disarm makes sure that git runs nothing because of a trap. Nothing runs in the box any
// more. A repository whose configuration names no program stays as it is: it may be its
// owner who added it, and from now on it is guarded.
func (t Trap) Disarm() error {
	if !t.link {
		return os.Remove(t.Path)
	}
	git := filepath.Join(t.Path, ".git")
	if !exists(git) || harmless(t.Path) {
		return nil
	}
	to := filepath.Join(t.Path, disarmed)
	for n := 2; exists(to); n++ {
		to = filepath.Join(t.Path, fmt.Sprintf("%s-%d", disarmed, n))
	}
	return os.Rename(git, to)
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
	if fi, err := os.Lstat(filepath.Join(git, "config")); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxFile {
		return false
	}
	for _, e := range entries(filepath.Join(git, "config")) {
		if !slices.Contains(known, e.key) {
			return false
		}
	}
	hooks, _ := os.ReadDir(filepath.Join(git, "hooks"))
	if slices.ContainsFunc(hooks, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".sample") }) {
		return false
	}
	links, err := gitlinks(git, git)
	return err == nil && len(links) == 0
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
