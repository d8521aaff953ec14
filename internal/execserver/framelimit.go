package execserver

import (
	"encoding/binary"
	"errors"
	"net"

	"github.com/tholehq/thole/protocol/exec"
)

// LimitFrames makes a listener drop a WebSocket client that announces a frame
// over exec.MaxFrame: the message limit alone would let one frame fill it, and
// peers of the protocol refuse such frames too.
func LimitFrames(l net.Listener) net.Listener { return frameListener{l} }

type frameListener struct{ net.Listener }

func (l frameListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &frameConn{Conn: c}, nil
}

var errFrame = errors.New("websocket frame exceeds 16 MiB")

// frameConn follows the frames that pass through Read. HTTP requests come first:
// they end with an empty line, and what follows is no frame unless it is masked.
type frameConn struct {
	net.Conn
	blank  int    // bytes of "\r\n\r\n" seen
	frames bool   // past the request
	skip   uint64 // payload and mask still to come
	head   [10]byte
	have   int
	err    error
}

func (c *frameConn) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	if c.follow(p[:n]) {
		return n, err
	}
	c.err = errFrame
	c.Conn.Close()
	return 0, errFrame
}

// follow reports false at a frame that is too long.
func (c *frameConn) follow(p []byte) bool {
	for len(p) > 0 {
		switch {
		case !c.frames:
			p = c.request(p)
		case c.skip > 0:
			n := min(c.skip, uint64(len(p)))
			c.skip -= n
			p = p[n:]
		default:
			c.head[c.have] = p[0]
			c.have++
			p = p[1:]
			if !c.header() {
				return false
			}
		}
	}
	return true
}

// request passes over an HTTP request.
func (c *frameConn) request(p []byte) []byte {
	const end = "\r\n\r\n"
	for i, b := range p {
		switch {
		case b == end[c.blank]:
			c.blank++
		case b == '\r':
			c.blank = 1
		default:
			c.blank = 0
		}
		if c.blank == len(end) {
			c.blank, c.frames = 0, true
			return p[i+1:]
		}
	}
	return nil
}

// header looks at a frame's header when it is complete.
func (c *frameConn) header() bool {
	if c.have < 2 {
		return true
	}
	if c.head[1]&0x80 == 0 { // not masked: another request
		c.have, c.frames = 0, false
		return true
	}
	size := uint64(c.head[1] & 0x7f)
	switch {
	case size == 126 && c.have < 4, size == 127 && c.have < 10:
		return true
	case size == 126:
		size = uint64(binary.BigEndian.Uint16(c.head[2:]))
	case size == 127:
		size = binary.BigEndian.Uint64(c.head[2:])
	}
	if size > exec.MaxFrame {
		return false
	}
	c.have, c.skip = 0, size+4 // the mask
	return true
}
