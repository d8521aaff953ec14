// Package stdio carries one message per line over a pair of byte streams: our
// own standard input and output, or those of a child. A line ends in "\n" or
// "\r\n"; blank lines are skipped. The only bound on a line is the message limit:
// a longer one ends the stream, since what follows cannot be trusted to be framed.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tholehq/thole/internal/jsonrpc"
)

// DefaultLimit is the message limit of the Codex servers.
const DefaultLimit = 64 << 20

// ErrTooLong reports a line over the limit.
var ErrTooLong = errors.New("line is over the message limit")

type stream struct {
	r     *bufio.Reader
	w     io.Writer
	c     []io.Closer
	limit int
	line  []byte
	out   []byte
	once  sync.Once
	done  chan struct{}
}

// New joins a reader and a writer. Close closes both where they are closers; a
// Read on something that Close cannot unblock (a terminal) ends with the process.
// limit 0 means DefaultLimit.
func New(r io.Reader, w io.Writer, limit int) jsonrpc.Stream {
	if limit == 0 {
		limit = DefaultLimit
	}
	s := &stream{r: bufio.NewReaderSize(r, 64<<10), w: w, limit: limit, done: make(chan struct{})}
	for _, v := range []any{w, r} {
		if c, ok := v.(io.Closer); ok {
			s.c = append(s.c, c)
		}
	}
	return s
}

// keep is how much of a line buffer outlives a large message.
const keep = 1 << 20

func (s *stream) Read(context.Context) ([]byte, error) {
	if cap(s.line) > keep {
		s.line = nil
	}
	for {
		msg, err := s.readLine()
		if len(bytes.TrimSpace(msg)) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			return msg, nil // the last line may lack its newline
		}
		if err != nil {
			return nil, s.explain(err)
		}
	}
}

// readLine returns the line without its ending. A line inside the reader's buffer
// is not copied.
func (s *stream) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		part, err := s.r.ReadSlice('\n')
		whole := !errors.Is(err, bufio.ErrBufferFull)
		line := part
		if !whole || len(s.line) > 0 {
			s.line = append(s.line, part...)
			line = s.line
		}
		if whole {
			line = trimEnd(line)
		}
		if len(line) > s.limit && (whole || len(line) > s.limit+1) { // a "\r" may be last
			return nil, ErrTooLong
		}
		if whole {
			return line, err
		}
	}
}

func trimEnd(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}

func (s *stream) explain(err error) error {
	select {
	case <-s.done:
		return io.ErrClosedPipe
	default:
	}
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return fmt.Errorf("read line: %w", err)
}

// Write sends the message and its newline in one call, so that lines of a pipe
// shared by mistake stay whole as long as they are short.
func (s *stream) Write(_ context.Context, msg []byte) error {
	if bytes.IndexByte(msg, '\n') >= 0 {
		return errors.New("write line: message contains a newline")
	}
	s.out = append(append(s.out[:0], msg...), '\n')
	_, err := s.w.Write(s.out)
	if cap(s.out) > keep {
		s.out = nil
	}
	if err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return nil
}

func (s *stream) Close(string) (err error) {
	s.once.Do(func() {
		close(s.done)
		for _, c := range s.c {
			err = errors.Join(err, c.Close())
		}
	})
	return err
}
