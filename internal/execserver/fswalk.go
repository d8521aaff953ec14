//go:build linux

package execserver

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/protocol/exec"
)

const (
	walkDepth       = 64
	walkDirectories = 10_000
	walkEntries     = 50_000
	walkBudget      = 4 << 20 // bytes of paths in an answer, with walkOverhead each
	walkOverhead    = 64
)

// walkTree answers fs/walk: breadth first, names sorted per directory.
func (s scope) walkTree(root string, o exec.WalkOptions) (exec.WalkResult, error) {
	if o.MaxDirectories == 0 || o.MaxEntries == 0 {
		return exec.WalkResult{}, inputError("filesystem walk limits must be greater than zero")
	}
	if o.MaxDepth > walkDepth || o.MaxDirectories > walkDirectories || o.MaxEntries > walkEntries {
		return exec.WalkResult{}, inputError("filesystem walk limits exceed maximums: depth=64, directories=10000, entries=50000")
	}
	t := tree{scope: s, opts: o, seen: map[string]bool{}, budget: walkBudget}
	t.res = exec.WalkResult{Entries: []exec.WalkEntry{}, Errors: []exec.WalkError{}}
	st, err := s.target(root)
	if err != nil {
		return t.res, err
	}
	if kindOf(&st) != unix.S_IFDIR {
		return t.res, nil
	}
	if meta, err := s.metadata(root); err != nil || meta.IsSymlink && !o.FollowDirectorySymlinks {
		return t.res, err
	}
	t.enter(root, 0)
	for dirs := uint64(0); len(t.queue) > 0 && !t.res.Truncated; dirs++ {
		if dirs == o.MaxDirectories {
			t.res.Truncated = true
			break
		}
		next := t.queue[0]
		t.queue = t.queue[1:]
		t.visit(next)
	}
	return t.res, nil
}

type tree struct {
	scope
	opts   exec.WalkOptions
	queue  []branch
	seen   map[string]bool // real paths of directories entered
	budget int
	res    exec.WalkResult
}

type branch struct {
	path  string
	depth uint64
}

// enter queues a directory unless it was entered before under its real path. One that
// cannot be entered is queued too: the visit reports why.
func (t *tree) enter(path string, depth uint64) {
	if t.opts.FollowDirectorySymlinks {
		if real, err := t.canonicalize(path); err == nil {
			if t.seen[real] {
				return
			}
			t.seen[real] = true
		}
	}
	t.queue = append(t.queue, branch{path, depth})
}

func (t *tree) visit(b branch) {
	names, err := t.list(b.path)
	if err != nil {
		t.res.Errors = append(t.res.Errors, exec.WalkError{Path: exec.FormatURI(b.path), Message: osText(err)})
		return
	}
	slices.SortFunc(names, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range names {
		path := filepath.Join(b.path, e.name)
		kind := e.kind
		if kind == unix.S_IFLNK {
			st, err := t.target(path)
			if err != nil || !t.opts.FollowDirectorySymlinks || kindOf(&st) != unix.S_IFDIR {
				continue
			}
			kind = unix.S_IFDIR
		}
		switch kind {
		case unix.S_IFREG:
			if !t.add(path, "file") {
				return
			}
		case unix.S_IFDIR:
			if !t.add(path, "directory") {
				return
			}
			hidden := t.opts.PruneHiddenDirectories && strings.HasPrefix(e.name, ".")
			if !hidden && b.depth < t.opts.MaxDepth {
				t.enter(path, b.depth+1)
			}
		}
	}
}

func (t *tree) add(path, kind string) bool {
	uri := exec.FormatURI(path)
	t.budget -= len(uri) + walkOverhead
	if uint64(len(t.res.Entries)) == t.opts.MaxEntries || t.budget < 0 {
		t.res.Truncated = true
		return false
	}
	t.res.Entries = append(t.res.Entries, exec.WalkEntry{Path: uri, Kind: kind})
	return true
}
