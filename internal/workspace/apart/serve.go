package apart

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/workspace/manager"
	"github.com/tholehq/thole/internal/workspace/side"
	"github.com/tholehq/thole/internal/workspace/unpack"
)

const (
	// maxMemory is what a process may take: two trees of workspace.MaxEntries.
	maxMemory  = 4 << 30
	maxRequest = 256 << 20
)

// Serve is the process: it serves a workspace, and conversations that lie elsewhere, on
// descriptor 3 until its owner hangs up.
func Serve(ctx context.Context, dir, data string) error {
	conn, err := net.FileConn(os.NewFile(3, "apart"))
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "executor files: %w", err).WithHint("thole itself calls it")
	}
	debug.SetMemoryLimit(maxMemory / 2)
	if err := bound(maxMemory); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "bound memory: %w", err)
	}
	files := side.New(side.Config{Dir: dir, Data: data})
	mux := http.NewServeMux()
	mux.Handle("/workspace/", side.Handler(files))
	mux.Handle("POST /export", jsonhttp.Handle(maxRequest, manager.ExportLinked))
	mux.Handle("POST /unpack", jsonhttp.Handle(maxRequest, unpack.Unpack))
	l := &one{conn: make(chan net.Conn, 1), addr: conn.LocalAddr()}
	l.conn <- conn
	srv := &http.Server{Handler: mux, BaseContext: func(net.Listener) context.Context { return ctx }, ConnState: func(_ net.Conn, s http.ConnState) { //nolint:gosec // our own end
		if s == http.StateClosed {
			_ = l.Close()
		}
	}}
	if err := srv.Serve(l); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return files.Close() // waits for what still runs
}

// one is a listener to which one connection comes.
type one struct {
	conn chan net.Conn
	addr net.Addr
	once sync.Once
}

func (o *one) Accept() (net.Conn, error) {
	if c, ok := <-o.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (o *one) Close() error   { o.once.Do(func() { close(o.conn) }); return nil }
func (o *one) Addr() net.Addr { return o.addr }
