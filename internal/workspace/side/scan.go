package side

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Scan implements Side.
func (l *Local) Scan(ctx context.Context, req workspace.ScanRequest) (workspace.ScanResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	base, err := l.base(ctx, req.Base)
	if err != nil {
		return workspace.ScanResult{}, err
	}
	st, err := l.newStage()
	if err != nil {
		return workspace.ScanResult{}, thole.Errorf(thole.CodeUnavailable, "prepare sync: %w", err)
	}
	l.staged = st
	s := newScan(ctx, l, req, base)
	s.packs = newPacker(st.dir)
	if err := s.run(); err != nil {
		_ = s.packs.work.Wait() // what it writes goes with the stage
		return workspace.ScanResult{}, errors.Join(err, l.dropStage())
	}
	for _, src := range s.sources {
		st.sources[src.object.ID] = src
	}
	return l.finishScan(s)
}

func (l *Local) finishScan(s *scan) (workspace.ScanResult, error) {
	res := workspace.ScanResult{Files: s.files, Bytes: s.bytes, Skipped: s.skipped, Unsettled: s.unsettled}
	for _, o := range s.tree.Objects {
		if src, ok := l.staged.sources[o.ID]; ok {
			res.New = append(res.New, src.object)
		} else {
			res.Old = append(res.Old, o.ID)
		}
	}
	if s.base != nil && slices.EqualFunc(s.tree.Entries, s.base.tree.Entries, s.sameEntry) && s.tree.Template == s.base.tree.Template {
		l.index = newIndex(s.base.tree, s.base.name, s.stats)
		res.Tree = s.base.name
		return res, l.dropStage()
	}
	encoded, sum, err := s.tree.Encode()
	if err != nil {
		return workspace.ScanResult{}, err
	}
	l.staged.tree, l.staged.encoded = sum, encoded
	res.Tree, res.TreeSize = sum, int64(len(encoded))
	x := newIndex(s.tree, sum, s.stats)
	if l.cfg.State != "" {
		keep := objects.Sum{}
		if s.base != nil {
			keep = s.base.name
		}
		if err := x.save(l.cfg.State, encoded, keep); err != nil {
			return workspace.ScanResult{}, thole.Errorf(thole.CodeUnavailable, "write index: %w", err)
		}
	}
	l.index = x
	return res, nil
}

// sameEntry compares an entry of the new tree with one of the base, whose
// objects are numbered otherwise.
func (s *scan) sameEntry(a, b workspace.Entry) bool {
	if a.Stored() && b.Stored() {
		if s.tree.Objects[a.Object].ID != s.base.tree.Objects[b.Object].ID {
			return false
		}
		a.Object = b.Object
	}
	return a.Equal(b)
}

// scan is one pass over the workspace.
type scan struct {
	ctx   context.Context
	local *Local
	req   workspace.ScanRequest
	base  *index
	packs *packer // nil only compares

	tree      *workspace.Tree
	numbers   map[string]int // object id to its place in the tree
	stats     map[string]beneath.Stat
	old       map[objects.Sum]workspace.Entry // where the base has bytes
	fresh     map[objects.Sum]workspace.Entry // where this scan put bytes
	worn      map[string]bool                 // objects of the base that are being replaced
	once      map[string]reading              // what files were that have been read once
	buf       []byte
	sources   []source
	later     []int // entries to read again
	files     int
	bytes     int64
	skipped   int
	unsettled []string
	lent      []lent // the innermost last
	linked    bool   // a file has several names
	attrs     int    // bytes of extended attributes
}

func newScan(ctx context.Context, l *Local, req workspace.ScanRequest, base *index) *scan {
	return &scan{ctx: ctx, local: l, req: req, base: base, tree: &workspace.Tree{Version: workspace.TreeVersion, Template: req.Template},
		numbers: map[string]int{}, stats: map[string]beneath.Stat{}, fresh: map[objects.Sum]workspace.Entry{}, worn: map[string]bool{}, once: map[string]reading{}}
}

func (s *scan) run() (err error) {
	root, err := s.local.root()
	if err != nil {
		return err
	}
	defer root.Close()
	defer func() { err = errors.Join(err, s.giveBack(root)) }()
	if err := s.walk(root, ""); err != nil {
		return fmt.Errorf("scan workspace: %w", err)
	}
	if err := s.settle(root); err != nil {
		return fmt.Errorf("scan workspace: %w", err)
	}
	if s.packs != nil {
		if err := s.repack(root); err != nil {
			return fmt.Errorf("scan workspace: %w", err)
		}
		done, err := s.packs.close()
		if err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
		s.placePacked(done)
	}
	s.joinNames()
	for _, e := range s.tree.Entries {
		if e.Kind == beneath.File {
			s.files++
			if e.Same == "" {
				s.bytes += e.Bytes()
			}
		}
	}
	return nil
}

// lent is a directory whose owner may read it until the scan is over: files in it
// may be read more than once.
type lent struct {
	path string
	loan *beneath.Loan
}

func (s *scan) lend(path string, l *beneath.Loan) {
	if l != nil && path != "" { // the workspace itself stays open
		s.lent = append(s.lent, lent{path, l})
	}
}

// giveBack takes the loans back, from the inside out: the way to the inner ones
// leads through the outer ones. Where a process closed one of those meanwhile it is
// lent once more, and given back in the next round.
func (s *scan) giveBack(root *beneath.Dir) (err error) {
	for round := 0; len(s.lent) > 0 && round < 10; round++ {
		list := s.lent
		s.lent, err = nil, nil
		slices.SortStableFunc(list, func(a, b lent) int { return len(b.path) - len(a.path) })
		for _, l := range list {
			dir, name, gerr := root.ParentLent(l.path, s.lend)
			if gerr == nil {
				gerr = dir.GiveBack(name, l.loan)
				dir.Close()
			}
			if errors.Is(gerr, fs.ErrPermission) {
				s.lent = append(s.lent, l)
			}
			if gerr != nil && !gone(gerr) {
				err = errors.Join(err, fmt.Errorf("give back the mode of %q: %w", l.path, gerr))
			}
		}
	}
	return err
}

// gone reports that a name went away, or became something else, between two
// looks at it. The walk goes on without it, as if it had come later.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrInvalid)
}

func (s *scan) walk(dir *beneath.Dir, prefix string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if strings.Count(prefix, "/") > workspace.MaxNesting {
		return thole.Errorf(thole.CodeUnsupported, "directories nest deeper than %d levels below %.40q", workspace.MaxNesting, prefix).WithHint("remove or move them")
	}
	names, err := dir.Names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	var dbs databases
	if !s.req.Quiet {
		dbs = findDatabases(dir, names)
	}
	for _, name := range names {
		path := prefix + name
		if workspace.Excluded(path) || beneath.Within(path, s.req.Exclude...) || dbs.sidecar(name) {
			continue
		}
		sub, err := s.entry(dir, name, path, dbs.has(name))
		for n := 0; errors.Is(err, fs.ErrPermission) && n < 5; n++ { // a process closed the directory meanwhile
			loan, lerr := dir.Relend()
			if lerr != nil {
				break
			}
			s.lend(strings.TrimSuffix(prefix, "/"), loan)
			sub, err = s.entry(dir, name, path, dbs.has(name))
		}
		if gone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if sub != nil {
			err = s.walk(sub, path+"/")
			sub.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// entry adds one name, and returns a directory open. On an error it has added
// nothing.
func (s *scan) entry(dir *beneath.Dir, name, path string, database bool) (*beneath.Dir, error) {
	st, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	switch st.Kind {
	case beneath.Folder:
		sub, loan, err := dir.SubLent(name)
		if err != nil {
			return nil, err
		}
		s.lend(path, loan)
		s.tree.Entries = append(s.tree.Entries, workspace.Entry{Path: path, Kind: beneath.Folder, Mode: st.Mode, Mtime: st.Mtime, Attrs: s.keepAttrs(sub.Attrs())})
		return sub, nil
	case beneath.Link:
		target, err := dir.Readlink(name)
		if err == nil {
			s.tree.Entries = append(s.tree.Entries, workspace.Entry{Path: path, Kind: beneath.Link, Link: target})
		}
		return nil, err
	case beneath.File:
		s.linked = s.linked || st.Links > 1
		if database {
			return nil, s.database(dir, name, path, st)
		}
		return nil, s.file(dir, name, path, st)
	}
	s.skipped++
	return nil, nil
}

// file adds a regular file: from the base if it looks as it did there, otherwise
// by reading it. One that changes meanwhile is put off.
func (s *scan) file(dir *beneath.Dir, name, path string, st beneath.Stat) error {
	if e, ok := s.base.entry(path, st); ok {
		s.keep(e, st)
		return nil
	}
	e, err := s.read(dir, name, path)
	return s.add(path, e, err)
}

// add takes what was read of a file; one that changes meanwhile is read later.
func (s *scan) add(path string, e workspace.Entry, err error) error {
	if errors.Is(err, errChanging) {
		s.later = append(s.later, len(s.tree.Entries))
		e, err = workspace.Entry{Path: path, Kind: beneath.File}, nil
	}
	if err == nil {
		s.tree.Entries = append(s.tree.Entries, e)
	}
	return err
}

// keep adds an entry of the base as it is.
func (s *scan) keep(e workspace.Entry, st beneath.Stat) {
	if e.Stored() {
		e.Object = s.number(s.base.tree.Objects[e.Object])
	}
	e.Same = "" // it may be the first of its names by now
	s.tree.Entries = append(s.tree.Entries, e)
	s.stats[e.Path] = st
}

// number returns an object's place in the tree.
func (s *scan) number(o workspace.Object) int {
	n, ok := s.numbers[o.ID]
	if !ok {
		n = len(s.tree.Objects)
		s.numbers[o.ID] = n
		s.tree.Objects = append(s.tree.Objects, o)
	}
	return n
}

// settleTries is how often a file is read again: for about a second and a half.
const settleTries = 6

// settle reads the files again that changed while they were read, with growing
// pauses. What never holds still keeps the bytes of the base and a mark.
func (s *scan) settle(root *beneath.Dir) error {
	moving := backoff.Policy{Min: 25 * time.Millisecond, Max: time.Second}.Begin()
	for n := 0; len(s.later) > 0 && n < settleTries; n++ {
		if err := moving.Wait(s.ctx); err != nil {
			return err
		}
		again := s.later
		s.later = nil
		for _, i := range again {
			path := s.tree.Entries[i].Path
			e, err := s.readPath(root, path)
			switch {
			case errors.Is(err, errChanging), errors.Is(err, fs.ErrPermission) && !s.req.Quiet:
				s.later = append(s.later, i)
			case gone(err):
				s.tree.Entries[i].Kind = beneath.Other // dropped below
			case err != nil:
				return fmt.Errorf("%s: %w", path, err)
			default:
				s.tree.Entries[i] = e
			}
		}
	}
	for _, i := range s.later {
		path := s.tree.Entries[i].Path
		if s.req.Quiet {
			return thole.Errorf(thole.CodeConflict, "%s changes although nobody should write it", path)
		}
		s.tree.Entries[i] = s.mark(path)
		s.unsettled = append(s.unsettled, path)
	}
	s.later = nil
	s.tree.Entries = slices.DeleteFunc(s.tree.Entries, func(e workspace.Entry) bool { return e.Kind == beneath.Other })
	return nil
}

// mark is the entry of a file that never held still.
func (s *scan) mark(path string) workspace.Entry {
	if s.base != nil {
		if i, ok := s.base.at[path]; ok {
			if e := s.base.tree.Entries[i]; e.Kind == beneath.File && (!e.Unsettled || e.Known) {
				if e.Stored() {
					e.Object = s.number(s.base.tree.Objects[e.Object])
				}
				e.Unsettled, e.Known, e.Same = true, true, ""
				return e
			}
		}
	}
	return workspace.Entry{Path: path, Kind: beneath.File, Mode: 0o600, Unsettled: true}
}
