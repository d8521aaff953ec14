package side

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"golang.org/x/sync/errgroup"
)

const (
	// packSize is where a pack is full.
	packSize = 8 << 20
	// thinPack is below what a pack is thin, manyThin how many of them a tree may
	// have: each sync of few files adds one, and a restore reads each.
	thinPack = 1 << 20
	manyThin = 16
)

// packer puts small files one after the other into packs, and compresses full ones
// while the next is filled. A pack's name is known then; until it is, it goes by its
// number.
type packer struct {
	dir   string
	plain []byte
	done  []*packed
	work  errgroup.Group
}

type packed struct {
	number string // as add called it
	object workspace.Object
	file   string
}

func newPacker(dir string) *packer {
	p := &packer{dir: dir}
	p.work.SetLimit(2) // each has a pack in memory
	return p
}

func (p *packer) number() string { return fmt.Sprintf("pack %d", len(p.done)) }

// add appends data and says where it is.
func (p *packer) add(data []byte) (workspace.Object, int64) {
	if len(p.plain) > 0 && len(p.plain)+len(data) > packSize {
		p.finish()
	}
	off := len(p.plain)
	p.plain = append(p.plain, data...)
	return workspace.Object{ID: p.number()}, int64(off)
}

func (p *packer) finish() {
	done, plain := &packed{number: p.number(), file: filepath.Join(p.dir, p.number())}, p.plain
	p.done, p.plain = append(p.done, done), nil
	p.work.Go(func() error {
		stored, compressed := workspace.Compress(plain)
		done.object = workspace.Object{ID: objects.SumOf(stored).String(), Size: int64(len(stored))}
		if compressed {
			done.object.Plain = int64(len(plain))
		}
		return os.WriteFile(done.file, stored, 0o600)
	})
}

// close ends the last pack and returns all of them.
func (p *packer) close() ([]*packed, error) {
	if len(p.plain) > 0 {
		p.finish()
	}
	return p.done, p.work.Wait()
}

// placePacked gives packs their names in the tree.
func (s *scan) placePacked(done []*packed) {
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
			live[e.Object] += e.Bytes()
		}
	}
	var thin []string
	for i, o := range s.tree.Objects {
		if o.Size == 0 || o.Bytes() > packSize+smallFile || len(o.Parts) > 0 {
			continue // written by this scan, or one large file
		}
		if 2*live[i] < o.Bytes() {
			s.worn[o.ID] = true
		} else if o.Bytes() < thinPack {
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
		if !e.Stored() || e.Unsettled || e.Bytes() > smallFile || !s.worn[s.tree.Objects[e.Object].ID] {
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
