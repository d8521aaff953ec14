package side

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"runtime"

	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"golang.org/x/sync/errgroup"
)

// errChanging says that a file was written while it was read, or so shortly
// before that its times could not show.
var errChanging = errors.New("workspace: the file is changing")

// granularity is the coarsest step in which kernels stamp files. A file stamped
// within it of being read may be written again without a new stamp.
const granularity = 20e6 // nanoseconds

// settleTime is how long ago a file's last stamp must be for its times alone to
// prove that no write is under way: a write stamps the file when it begins, and
// copies for as long as it takes.
const settleTime = 2e9 // nanoseconds

// smallFile is up to where files go into packs.
const smallFile = 2 << 20

func (s *scan) readPath(root *beneath.Dir, path string) (workspace.Entry, error) {
	dir, name, err := root.ParentLent(path, s.lend)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer dir.Close()
	if !s.req.Quiet {
		if dbs := findDatabases(dir, []string{name, name + "-wal", name + "-journal"}); dbs.has(name) {
			return s.readDatabase(dir, name, path)
		}
	}
	return s.read(dir, name, path)
}

// read takes a file's bytes at one instant and places them. That it was one
// instant is proven by old times that do not move, by the kernel's word that
// nobody can write, or by a second reading some time later that finds the same.
func (s *scan) read(dir *beneath.Dir, name, path string) (workspace.Entry, error) {
	start := s.local.cfg.Now().UnixNano()
	f, lent, err := dir.OpenLent(name)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer f.Close()
	before, err := beneath.StatFile(f)
	if err != nil {
		return workspace.Entry{}, err
	}
	// A stamp from the future is a clock that was set back, which says nothing.
	age := start - before.Ctime
	if age < granularity && age > -granularity && !lent {
		return workspace.Entry{}, errChanging
	}
	sure := age > settleTime && !lent
	unguard := func() bool { return false }
	if !sure {
		if end, ok := beneath.Guard(f); ok {
			unguard = end
		}
	}
	e := workspace.Entry{Path: path, Kind: beneath.File, Mode: before.Mode, Mtime: before.Mtime, Size: before.Size}
	var place func()
	if e.Data, err = beneath.ExtentsOf(f, e.Size); err == nil {
		place, err = s.take(f, &e)
	}
	if unguard() {
		sure = true
	}
	if err != nil {
		return workspace.Entry{}, err
	}
	attrs, left := beneath.AttrsOf(f)
	after, err := beneath.StatFile(f)
	if err != nil {
		return workspace.Entry{}, err
	}
	if after != before {
		return workspace.Entry{}, errChanging
	}
	once := reading{before, e.Sum}
	if lent {
		once.stat.Ctime = 0 // ours
	}
	if !sure && s.once[path] != once {
		s.once[path] = once
		return workspace.Entry{}, errChanging
	}
	place()
	e.Attrs = s.keepAttrs(attrs, left)
	s.stats[path] = before
	return e, nil
}

// reading is what one reading of a file found.
type reading struct {
	stat beneath.Stat
	sum  objects.Sum
}

// take reads a file to its end, without its holes, and returns what places its bytes.
func (s *scan) take(f *os.File, e *workspace.Entry) (place func(), err error) {
	data := e.Data.Reader(f)
	if e.Bytes() <= smallFile {
		buf := s.buffer(e.Bytes())
		if n, err := data.ReadAt(buf, 0); n < len(buf) {
			return nil, changing(err)
		}
		e.Sum = objects.SumOf(buf)
		return func() { s.placeSmall(e, buf) }, nil
	}
	o, staged, err := s.readLarge(data, e.Bytes())
	if err != nil {
		return nil, err
	}
	e.Sum, err = objects.ParseSum(o.ID)
	return func() { s.placeLarge(e, o, source{object: o, staged: staged, path: e.Path, data: e.Data}) }, err
}

// changing turns a file that ended early into one that changes.
func changing(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errChanging
	}
	return err
}

func (s *scan) placeSmall(e *workspace.Entry, data []byte) {
	if s.packs == nil || len(data) == 0 || s.reuse(e) {
		return
	}
	o, off := s.packs.add(data)
	e.Object, e.Offset = s.number(o), off
	s.fresh[e.Sum] = *e
}

func (s *scan) placeLarge(e *workspace.Entry, o workspace.Object, src source) {
	if s.packs == nil || s.reuse(e) {
		return
	}
	e.Object, e.Offset = s.number(o), 0
	s.fresh[e.Sum] = *e
	s.sources = append(s.sources, src)
}

// reuse points an entry to bytes that this scan, or the base, has already.
func (s *scan) reuse(e *workspace.Entry) bool {
	if have, ok := s.fresh[e.Sum]; ok && have.Bytes() == e.Bytes() {
		e.Object, e.Offset = have.Object, have.Offset
		return true
	}
	if s.old == nil && s.base != nil {
		s.old = make(map[objects.Sum]workspace.Entry, len(s.base.tree.Entries))
		for _, old := range s.base.tree.Entries {
			if old.Stored() {
				s.old[old.Sum] = old
			}
		}
	}
	have, ok := s.old[e.Sum]
	if !ok || have.Bytes() != e.Bytes() || s.worn[s.base.tree.Objects[have.Object].ID] {
		return false
	}
	e.Object, e.Offset = s.number(s.base.tree.Objects[have.Object]), have.Offset
	return true
}

// buffer returns a slice that is valid until the next call.
func (s *scan) buffer(n int64) []byte {
	if int64(cap(s.buf)) < n {
		s.buf = make([]byte, max(n, 64<<10))
	}
	return s.buf[:n]
}

// readLarge sums a large file by parts and, when asked to, copies it aside.
func (s *scan) readLarge(f io.ReaderAt, size int64) (workspace.Object, string, error) {
	var aside *os.File
	staged := ""
	if s.req.Copy && s.packs != nil {
		var err error
		if aside, err = os.CreateTemp(s.packs.dir, "large-"); err != nil {
			return workspace.Object{}, "", err
		}
		defer aside.Close()
		staged = aside.Name()
	}
	o := workspace.Object{Size: size, Parts: make([]workspace.PartSum, (size+workspace.PartSize-1)/workspace.PartSize)}
	group, ctx := errgroup.WithContext(s.ctx)
	group.SetLimit(min(runtime.GOMAXPROCS(0), transfers))
	for i := range o.Parts {
		off := int64(i) * workspace.PartSize
		n := min(workspace.PartSize, size-off)
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			h := sha256.New()
			var to io.Writer = h
			if aside != nil {
				to = io.MultiWriter(h, io.NewOffsetWriter(aside, off))
			}
			if _, err := io.CopyN(to, io.NewSectionReader(f, off, n), n); err != nil {
				return changing(err)
			}
			o.Parts[i] = workspace.PartSum{Size: n, Sum: objects.Sum(h.Sum(nil))}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return workspace.Object{}, "", err
	}
	o.ID = rootSum(o.Parts).String()
	if len(o.Parts) == 1 {
		o.Parts = nil
	}
	return o, staged, nil
}

// rootSum names an object in parts: the sum of its one part, or the sum of their
// sums.
func rootSum(parts []workspace.PartSum) objects.Sum {
	if len(parts) == 1 {
		return parts[0].Sum
	}
	h := sha256.New()
	for _, p := range parts {
		h.Write(p.Sum[:])
	}
	return objects.Sum(h.Sum(nil))
}
