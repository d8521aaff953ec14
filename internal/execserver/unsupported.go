//go:build !linux

package execserver

import (
	"context"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
)

// Server is not available on this system.
type Server struct{}

// New makes a Server that refuses every connection.
func New(Config) *Server { return &Server{} }

// Serve refuses: processes are watched and confined by means of Linux.
func (*Server) Serve(_ context.Context, s jsonrpc.Stream) error {
	_ = s.Close("unsupported system")
	return thole.Errorf(thole.CodeUnsupported, "exec-server runs on Linux only").WithHint("run it in a Linux machine or container and connect to it")
}

// Running is always zero.
func (*Server) Running() int { return 0 }

// Close does nothing.
func (*Server) Close() {}
