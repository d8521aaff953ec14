package executord

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// maxPorts bounds the connections into the box that are open at a time.
const maxPorts = 256

// port turns a request into a connection to a port of the box's loopback, for the
// owner to show a person what listens there. It carries bytes and looks at none.
func (s *Server) port(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseUint(r.PathValue("port"), 10, 16)
	if err != nil || n == 0 || r.Header.Get("Upgrade") != "tcp" {
		jsonhttp.Error(w, thole.Errorf(thole.CodeInvalid, "not an upgrade to a port"))
		return
	}
	select {
	case s.ports <- struct{}{}:
		defer func() { <-s.ports }()
	default:
		jsonhttp.Error(w, thole.Errorf(thole.CodeOverloaded, "%d connections into the box are open", maxPorts).WithHint("close pages of the agent's servers"))
		return
	}
	in, err := s.boxes.dial(r.Context(), uint16(n))
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	defer in.Close()
	out, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	defer out.Close()
	_ = out.SetDeadline(time.Time{})
	if _, err := io.WriteString(out, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"); err != nil {
		return
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if _, err := in.Write(early); err != nil {
		return
	}
	both(in, out)
}

// both copies both ways until both have ended, each end passed on by itself.
func both(a, b net.Conn) {
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); err != nil || !ok || half.CloseWrite() != nil {
			_ = to.Close()
			_ = from.Close()
		}
		done <- struct{}{}
	}
	go pass(a, b)
	go pass(b, a)
	<-done
	<-done
}

// dial connects to a port of a box that is there: the shared one, else that of those who plan.
func (b *boxes) dial(ctx context.Context, port uint16) (net.Conn, error) {
	if b == nil {
		return nil, thole.Errorf(thole.CodeUnsupported, "agents run without walls here (executor.isolation), so their servers are this machine's").
			WithHint("open http://localhost:%d", port)
	}
	b.mu.Lock()
	by := []*walled{b.by[false], b.by[true]}
	b.mu.Unlock()
	var failed error = syscall.ECONNREFUSED
	for _, w := range by {
		if w == nil {
			continue
		}
		if b.taken(w, port) {
			return nil, thole.Errorf(thole.CodeInvalid, "port %d of the box is thole's own: it leads out", port)
		}
		conn, err := w.Dial(ctx, port)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			failed = err
		}
	}
	if errors.Is(failed, syscall.ECONNREFUSED) {
		return nil, thole.Errorf(thole.CodeConflict, "nothing listens on port %d of the agent", port).
			WithHint("let the agent start its server, on localhost or on every address, and open the port again")
	}
	return nil, thole.Errorf(thole.CodeUnavailable, "reach port %d of the agent: %w", port, failed)
}

// taken reports whether a port of a box is a way out that executord serves.
func (b *boxes) taken(w *walled, port uint16) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return port == proxyPort && b.proxy != nil || port == gatewayPort && b.way != nil || w.ports[port]
}
