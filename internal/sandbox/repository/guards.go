package repository

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// Guards are what a box lays over the repositories of a place.
type Guards struct {
	// Mounts are paths to bind over themselves, parents first.
	Mounts []Mount

	repositories map[string]bool // git directories that lead to no other
	links        map[string]bool // in the index; nil where it cannot be read

	mu    sync.Mutex // guards what follows
	stays []*os.File
}

// Mount is a path that is bound over itself: read-only, or writable, so that nobody can
// move it away with what is in it.
type Mount struct {
	Path  string
	Write bool
	Was   os.FileInfo // what was there
}

// How far nested repositories are looked for. What is deeper or beyond is like one that an
// agent makes: git runs what its configuration says for whom works in it.
const (
	maxDepth   = 8
	maxEntries = 50_000
	maxNested  = 200
)

// Guard finds what agents must not change of the repositories of a place, and makes the
// names that are not there, so that agents cannot: they are removed by Release. hooks are
// directories of hooks that the user's own configuration names.
func (p Place) Guard(hooks []string) (_ *Guards, err error) {
	c := &collector{place: p, roots: append([]string{p.Dir}, p.Outside()...), mounts: map[string]Mount{}, repositories: map[string]bool{}}
	defer func() {
		if err != nil {
			(&Guards{stays: c.stays}).Release()
		}
	}()
	if p.Git != "" {
		if err := c.repository(slices.Clone(hooks)); err != nil {
			return nil, err
		}
	}
	if p.Top != p.Dir { // a repository that an agent makes here, with or without .git
		for _, name := range []string{".git", "HEAD"} {
			if err := c.cover(filepath.Join(p.Dir, name), true, false); err != nil {
				return nil, err
			}
		}
	}
	c.nested()
	g := &Guards{stays: c.stays, repositories: c.repositories, links: c.links}
	for path, m := range c.mounts {
		if m.Write && c.covered(path) {
			continue
		}
		g.Mounts = append(g.Mounts, m)
	}
	slices.SortFunc(g.Mounts, func(a, b Mount) int { return cmp.Compare(a.Path, b.Path) })
	return g, nil
}

type collector struct {
	place  Place
	roots  []string // what agents write in, each of which is a mount
	mounts map[string]Mount
	stays  []*os.File

	repositories, links map[string]bool
}

// repository covers that of the place.
func (c *collector) repository(hooks []string) error {
	if file := filepath.Join(c.place.Top, ".git"); file != c.place.Git && within(file, c.place.Dir) {
		if err := c.cover(file, false, true); err != nil {
			return err
		}
	}
	for _, git := range slices.Compact([]string{c.place.Common, c.place.Git}) {
		if err := c.gitDir(git, true); err != nil {
			return err
		}
		for _, name := range []string{"config", "config.worktree"} {
			for _, file := range included(filepath.Join(git, name), c.place.Home, &hooks) {
				if err := c.named(file, false); err != nil {
					return err
				}
			}
		}
	}
	for _, dir := range hooks {
		if err := c.named(expand(dir, c.place.Top, c.place.Home), true); err != nil {
			return err
		}
	}
	// Git goes into what the index says is another repository, if there is one by now.
	if c.links, _ = gitlinks(c.place.Git, c.place.Common); len(c.links) > maxNested {
		return refuse(c.place.Top, "has more than %d submodules", maxNested).WithHint("start the thread on a branch: --repo %s", c.place.Top)
	}
	for link := range c.links {
		path := filepath.Join(c.place.Top, filepath.FromSlash(link))
		if exists(filepath.Join(path, ".git")) {
			path = filepath.Join(path, ".git")
		}
		if c.root(path) == "" {
			continue
		}
		if err := c.cover(path, true, false); err != nil {
			return err
		}
	}
	return nil
}

// named covers what a configuration names, where agents could write it.
func (c *collector) named(path string, dir bool) error {
	if c.root(path) == "" {
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return refuse(path, "is named by the configuration of git and led to by a symbolic link, which an agent could replace").WithHint("name %s itself in the configuration", real)
	}
	return c.cover(path, dir, true)
}

// gitDir covers one git directory. In that of the place itself nothing may be missing:
// what cannot be covered there is refused.
func (c *collector) gitDir(git string, strict bool) error {
	type name struct {
		path string
		dir  bool
	}
	names := []name{{"config", false}, {"config.worktree", false}, {"hooks", true}, {"info", true}, {"objects/info/alternates", false}}
	if exists(filepath.Join(git, "commondir")) { // of a linked work tree
		names = []name{{"commondir", false}, {"gitdir", false}, {"config.worktree", false}}
	} else {
		c.repositories[git] = true
	}
	for _, n := range names {
		if err := c.cover(filepath.Join(git, n.path), n.dir, strict); err != nil {
			return err
		}
	}
	c.modules(filepath.Join(git, "modules"), 0)
	trees, _ := os.ReadDir(filepath.Join(git, "worktrees"))
	for i, e := range trees {
		if e.IsDir() && i < maxNested {
			_ = c.gitDir(filepath.Join(git, "worktrees", e.Name()), false)
		}
	}
	return nil
}

// modules covers the git directories of submodules, whose names may be paths.
func (c *collector) modules(dir string, depth int) {
	entries, _ := os.ReadDir(dir)
	for i, e := range entries {
		at := filepath.Join(dir, e.Name())
		switch {
		case !e.IsDir() || i >= maxNested || depth > maxDepth:
		case isGitDir(at):
			_ = c.gitDir(at, false)
		default:
			c.modules(at, depth+1)
		}
	}
}

// nested covers the repositories below the directory, the nearest first.
func (c *collector) nested() {
	type level struct {
		dir   string
		depth int
	}
	seen, found := 0, 0
	for todo := []level{{c.place.Dir, 0}}; len(todo) > 0 && seen < maxEntries && found < maxNested; todo = todo[1:] {
		at := todo[0]
		entries, _ := os.ReadDir(at.dir)
		seen += len(entries)
		for _, e := range entries {
			path := filepath.Join(at.dir, e.Name())
			switch {
			case e.Name() != ".git":
				if e.IsDir() && at.depth < maxDepth {
					todo = append(todo, level{path, at.depth + 1})
				}
			case at.depth == 0: // the place's own
			case e.IsDir():
				found++
				_ = c.gitDir(path, false)
			default:
				found++
				_ = c.cover(path, false, false)
			}
		}
	}
}

// cover makes a path read-only, and what is above it immovable. A name that is not there
// is made.
func (c *collector) cover(path string, dir, strict bool) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && isStay(fi):
		if path, fi, err = c.stay(path, dir); err != nil || path == "" {
			return err
		}
	case err != nil && strict:
		return err
	case err != nil:
		return nil //nolint:nilerr // as a repository that an agent makes
	case fi.Mode()&fs.ModeSymlink != 0 || !fi.IsDir() && !fi.Mode().IsRegular():
		if !strict {
			return nil
		}
		return refuse(path, "is a symbolic link or no file, which an agent could replace").WithHint("put the file or directory itself there, or start the thread on a branch: --repo %s", c.place.Top)
	case strict && many(path, fi):
		return refuse(path, "has another name (a hard link), by which an agent could change it").WithHint("replace it by a copy of itself, or start the thread on a branch: --repo %s", c.place.Top)
	}
	c.mounts[path] = Mount{Path: path, Was: fi}
	root := c.root(path)
	for above := filepath.Dir(path); above != root && within(above, root); above = filepath.Dir(above) {
		if _, have := c.mounts[above]; have {
			continue
		}
		if fi, err := os.Lstat(above); err == nil {
			c.mounts[above] = Mount{Path: above, Write: true, Was: fi}
		}
	}
	return nil
}

// root is what agents write in that has a path, the closest.
func (c *collector) root(path string) (root string) {
	for _, r := range c.roots {
		if within(path, r) && len(r) > len(root) {
			root = r
		}
	}
	return root
}

// covered reports whether something above a path is read-only.
func (c *collector) covered(path string) bool {
	for above := filepath.Dir(path); above != "/"; above = filepath.Dir(above) {
		if m, have := c.mounts[above]; have && !m.Write {
			return true
		}
	}
	return false
}

// many reports whether a file, or one in a directory of hooks, has another name.
func many(path string, fi os.FileInfo) bool {
	if !fi.IsDir() {
		st, ok := fi.Sys().(*syscall.Stat_t)
		return ok && st.Nlink > 1
	}
	entries, _ := os.ReadDir(path)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		fi, err := e.Info()
		return err == nil && fi.Mode().IsRegular() && many(path, fi)
	})
}
