package ws

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/unguarded"
)

// Options shape a server.
type Options struct {
	Auth *transport.Auth // nil: none needed
	// Path is where upgrades are taken; "" means any path.
	Path string
	// Health paths answer 200 to anyone without an Origin; default /readyz, /healthz.
	Health       []string
	Limit        int64         // inbound message bytes; default DefaultLimit
	IgnoreBinary bool          // drop binary messages instead of reading them as text
	PingEvery    time.Duration // 0: no pings

	// OtherPaths serves other paths on the same listener, to the same clients; the
	// contexts of its requests end when the server stops, which waits for them.
	OtherPaths *http.ServeMux
}

// Server upgrades requests and runs serve for each connection. serve owns the
// stream until it returns; its context ends when the server stops.
type Server struct {
	opts  Options
	serve func(ctx context.Context, s jsonrpc.Stream)

	mu    sync.Mutex // orders the end of base against new conns
	conns sync.WaitGroup
	base  context.Context // of every serve call
	stop  context.CancelFunc
}

// NewServer makes a server; it is an http.Handler and may also Serve itself.
func NewServer(o Options, serve func(context.Context, jsonrpc.Stream)) *Server {
	if o.Health == nil {
		o.Health = []string{"/readyz", "/healthz"}
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	s := &Server{opts: o, serve: serve}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

type netConnKey struct{}

// ConnContext belongs into http.Server.ConnContext wherever the handler is
// mounted: it lets Close hang up on a peer that does not say goodbye.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, netConnKey{}, c)
}

// Serve accepts on l until ctx ends, then closes l, ends every connection's
// context and waits for their serve calls. To drain, end ctx last.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s, ConnContext: ConnContext, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() {
		s.refuse()
		_ = srv.Close()
	})
	defer stop()
	err := srv.Serve(l)
	s.Stop()
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return thole.Errorf(thole.CodeUnavailable, "serve %s: %w", l.Addr(), err)
}

// Stop ends every connection's context and waits for their serve calls.
func (s *Server) Stop() {
	s.refuse()
	s.conns.Wait()
}

func (s *Server) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// admit counts a connection in, unless the server stops.
func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base.Err() != nil {
		return false
	}
	s.conns.Add(1)
	return true
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Only browsers send an Origin, and no page has business here.
	if !unguarded.Build && (len(r.Header.Values("Origin")) > 0 || !hostAllowed(r)) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch {
	case s.isOtherPath(r):
		s.pass(w, r)
	case slices.Contains(s.opts.Health, r.URL.Path):
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET,HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	case s.opts.Path != "" && r.URL.Path != s.opts.Path:
		w.WriteHeader(http.StatusNotFound)
	case !isUpgrade(r):
		http.Error(w, "Connection header did not include 'upgrade'", http.StatusBadRequest)
	default:
		s.upgrade(w, r)
	}
}

// isOtherPath reports whether a request is for OtherPaths.
func (s *Server) isOtherPath(r *http.Request) bool {
	if s.opts.OtherPaths == nil {
		return false
	}
	_, pattern := s.opts.OtherPaths.Handler(r)
	return pattern != ""
}

func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	if err := s.opts.Auth.Check(r); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if !s.admit() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer s.conns.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.base, cancel)()
	s.opts.OtherPaths.ServeHTTP(w, r.WithContext(ctx))
}

// hostAllowed stops a page whose name was made to resolve to loopback: what
// reached a loopback port must have asked for loopback.
func hostAllowed(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

func isUpgrade(r *http.Request) bool {
	for _, v := range r.Header.Values("Connection") {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), "upgrade") {
				return true
			}
		}
	}
	return false
}

func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	if err := s.opts.Auth.Check(r); err != nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(err.Error()))
		return
	}
	if !s.admit() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer s.conns.Done()
	nc, _ := r.Context().Value(netConnKey{}).(net.Conn)
	c, err := websocket.Accept(&limited{ResponseWriter: w, limit: s.opts.Limit}, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // Origin was judged above, more strictly
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return // Accept has answered
	}
	c.SetReadLimit(s.opts.Limit)
	st := &stream{c: c, net: nc, ignoreBinary: s.opts.IgnoreBinary, code: websocket.StatusGoingAway}
	if s.opts.PingEvery > 0 {
		st.ping(s.opts.PingEvery)
	}
	defer func() { _ = st.Close("") }()
	s.serve(s.base, st)
}
