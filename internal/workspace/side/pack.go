package side

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

const (
	// packSize is where a pack is full.
	packSize = 8 << 20
	// thinPack is below what a pack is thin, manyThin how many of them a tree may
	// have: each sync of few files adds one, and a restore reads each.
	thinPack = 1 << 20
	manyThin = 16
)

// packer writes small files one after the other into packs. A pack's name is
// known when it is full; until then it goes by its number.
type packer struct {
	dir  string
	file *os.File
	sum  hash.Hash
	size int64
	done []packed
}

type packed struct {
	number string // as add called it
	object workspace.Object
	file   string
}

func (p *packer) number() string { return fmt.Sprintf("pack %d", len(p.done)) }

// add appends data and says where it is.
func (p *packer) add(data []byte) (workspace.Object, int64, error) {
	if p.size > 0 && p.size+int64(len(data)) > packSize {
		if err := p.finish(); err != nil {
			return workspace.Object{}, 0, err
		}
	}
	if p.file == nil {
		f, err := os.OpenFile(filepath.Join(p.dir, p.number()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return workspace.Object{}, 0, err
		}
		p.file, p.sum, p.size = f, sha256.New(), 0
	}
	if _, err := p.file.Write(data); err != nil {
		return workspace.Object{}, 0, err
	}
	p.sum.Write(data)
	off := p.size
	p.size += int64(len(data))
	return workspace.Object{ID: p.number()}, off, nil
}

func (p *packer) finish() error {
	o := workspace.Object{ID: objects.Sum(p.sum.Sum(nil)).String(), Size: p.size}
	name := p.file.Name()
	err := p.file.Close()
	p.done = append(p.done, packed{p.number(), o, name})
	p.file, p.size = nil, 0
	return err
}

// close ends the last pack and returns all of them.
func (p *packer) close() ([]packed, error) {
	if p.file == nil {
		return p.done, nil
	}
	err := p.finish()
	return p.done, err
}

// abandon releases what an ended scan holds.
func (p *packer) abandon() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// placePacked gives packs their names in the tree.
func (s *scan) placePacked(done []packed) {
	for _, p := range done {
		if n, ok := s.numbers[p.number]; ok {
			s.tree.Objects[n] = p.object
			s.sources = append(s.sources, source{object: p.object, staged: p.file})
		}
	}
}

// repack reads small files again whose packs are mostly dead or too many and
// thin, so that a tree does not come to lie scattered over its history.
func (s *scan) repack(root *beneath.Dir) error {
	if s.base == nil {
		return nil
	}
	live := map[int]int64{}
	for _, e := range s.tree.Entries {
		if e.Stored() {
			live[e.Object] += e.Size
		}
	}
	var thin []string
	for i, o := range s.tree.Objects {
		if o.Size == 0 || o.Size > packSize+smallFile || len(o.Parts) > 0 {
			continue // written by this scan, or one large file
		}
		if 2*live[i] < o.Size {
			s.worn[o.ID] = true
		} else if o.Size < thinPack {
			thin = append(thin, o.ID)
		}
	}
	if len(thin) > manyThin {
		for _, id := range thin {
			s.worn[id] = true
		}
	}
	if len(s.worn) == 0 {
		return nil
	}
	for i, e := range s.tree.Entries {
		if !e.Stored() || e.Unsettled || e.Size > smallFile || !s.worn[s.tree.Objects[e.Object].ID] {
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		again, err := s.readPath(root, e.Path)
		if err != nil || again.Sum != e.Sum {
			continue // it changes just now: what was read before still holds
		}
		s.tree.Entries[i] = again
	}
	s.compact()
	return nil
}

// compact drops objects that no entry uses any more.
func (s *scan) compact() {
	used := map[int]int{}
	var kept []workspace.Object
	for i := range s.tree.Entries {
		e := &s.tree.Entries[i]
		if !e.Stored() {
			continue
		}
		n, ok := used[e.Object]
		if !ok {
			n = len(kept)
			used[e.Object] = n
			kept = append(kept, s.tree.Objects[e.Object])
		}
		e.Object = n
	}
	s.tree.Objects = kept
	clear(s.numbers)
	for i, o := range kept {
		s.numbers[o.ID] = i
	}
	clear(s.fresh) // numbered otherwise
}
