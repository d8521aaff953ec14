package unix

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/peercred"
)

// distant is a connection to a listener of another process namespace: a command in a
// container that shares the home, or the other way round. Listeners of thole's hang up
// on such peers before they say a word, which alone would be an end without a reason.
type distant struct {
	*net.UnixConn
	path  string
	heard atomic.Bool
}

// Read implements net.Conn.
func (c *distant) Read(b []byte) (int, error) {
	n, err := c.UnixConn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, c.explain(err)
}

// Write implements net.Conn.
func (c *distant) Write(b []byte) (int, error) {
	n, err := c.UnixConn.Write(b)
	return n, c.explain(err)
}

func (c *distant) explain(err error) error {
	if c.heard.Load() || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return thole.Errorf(thole.CodeForbidden, "%s is served from outside of this container or sandbox, and only to programs that run next to the server (%w)", c.path, peercred.ErrOtherNamespace).
		WithHint("run the command where the server runs: on the host, or in the same container; or use another home here (THOLE_HOME)")
}
