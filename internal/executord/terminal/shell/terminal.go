// Package shell serves terminals: each is a login shell of its own, whose life it
// owns. With the connection ends everything the shell started, in the background or
// not, and nothing is kept for a client that comes back. It authenticates nobody;
// that is done in front of it.
//
// It is bounded. A client that reads slowly slows the program down, since output is
// read from the terminal only when the one before was taken; one that is silent for
// Patience is gone.
package shell

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"

	"github.com/coder/websocket"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/executord/terminal"
)

// Config makes a Server. Only Dir and Env have no default.
type Config struct {
	Dir string // where shells start
	Env map[string]string
	// Box is where shells run, nil here.
	Box func() (*box.Box, error)
	// Max is how many terminals may be open, default 8.
	Max int
	// PingEvery is how often a quiet client is asked whether it is there, default
	// 30 s; Patience how long it may show no life, default 90 s. It is also what a
	// client has for its first message.
	PingEvery, Patience time.Duration
}

// Server holds the open terminals.
type Server struct {
	cfg Config

	mu   sync.Mutex // guards open and orders the end of base against new ones
	open int
	wait sync.WaitGroup
	base context.Context // ends with the server
	stop context.CancelFunc
}

// NewServer makes a server without terminals.
func NewServer(cfg Config) *Server {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.PingEvery, 30*time.Second)
	def(&cfg.Patience, 90*time.Second)
	if cfg.Max == 0 {
		cfg.Max = 8
	}
	s := &Server{cfg: cfg}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

// Open counts the open terminals.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Close ends every terminal and waits until nothing of them is left.
func (s *Server) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.wait.Wait()
}

func (s *Server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base.Err() != nil {
		return thole.Errorf(thole.CodeUnavailable, "the executor stops")
	}
	if s.open >= s.cfg.Max {
		return thole.Errorf(thole.CodeOverloaded, "this executor has %d open terminals, as many as it may have", s.open).WithHint("close one of them")
	}
	s.open++
	s.wait.Add(1)
	return nil
}

func (s *Server) leave() {
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	s.wait.Done()
}

// Serve turns the request into a terminal and returns when it is over. An error
// means that nothing was answered yet.
//
// A page may come only from the host that was asked for: a proxy that adds the
// token for browsers passes Host on, or judges the Origin itself and drops it.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request) error {
	if !offers(r) {
		return thole.Errorf(thole.CodeInvalid, "a terminal is a WebSocket with the subprotocol %s", terminal.Subprotocol)
	}
	if err := s.admit(); err != nil {
		return err
	}
	defer s.leave()
	hijacked := &hijacked{ResponseWriter: w}
	ws, err := websocket.Accept(hijacked, r, &websocket.AcceptOptions{Subprotocols: []string{terminal.Subprotocol}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept has answered
	}
	ws.SetReadLimit(terminal.MaxMessage)
	run(s.base, s.cfg, ws, hijacked.conn)
	return nil
}

func offers(r *http.Request) bool {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	var all []string
	for _, v := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(v, ",") {
			all = append(all, strings.TrimSpace(name))
		}
	}
	return slices.Contains(all, terminal.Subprotocol)
}

// hijacked remembers the connection below a WebSocket: closing that is the only way
// to hang up on a peer that does not say goodbye.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacked) Hijack() (c net.Conn, rw *bufio.ReadWriter, err error) {
	c, rw, err = http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = c
	return c, rw, err
}
