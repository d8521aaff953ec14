package execserver

import (
	"log/slog"
	"os"
	"time"

	"github.com/tholehq/thole/internal/box"
)

// Config shapes a Server. Zero fields take the defaults.
type Config struct {
	// Version is reported to clients.
	Version string
	// ConcurrentRequests is how many file requests of one connection run at
	// once; 1 keeps them in arrival order. Process requests are always in order.
	ConcurrentRequests int
	// DetachTTL is how long a session without connection keeps its processes.
	DetachTTL time.Duration // default 30 s
	// RetainClosed is how long a closed process can be read and its id is taken.
	RetainClosed time.Duration // default 30 s
	// Environ is the environment that inherited ones start from; default os.Environ().
	Environ []string
	// Helper is a command that, followed by an argv[0], a program and its
	// arguments, executes the program under that argv[0]. It is needed only for
	// arg0 inside a sandbox; without it such a start is refused.
	Helper []string
	// Box is where processes run, nil here. The paths are the same inside.
	Box func() (*box.Box, error)
	// Memory bounds what is held for each session and its connection.
	Memory Memory
	// Own are files and directories of the server that no sandbox shows: sockets
	// that it answers on, tokens, its home.
	Own []string
	// Kept are paths that clients may not change, asked at every call; nil: there are none.
	Kept func() []string
	Log  *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.ConcurrentRequests <= 0 {
		c.ConcurrentRequests = 1
	}
	if c.DetachTTL <= 0 {
		c.DetachTTL = 30 * time.Second
	}
	if c.RetainClosed <= 0 {
		c.RetainClosed = 30 * time.Second
	}
	c.Memory = c.Memory.withDefaults()
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
