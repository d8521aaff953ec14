package repository

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tholehq/thole/internal/workspace/beneath"
)

// gitDir is a git directory, as it was when the guards were made.
type gitDir struct {
	path string
	// common is the one whose configuration counts: path itself, but for a linked work tree.
	common string
	// tops are the work trees that it has, none where it is bare.
	tops []string
	// links are the repositories in the index, nil where that cannot be read.
	links map[string]bool
}

// How far repositories are looked for. Those below the directory that are deeper or beyond
// are like one that an agent makes: git runs what its configuration says for whom works in
// it.
const (
	maxDepth   = 8
	maxEntries = 50_000
	maxNested  = 200
)

// part is how much of a git directory has to be covered.
type part int

const (
	below part = iota // of a repository below: what can be
	inner             // of a submodule or linked work tree, into which git goes by itself: all that its configuration leads to
	whole             // of the place itself: also its own files
)

// gitDirs are those of the place itself.
func (p Place) gitDirs() []string {
	return slices.DeleteFunc(slices.Compact([]string{p.Common, p.Git}), func(dir string) bool { return dir == "" })
}

// gitDir covers one git directory, and those in it. top is a work tree that leads to it, ""
// where none is known.
func (c *collector) gitDir(git, top string, p part) error {
	d, known := c.known[git]
	if !known {
		if p == below && c.below >= maxNested {
			return nil
		}
		if len(c.found)-c.below >= maxNested && p != below {
			return refuse(c.place.Name(), "has more than %d submodules and linked work trees", maxNested).
				WithHint("git worktree prune removes what is left of work trees; or start the thread on a branch: --repo %s", c.place.Name())
		}
		d = newGitDir(git)
		c.known[git], c.found = d, append(c.found, d)
		if p == below {
			c.below++
		}
		if err := c.files(d, p); err != nil {
			return err
		}
	}
	fresh := top != "" && !slices.Contains(d.tops, top)
	if fresh {
		d.tops = append(d.tops, top)
	}
	if known && !fresh {
		return nil
	}
	if err := c.leads(d); err != nil && p != below {
		return err
	}
	if known {
		return nil
	}
	return c.within(d, min(p, inner))
}

// newGitDir looks at a git directory.
func newGitDir(git string) *gitDir {
	d := &gitDir{path: git, common: git}
	if common, err := leads(filepath.Join(git, "commondir"), "", git); err == nil {
		d.common = common
		if file, err := readLine(filepath.Join(git, "gitdir")); err == nil {
			d.tops = append(d.tops, filepath.Dir(resolve(git, file)))
		}
	} else if filepath.Base(git) == ".git" {
		d.tops = append(d.tops, filepath.Dir(git))
	}
	for _, config := range d.configs() {
		if top, ok := configured(config, "core.worktree"); ok && top != "" && d.common == git {
			d.tops = append(d.tops, resolve(git, top))
		}
	}
	d.links, _ = gitlinks(d.path, d.common)
	return d
}

// configs are the files of its configuration.
func (d *gitDir) configs() []string {
	return []string{filepath.Join(d.common, "config"), filepath.Join(d.path, "config.worktree")}
}

// files covers what lies in a git directory.
func (c *collector) files(d *gitDir, p part) error {
	type name struct {
		path string
		dir  bool
	}
	names := []name{{"config", false}, {"config.worktree", false}, {"hooks", true}, {"info", true}, {"objects/info/alternates", false}}
	if exists(filepath.Join(d.path, "commondir")) {
		names = []name{{"commondir", false}, {"gitdir", false}, {"config.worktree", false}}
	}
	for _, n := range names {
		if err := c.cover(filepath.Join(d.path, n.path), n.dir, p == whole); err != nil {
			return err
		}
	}
	return nil
}

// leads covers what a git directory leads to: files that its configuration includes,
// directories of hooks, and the repositories in its index, into which git goes if there is
// one by now.
func (c *collector) leads(d *gitDir) error {
	hooks := slices.Clone(c.hooks)
	for _, config := range d.configs() {
		if fi, err := os.Lstat(config); err == nil && fi.Size() > maxConfig {
			return refuse(config, "has more than %d bytes, so that it is not known what it names", maxConfig).WithHint("start the thread on a branch: --repo %s", c.place.Top)
		}
		files, more, err := included(config, c.place.Home)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := c.named(file, false); err != nil {
				return err
			}
		}
		hooks = append(hooks, more...)
	}
	for _, from := range append([]string{d.path}, d.tops...) { // those that receive run in the git directory
		for _, dir := range hooks {
			if err := c.named(expand(dir, from, c.place.Home), true); err != nil {
				return err
			}
		}
	}
	if len(d.links) > maxNested {
		return refuse(d.path, "has an index with more than %d submodules", maxNested).WithHint("start the thread on a branch: --repo %s", c.place.Top)
	}
	for _, top := range d.tops {
		if file := filepath.Join(top, ".git"); file != d.path && isFile(file) && c.root(file) != "" {
			if err := c.cover(file, false, false); err != nil {
				return err
			}
		}
		for _, link := range slices.Sorted(maps.Keys(d.links)) {
			path := filepath.Join(top, filepath.FromSlash(link))
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
	}
	return nil
}

// within covers the git directories in one, and that of the configuration.
func (c *collector) within(d *gitDir, p part) error {
	if d.common != d.path && c.root(d.common) != "" {
		if err := c.gitDir(d.common, "", p); err != nil {
			return err
		}
	}
	if err := c.modules(filepath.Join(d.path, "modules"), p); err != nil {
		return err
	}
	trees, _ := os.ReadDir(filepath.Join(d.path, "worktrees"))
	for _, e := range trees {
		if !e.IsDir() {
			continue
		}
		if err := c.gitDir(filepath.Join(d.path, "worktrees", e.Name()), "", p); err != nil {
			return err
		}
	}
	return nil
}

// modules covers the git directories of submodules, whose names may be paths.
func (c *collector) modules(dir string, p part) error {
	entries, _ := os.ReadDir(dir)
	if c.seen += len(entries); c.seen > maxEntries {
		if p == below {
			return nil
		}
		return refuse(dir, "has more than %d names", maxEntries).WithHint("remove what is in it and not the repository of a submodule")
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		next := c.modules
		switch {
		case !e.IsDir():
			continue
		case isGitDir(at):
			next = func(at string, p part) error { return c.gitDir(at, "", p) }
		}
		if err := next(at, p); err != nil {
			return err
		}
	}
	return nil
}

// nested covers the repositories below the directory, the nearest first.
func (c *collector) nested() {
	type level struct {
		dir   string
		depth int
	}
	seen := 0
	for todo := []level{{c.place.Dir, 0}}; len(todo) > 0 && seen < maxEntries && c.below < maxNested; todo = todo[1:] {
		at := todo[0]
		entries, _ := os.ReadDir(at.dir)
		seen += len(entries)
		if at.depth > 0 && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "HEAD" }) && isGitDir(at.dir) {
			_ = c.gitDir(at.dir, "", below)
			continue
		}
		for _, e := range entries {
			path := filepath.Join(at.dir, e.Name())
			switch {
			case e.Name() != ".git":
				if e.IsDir() && at.depth < maxDepth {
					todo = append(todo, level{path, at.depth + 1})
				}
			case at.depth == 0: // the place's own
			case e.IsDir():
				_ = c.gitDir(path, at.dir, below)
			default:
				c.file(path, at.dir)
			}
		}
	}
}

// file covers the file .git of a work tree below, and the git directory that it leads to.
func (c *collector) file(path, top string) {
	_ = c.cover(path, false, false)
	git, err := leads(path, "gitdir: ", top)
	if err != nil || c.root(git) == "" {
		return
	}
	if _, known := c.known[git]; known || isGitDir(git) || exists(filepath.Join(git, "commondir")) {
		_ = c.gitDir(git, top, below)
	}
}

// named covers what a configuration names, where agents could write it.
func (c *collector) named(path string, dir bool) error {
	if path == "" {
		return nil
	}
	real, err := c.place.follow(path)
	if err != nil || c.root(real) == "" {
		return err
	}
	return c.cover(real, dir, true)
}

// own covers the repository of the place, with its submodules and linked work trees.
func (c *collector) own() error {
	if file := filepath.Join(c.place.Top, ".git"); file != c.place.Git && beneath.Within(file, c.place.Dir) {
		if err := c.cover(file, false, true); err != nil {
			return err
		}
	}
	for _, git := range c.place.gitDirs() {
		top := ""
		if git == c.place.Git {
			top = c.place.Top
		}
		if err := c.gitDir(git, top, whole); err != nil {
			return err
		}
	}
	return nil
}
