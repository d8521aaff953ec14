package process

import (
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line, so that what has no end cannot take all memory.
const maxLine = 64 << 20

// ErrTooLong ends a reader whose line is longer than any agent CLI means it.
var ErrTooLong = errors.New("a line of output is longer than 64 MiB")

// Lines reads long lines: agent CLIs write single ones of many megabytes. It is
// not safe for concurrent use.
type Lines struct {
	r     io.Reader
	buf   []byte
	start int // first unread byte
	scan  int // first byte not yet searched for a newline
	err   error
}

// keepBuffer is the buffer size kept between lines; what a longer line needed is
// given back afterwards.
const keepBuffer = 256 << 10

// NewLines reads lines from r.
func NewLines(r io.Reader) *Lines { return &Lines{r: r, buf: make([]byte, 0, 32<<10)} }

// Next returns the next line without its end ("\n" or "\r\n"). The slice is
// valid until the next call. A last line without an end is returned before the
// reader's error.
func (l *Lines) Next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scan:], '\n'); i >= 0 {
			line := l.buf[l.start : l.scan+i]
			l.scan += i + 1
			l.start = l.scan
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		l.scan = len(l.buf)
		if l.err != nil {
			line := l.buf[l.start:]
			l.start = len(l.buf)
			if len(line) > 0 {
				return line, nil
			}
			return nil, l.err
		}
		l.fill()
	}
}

// fill makes room after the unread bytes and reads once.
func (l *Lines) fill() {
	unread := l.buf[l.start:]
	switch {
	case len(unread) > maxLine:
		l.buf, l.start, l.scan, l.err = nil, 0, 0, ErrTooLong
		return
	case len(unread) == 0 && cap(l.buf) > keepBuffer:
		l.buf = make([]byte, 0, 32<<10)
	case l.start > 0 && len(unread) <= cap(l.buf)/2:
		l.buf = l.buf[:copy(l.buf[:cap(l.buf)], unread)]
	case len(l.buf) == cap(l.buf):
		grown := make([]byte, len(unread), max(2*len(unread), 32<<10))
		copy(grown, unread)
		l.buf = grown
	default:
		n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf, l.err = l.buf[:len(l.buf)+n], err
		return
	}
	l.start, l.scan = 0, len(l.buf)
	n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.err = l.buf[:len(l.buf)+n], err
}
