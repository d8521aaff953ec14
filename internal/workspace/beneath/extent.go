package beneath

import (
	"errors"
	"io"
	"strings"
)

// Extent is a stretch of a file that has bytes; what lies between extents is a
// hole, which reads as zeros and takes no room.
type Extent struct {
	Off int64 `json:"o"`
	Len int64 `json:"n"`
}

// MaxExtents bounds the extents of one file. A file with more keeps its largest
// holes.
const MaxExtents = 1024

// Extents are the stretches of one file in order. Their bytes, one after the other,
// are what is stored of it; none means that all of the file is.
type Extents []Extent

// Len is how many bytes a file of this size has in its extents.
func (x Extents) Len(size int64) int64 {
	if x == nil {
		return size
	}
	n := int64(0)
	for _, e := range x {
		n += e.Len
	}
	return n
}

// Valid reports whether they are in order, apart, not empty, and within a size.
func (x Extents) Valid(size int64) bool {
	end := int64(0)
	for i, e := range x {
		if e.Len <= 0 || e.Off < end || i > 0 && e.Off == end || e.Len > size || e.Off > size-e.Len {
			return false
		}
		end = e.Off + e.Len
	}
	return len(x) <= MaxExtents
}

// join fills the smallest holes until there are few enough.
func (x Extents) join() Extents {
	for hole := int64(1 << 13); len(x) > MaxExtents; hole *= 2 {
		out := x[:1]
		for _, e := range x[1:] {
			if last := &out[len(out)-1]; e.Off-(last.Off+last.Len) < hole {
				last.Len = e.Off + e.Len - last.Off
			} else {
				out = append(out, e)
			}
		}
		x = out
	}
	return x
}

// each calls do for the pieces of a file that p's bytes, which begin at off of those
// stored, belong to.
func (x Extents) each(p []byte, off int64, do func(p []byte, at int64) (int, error)) (n int, err error) {
	for _, e := range x {
		if off >= e.Len {
			off -= e.Len
			continue
		}
		if len(p) == 0 {
			break
		}
		m, err := do(p[:min(int64(len(p)), e.Len-off)], e.Off+off)
		n, p, off = n+m, p[m:], 0
		if err != nil {
			return n, err
		}
	}
	if len(p) > 0 {
		return n, io.EOF
	}
	return n, nil
}

type extentReader struct {
	x Extents
	r io.ReaderAt
}

func (r extentReader) ReadAt(p []byte, off int64) (int, error) { return r.x.each(p, off, r.r.ReadAt) }

// Reader reads what is stored of a file.
func (x Extents) Reader(file io.ReaderAt) io.ReaderAt {
	if x == nil {
		return file
	}
	return extentReader{x, file}
}

type extentWriter struct {
	x Extents
	w io.WriterAt
}

func (w extentWriter) WriteAt(p []byte, off int64) (int, error) {
	n, err := w.x.each(p, off, w.w.WriteAt)
	if errors.Is(err, io.EOF) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Writer puts what is stored of a file where it belongs.
func (x Extents) Writer(file io.WriterAt) io.WriterAt {
	if x == nil {
		return file
	}
	return extentWriter{x, file}
}

// Whole reads n bytes of a file from off, zeros for its holes. open reads what is
// stored of it.
func (x Extents) Whole(off, n int64, open func(off, n int64) (io.ReadCloser, error)) (io.ReadCloser, error) {
	if x == nil {
		return open(off, n)
	}
	type piece struct{ zeros, data int64 }
	var pieces []piece
	start, length, passed, at := int64(0), int64(0), int64(0), off
	for _, e := range x {
		if from, to := max(e.Off, off), min(e.Off+e.Len, off+n); from < to {
			if length == 0 {
				start = passed + from - e.Off
			}
			pieces = append(pieces, piece{from - at, to - from})
			length, at = length+to-from, to
		}
		passed += e.Len
	}
	body := io.NopCloser(strings.NewReader(""))
	if length > 0 {
		var err error
		if body, err = open(start, length); err != nil {
			return nil, err
		}
	}
	var list []io.Reader
	for _, p := range append(pieces, piece{zeros: off + n - at}) {
		list = append(list, io.LimitReader(zeros{}, p.zeros), &exactly{body, p.data})
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(list...), body}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// exactly reads n bytes; fewer are an error, for what follows would be out of place.
type exactly struct {
	r io.Reader
	n int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.n)])
	if e.n -= int64(n); errors.Is(err, io.EOF) {
		if err = nil; e.n > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}
