package ws

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// limited hands the WebSocket library a connection whose frames were announced
// within the limit. The library counts what it has read: a message one byte too
// long would be in memory whole before it is refused.
type limited struct {
	http.ResponseWriter
	limit int64
}

// Hijack implements http.Hijacker.
func (l *limited) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(l.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	f := &frames{Conn: nc, in: rw.Reader, limit: l.limit}
	return f, bufio.NewReadWriter(bufio.NewReader(f), rw.Writer), nil
}

// frames reads a client's frames and ends at a header that announces too much. It
// follows headers only; what they mean is the library's.
type frames struct {
	net.Conn
	in      io.Reader // what was read with the request, then the connection
	limit   int64
	head    [14]byte
	n       int   // bytes of head
	rest    int64 // of the payload
	message int64 // announced so far
	err     error
}

func (f *frames) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.in.Read(p)
	whole := 0 // bytes before the header that is being read
	for at := 0; at < n; {
		if f.rest > 0 {
			skip := min(f.rest, int64(n-at))
			f.rest, at = f.rest-skip, at+int(skip)
			continue
		}
		if f.n == 0 {
			whole = at
		}
		f.head[f.n] = p[at]
		f.n, at = f.n+1, at+1
		if f.n < f.headLen() {
			continue
		}
		if f.err = f.begin(); f.err != nil {
			return whole, f.err
		}
	}
	return n, err
}

// headLen is how long the header is that began, as far as is known.
func (f *frames) headLen() int {
	if f.n < 2 {
		return 2
	}
	n := 2
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4 // the mask
	}
	return n
}

func (f *frames) begin() error {
	f.n = 0
	size := uint64(f.head[1] & 0x7f)
	switch size {
	case 126:
		size = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		size = binary.BigEndian.Uint64(f.head[2:])
	}
	const opControl, opContinue, final = 0x8, 0x0, 0x80
	op := f.head[0] & 0xf
	if op&opControl != 0 {
		if size > 125 {
			return fmt.Errorf("control frame of %d bytes", size)
		}
		f.rest = int64(size)
		return nil
	}
	if op != opContinue {
		f.message = 0
	}
	if size > uint64(f.limit-f.message) {
		return fmt.Errorf("%w: it was announced with more than %d bytes", websocket.ErrMessageTooBig, f.limit)
	}
	f.rest = int64(size)
	f.message += f.rest
	if f.head[0]&final != 0 {
		f.message = 0
	}
	return nil
}
