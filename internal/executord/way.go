package executord

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executord/wire"
)

// Agents reach models through the gateway of the owner alone. In a box it is a port of
// its loopback, without walls a listener of executord's own; either way each connection
// is taken to the owner's socket, which no box shows, after a line that proves which
// executor it comes from. An owner that restarts is waited for: agents do not notice.

const (
	gatewayPort = 3129
	gatewayName = "gateway:3129" // as it is counted

	ownerAway  = 60 * time.Second // how long a connection waits for the owner's socket
	maxWaiting = 64               // connections that wait
)

// way is how connections get to the gateway.
type way struct {
	socket, proof string
	proxy         *egress.Proxy
	own           bool          // the proxy is the way's, as there are no walls
	waiting       chan struct{} // one for each connection that waits for the owner
	patience      time.Duration

	mu sync.Mutex   // guards what follows
	ln net.Listener // executord's own
}

func newWay(socket, proof string, proxy *egress.Proxy) (*way, error) {
	if socket == "" {
		return nil, nil
	}
	w := &way{socket: socket, proof: proof, proxy: proxy, own: proxy == nil, waiting: make(chan struct{}, maxWaiting), patience: ownerAway}
	var err error
	if w.own {
		w.proxy, err = egress.New(egress.Config{Policy: egress.Gateway})
	}
	return w, err
}

// place is where an agent finds the gateway, in a box or next to executord.
func (w *way) place(boxed bool) (string, error) {
	switch {
	case w == nil:
		return "", thole.Errorf(thole.CodeUnavailable, "this executor knows no way to the model gateway").WithHint("stop the executor; the next turn starts it again")
	case boxed:
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(gatewayPort)), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ln == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", thole.Errorf(thole.CodeUnavailable, "lead the agent to the model gateway: %w", err)
		}
		w.ln = ln
		go func() { _ = w.serve(ln) }()
	}
	return w.ln.Addr().String(), nil
}

// serve takes what a listener accepts to the gateway, if the policy lets it.
func (w *way) serve(ln net.Listener) error { return w.proxy.Lead(ln, gatewayName, w.dial) }

// close ends what is the way's own: the rest goes with the box and its proxy.
func (w *way) close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	ln := w.ln
	w.mu.Unlock()
	if ln != nil {
		ln.Close()
	}
	if w.own {
		return w.proxy.Close()
	}
	return nil
}

// dial connects to the gateway. Where nobody listens it tries again for a while.
func (w *way) dial(ctx context.Context) (net.Conn, error) {
	conn, err := w.connect(ctx)
	if !away(err) {
		return conn, err
	}
	select {
	case w.waiting <- struct{}{}:
		defer func() { <-w.waiting }()
	default:
		return nil, errors.New("too many connections wait for the gateway")
	}
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	for again := (backoff.Policy{Min: 5 * time.Millisecond, Max: 500 * time.Millisecond}).Begin(); away(err); {
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(again.Next()):
		}
		c, failed := w.connect(ctx)
		if late, ok := errors.AsType[net.Error](failed); failed != nil && ctx.Err() != nil || ok && late.Timeout() && !away(failed) {
			continue // it is over, and err says what was waited for
		}
		conn, err = c, failed
	}
	return conn, err
}

func (w *way) connect(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", w.socket)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, wire.Gateway+w.proof+"\n"); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// away reports whether the owner is not there, but may come.
func away(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EAGAIN)
}
