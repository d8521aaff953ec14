package repository

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Guards are what a box lays over the repositories of a place.
type Guards struct {
	// Mounts are paths to bind over themselves, parents first.
	Mounts []Mount

	repositories []*gitDir
	configs      map[string]settings // of those, where it could be read

	mu    sync.Mutex // guards what follows
	stays []*os.File
	kept  []*os.File // what Mounts are of: nothing else gets its number while it is open
}

// Mount is a path that is bound over itself: read-only, or writable, so that nobody can
// move it away with what is in it.
type Mount struct {
	Path  string
	Write bool
	Was   os.FileInfo // what was there
}

// Guard finds what agents must not change of the repositories of a place, and makes the
// names that are not there, so that agents cannot: they are removed by Release.
func (p Place) Guard() (_ *Guards, err error) {
	c := &collector{place: p, roots: append([]string{p.Dir}, p.Outside()...), mounts: map[string]Mount{}, known: map[string]*gitDir{}}
	g := &Guards{configs: map[string]settings{}}
	defer func() {
		if g.stays = c.stays; err != nil {
			g.Release()
		}
	}()
	for _, n := range p.Named {
		if !filepath.IsAbs(n.Path) {
			c.hooks = append(c.hooks, n.Path)
		} else if err := c.named(n.Path, n.Hooks); err != nil {
			return nil, err
		}
	}
	if p.Git != "" {
		if err := c.own(); err != nil {
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
	g.repositories = c.found
	for _, d := range c.found {
		for _, path := range d.configs() {
			if s, ok := settingsOf(path); ok {
				g.configs[path] = s
			}
		}
	}
	for path, m := range c.mounts {
		if m.Write && c.covered(path) {
			continue
		}
		if err := g.keep(&m); err != nil {
			return nil, err
		}
		g.Mounts = append(g.Mounts, m)
	}
	slices.SortFunc(g.Mounts, func(a, b Mount) int { return cmp.Compare(a.Path, b.Path) })
	return g, nil
}

// keep holds what a mount is of for as long as there are guards.
func (g *Guards) keep(m *Mount) error {
	fd, err := unix.Open(m.Path, toHold|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("guard %s: %w", m.Path, err)
	}
	f := os.NewFile(uintptr(fd), m.Path)
	g.kept = append(g.kept, f)
	if fi, err := f.Stat(); err != nil || !os.SameFile(fi, m.Was) {
		return fmt.Errorf("guard %s: it changes all the time", m.Path)
	}
	return nil
}

type collector struct {
	place  Place
	roots  []string // what agents write in, each of which is a mount
	hooks  []string // relative to each work tree
	mounts map[string]Mount
	stays  []*os.File

	known map[string]*gitDir
	found []*gitDir
	below int // how many of them are of repositories below
	seen  int // names in directories of submodules
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
	for above := filepath.Dir(path); above != root && beneath.Within(above, root); above = filepath.Dir(above) {
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
		if beneath.Within(path, r) && len(r) > len(root) {
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
