package side

import (
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// joinNames finds the names that are one file. Names outside the workspace count
// for nothing: such a file is kept as one of its own.
func (s *scan) joinNames() {
	if !s.linked {
		return
	}
	type file struct {
		inode uint64
		mtime int64
		mode  uint32
		sum   objects.Sum
	}
	first := map[file]int{}
	for i, e := range s.tree.Entries {
		st, ok := s.stats[e.Path]
		if e.Kind != beneath.File || e.Unsettled || !ok || st.Links < 2 {
			continue
		}
		is := file{st.Inode, e.Mtime, e.Mode, e.Sum}
		at, ok := first[is]
		if !ok {
			first[is] = i
			continue
		}
		same := s.tree.Entries[at]
		same.Path, same.Same = e.Path, same.Path
		s.tree.Entries[i] = same
	}
}

// maxAttrs bounds the bytes of extended attributes in one tree.
const maxAttrs = 16 << 20

// keepAttrs counts what is left out as skipped.
func (s *scan) keepAttrs(list []beneath.Attr, left int) []beneath.Attr {
	s.skipped += left
	for _, a := range list {
		s.attrs += len(a.Name) + len(a.Value)
	}
	if s.attrs > maxAttrs {
		s.skipped += len(list)
		return nil
	}
	return list
}

// link is a file of the tree that is written as another name of one that was.
type link struct {
	entry workspace.Entry
	to    string
}

// linkNames gives files their other names. Where the file system has no hard links,
// or not so many, each name becomes a file of its own.
func (a *laying) linkNames(list []link) error {
	from, to := &beneath.Cursor{Root: a.root}, &beneath.Cursor{Root: a.root}
	defer from.Close()
	defer to.Close()
	var alone []workspace.Entry
	for _, l := range list {
		dir, old, err := from.Parent(l.to, false)
		if err != nil {
			return refused(l.to, err)
		}
		at, name, err := to.Parent(a.path(l.entry), false)
		if err != nil {
			return refused(a.path(l.entry), err)
		}
		if at.HardLink(dir, old, name) != nil {
			alone = append(alone, l.entry)
			continue
		}
		a.result.Files++
	}
	return a.files(alone)
}
