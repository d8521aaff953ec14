//go:build unix

package beneath

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// graft is a name of a directory that leads to another directory. What the file system
// has under the name is seen under another one, own, and nothing else is.
type graft struct {
	name, own string
	to        *Dir
}

// Graft lets a name in d lead to another directory, which is d's from now on. What
// really has the name is found under own, and what really is called own is not found
// at all. The graft cannot be renamed, replaced or removed.
func (d *Dir) Graft(name, own string, to *Dir) { d.graft = &graft{name, own, to} }

// at is where the kernel finds a name.
func (d *Dir) at(name string) (fd int, real string) {
	switch {
	case d.graft == nil:
	case name == d.graft.name:
		return d.graft.to.fd(), "."
	case name == d.graft.own:
		return d.fd(), d.graft.name
	}
	return d.fd(), name
}

func (d *Dir) grafted(name string) bool { return d.graft != nil && name == d.graft.name }

// names are those of the directory as it is seen.
func (g *graft) names(real []string, err error) ([]string, error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // Nowhere
	}
	seen := slices.DeleteFunc(real, func(name string) bool { return name == g.own })
	if i := slices.Index(seen, g.name); i >= 0 {
		seen[i] = g.own
	}
	return append(seen, g.name), err
}

// Nowhere is a directory in which there is nothing and nothing can be made: one that is
// removed already. It is for a graft alone.
func Nowhere() (*Dir, error) {
	path, err := os.MkdirTemp("", "thole-nowhere-")
	if err != nil {
		return nil, err
	}
	d, err := Open(path)
	if rerr := os.Remove(path); rerr != nil && err == nil {
		return nil, errors.Join(rerr, d.Close())
	}
	return d, err
}
