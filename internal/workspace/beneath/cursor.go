package beneath

import (
	"slices"
	"strings"
)

// Cursor opens parents of paths that come in order of directories.
type Cursor struct {
	Root *Dir
	path string
	dir  *Dir
}

// Parent opens the directory of a path and returns the last name. The directory is
// the cursor's.
func (c *Cursor) Parent(path string, create bool) (*Dir, string, error) {
	prefix, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		prefix, name = path[:i], path[i+1:]
	}
	if c.dir != nil && c.path == prefix {
		return c.dir, name, CheckPath(path)
	}
	from, rest := c.Root, path
	if c.dir != nil && Within(prefix, c.path) { // deeper still
		from, rest = c.dir, path[len(c.path)+1:]
	}
	dir, name, err := from.Parent(rest, create)
	if err != nil {
		return nil, "", err
	}
	c.Close()
	c.path, c.dir = prefix, dir
	return dir, name, nil
}

// Forget drops a directory that is about to be replaced.
func (c *Cursor) Forget(path string) {
	if c.dir != nil && Within(c.path, path) {
		c.Close()
	}
}

// Close drops the open directory.
func (c *Cursor) Close() {
	if c.dir != nil {
		c.dir.Close()
		c.dir = nil
	}
}

// Within reports whether path is one of roots or lies below one. Nothing lies below "".
func Within(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool {
		return path == r || r != "" && strings.HasPrefix(path, strings.TrimSuffix(r, "/")+"/")
	})
}
