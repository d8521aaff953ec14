package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/transport/unix"
	"github.com/tholehq/thole/internal/version"
)

// Method answers one call. The actor was proven by the socket. Its context ends
// when the connection does or the daemon kills what is left.
type Method func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error)

// Config makes a server.
type Config struct {
	Owner   *Owner
	Role    string // "daemon", "up" or "serve"
	Methods map[string]Method
	// Audit records what is refused; nil: nobody does.
	Audit *audit.Log
	// Waiting names methods that may wait for long: when the daemon stops they are
	// cut off without an answer, and the client asks the successor again.
	Waiting map[string]bool
	// Attach serves WebSocket connections on the same socket; nil refuses them.
	Attach func(ctx context.Context, s jsonrpc.Stream)
	// OtherPaths serves paths of its own where WebSocket connections are served.
	OtherPaths *http.ServeMux
	// Idle ends the process after this long without clients and work; 0: never.
	Idle time.Duration
	// Staying says why the process must live on for longer than the idle timeout,
	// "" if nothing needs it. Nil: nothing ever does.
	Staying func(ctx context.Context, idle time.Duration) (string, error)
	// Ready is called once when the socket answers.
	Ready func()
	Log   *slog.Logger
}

// StopReason says why Serve returned.
type StopReason string

const (
	StopContext  StopReason = "asked to stop"
	StopRequest  StopReason = "stopped by a client"
	StopIdle     StopReason = "idle"
	StopHandover StopReason = "handed over"
)

// drainTime bounds how long a stopping server waits for requests under way.
const drainTime = 30 * time.Second

type server struct {
	cfg     Config
	started time.Time

	mu      sync.Mutex // guards what follows
	clients map[*jsonrpc.Conn]struct{}
	last    time.Time // of the end of the latest activity

	busy sync.WaitGroup // requests under way
	stop chan StopReason
	// accept ends when no new request is taken, kill when the old ones must go.
	accept, kill context.Context
}

// Serve answers until ctx ends, a client asks, or the idle rules say so. It
// returns when every request was answered and every connection is gone.
func Serve(ctx context.Context, cfg Config) (StopReason, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l, err := unix.Listen(Socket(cfg.Owner.Home))
	if err != nil {
		return "", err
	}
	s := &server{cfg: cfg, started: time.Now(), last: time.Now(), clients: map[*jsonrpc.Conn]struct{}{}, stop: make(chan StopReason, 1)}
	accept, stopAccept := context.WithCancel(ctx)
	defer stopAccept()
	kill, killAll := context.WithCancel(context.WithoutCancel(ctx))
	defer killAll()
	s.accept, s.kill = accept, kill

	mux := newMux(l, s.serveLines, cfg.Attach, cfg.OtherPaths)
	var run sync.WaitGroup
	run.Go(func() { mux.run(kill) })
	run.Go(s.watchIdle)
	if cfg.Ready != nil {
		cfg.Ready()
	}
	debug.FreeOSMemory() // a daemon mostly waits, and starting needed more than that
	var reason StopReason
	select {
	case <-ctx.Done():
		reason = StopContext
	case reason = <-s.stop:
	}
	// First nobody new, then answers for everyone who was heard, then goodbye: a
	// client that was not heard sees the connection end and asks our successor.
	stopAccept()
	err = l.Close()
	drained := make(chan struct{})
	go func() { s.busy.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainTime):
		cfg.Log.Warn("requests were cut off", "after", drainTime)
	}
	s.closeAll(string(reason))
	killAll()
	run.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return reason, err
}

func (s *server) closeAll(reason string) {
	s.mu.Lock()
	conns := make([]*jsonrpc.Conn, 0, len(s.clients))
	for c := range s.clients {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = c.Drain(ctx)
		cancel()
		c.Close(reason)
	}
}

// serveLines speaks our own methods to one client.
func (s *server) serveLines(stream jsonrpc.Stream, peer *Peer) {
	conn := jsonrpc.NewConn(stream, jsonrpc.Options{Handler: handler{s, peer}})
	s.mu.Lock()
	s.clients[conn] = struct{}{}
	s.mu.Unlock()
	_ = conn.Run(s.kill)
	s.mu.Lock()
	delete(s.clients, conn)
	s.last = time.Now()
	s.mu.Unlock()
}

type handler struct {
	s    *server
	peer *Peer
}

func (h handler) Notification(*jsonrpc.Notification) {}

func (h handler) Request(req *jsonrpc.Request) {
	s := h.s
	s.mu.Lock()
	stopping := s.accept.Err() != nil
	if !stopping {
		s.busy.Add(1)
	}
	s.mu.Unlock()
	if stopping {
		req.Conn().Close("the daemon is stopping")
		return
	}
	go func() {
		defer s.busy.Done()
		ctx := WithPeer(req.Context(), h.peer)
		if s.cfg.Waiting[req.Method] {
			c, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.accept, cancel)()
			ctx = c
		}
		result, err := s.call(ctx, req)
		if s.cfg.Waiting[req.Method] && s.accept.Err() != nil {
			req.Conn().Close("the daemon is stopping")
			return
		}
		if err != nil {
			_ = req.Error(toWire(err))
			return
		}
		if err := req.Reply(result); err != nil && !req.Answered() {
			_ = req.Error(jsonrpc.Errorf(jsonrpc.CodeInternal, "encode answer: %v", err))
		}
	}()
}

func (s *server) call(ctx context.Context, req *jsonrpc.Request) (any, error) {
	switch req.Method {
	case wire.Hello, wire.DaemonStatus:
		return s.status(ctx), nil
	case wire.DaemonStop:
		var p wire.StopParams
		if err := strictjson.Unmarshal(orEmpty(req.Params), &p); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "daemon stop: %w", err)
		}
		if p.Unless != "" && s.cfg.Role != "daemon" { // which alone makes room for those that a person started
			return nil, Up(s.cfg.Owner.Home, os.Getpid())
		}
		reason := StopRequest
		if p.Handover {
			reason = StopHandover
		}
		select {
		case s.stop <- reason:
		default:
		}
		return s.status(ctx), nil
	}
	m, ok := s.cfg.Methods[req.Method]
	if !ok {
		return nil, thole.Errorf(thole.CodeUnsupported, "the daemon does not know %s", req.Method).
			WithHint("its version is %s; thole daemon stop lets the next command start yours", version.Version)
	}
	ctx = audit.With(authz.Doing(ctx, ActionOf(req.Method)), audit.Source{Actor: thole.LocalActor})
	out, err := m(ctx, thole.LocalActor, orEmpty(req.Params))
	if thole.CodeOf(err) == thole.CodeForbidden {
		s.cfg.Audit.Refused(ctx, audit.Entry{Action: "socket.request", Kind: "method", ID: req.Method, Reason: err.Error()})
	}
	return out, err
}

// Up refuses a second thole up or thole serve.
func Up(home string, pid int) error {
	return thole.Errorf(thole.CodeBusy, "thole is up already on %s, process %d", home, pid).WithHint("thole login prints a link to its page; kill %d ends it", pid)
}

func orEmpty(p json.RawMessage) json.RawMessage {
	if len(p) == 0 {
		return json.RawMessage("{}")
	}
	return p
}

// status is what holds at this moment, not at the last look of the idle rules.
func (s *server) status(ctx context.Context) wire.Status {
	why := s.why(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := wire.Status{
		Version: version.Version, PID: os.Getpid(), Home: s.cfg.Owner.Home, Role: s.cfg.Role, StartedAt: s.started.UTC(),
		Clients: len(s.clients), Staying: why,
	}
	if s.cfg.Idle > 0 && why == "" {
		st.ExitsAt = s.last.Add(s.cfg.Idle).UTC()
	}
	return st
}

// why says what needs this process for longer than the idle timeout, "" if nothing does.
func (s *server) why(ctx context.Context) string {
	if s.cfg.Staying == nil {
		return ""
	}
	why, err := s.cfg.Staying(ctx, s.cfg.Idle)
	if err != nil { // what cannot be read may be anything
		return "what is open cannot be read: " + err.Error()
	}
	return why
}

// watchIdle ends the server when for the idle timeout no client was there and
// nothing durable needs a live process before the same time has passed again.
func (s *server) watchIdle() {
	if s.cfg.Idle <= 0 {
		return
	}
	every := max(s.cfg.Idle/10, 10*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.accept.Done():
			return
		case <-tick.C:
		}
		why := s.why(s.accept)
		if s.accept.Err() != nil {
			return
		}
		s.mu.Lock()
		if why != "" || len(s.clients) > 0 {
			s.last = time.Now()
		}
		idle := time.Since(s.last) >= s.cfg.Idle
		s.mu.Unlock()
		if idle {
			select {
			case s.stop <- StopIdle:
			default:
			}
			return
		}
	}
}

func toWire(err error) *jsonrpc.Error {
	data, _ := json.Marshal(wire.ErrorData{Code: string(thole.CodeOf(err)), Hint: thole.HintOf(err)})
	return &jsonrpc.Error{Code: -32000, Message: err.Error(), Data: data}
}
