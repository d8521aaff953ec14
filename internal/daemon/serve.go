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
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/transport/unix"
	"github.com/tholehq/thole/internal/version"
)

// DefaultIdle is how long a daemon stays with nothing to do.
const DefaultIdle = 10 * time.Minute

// Method answers one call. The actor was proven by the socket. Its context ends
// when the connection does or the daemon kills what is left.
type Method func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error)

// Config makes a server.
type Config struct {
	Owner   *Owner
	Role    string // "daemon" or "up"
	Methods map[string]Method
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
	staying string

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
func (s *server) serveLines(stream jsonrpc.Stream) {
	conn := jsonrpc.NewConn(stream, jsonrpc.Options{Handler: handler{s}})
	s.mu.Lock()
	s.clients[conn] = struct{}{}
	s.mu.Unlock()
	_ = conn.Run(s.kill)
	s.mu.Lock()
	delete(s.clients, conn)
	s.last = time.Now()
	s.mu.Unlock()
}

type handler struct{ s *server }

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
		ctx := req.Context()
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
		return s.status(), nil
	case wire.DaemonStop:
		var p wire.StopParams
		if err := strictjson.Unmarshal(orEmpty(req.Params), &p); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "daemon stop: %w", err)
		}
		if p.Unless != "" && p.Unless == s.cfg.Role {
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
		return s.status(), nil
	}
	m, ok := s.cfg.Methods[req.Method]
	if !ok {
		return nil, thole.Errorf(thole.CodeUnsupported, "the daemon does not know %s", req.Method).
			WithHint("its version is %s; thole daemon stop lets the next command start yours", version.Version)
	}
	return m(ctx, thole.LocalActor, orEmpty(req.Params))
}

// Up refuses a second thole up.
func Up(home string, pid int) error {
	return thole.Errorf(thole.CodeBusy, "thole is up already on %s, process %d", home, pid).WithHint("thole login prints a link to its page; kill %d ends it", pid)
}

func orEmpty(p json.RawMessage) json.RawMessage {
	if len(p) == 0 {
		return json.RawMessage("{}")
	}
	return p
}

func (s *server) status() wire.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := wire.Status{
		Version: version.Version, PID: os.Getpid(), Home: s.cfg.Owner.Home, Role: s.cfg.Role, StartedAt: s.started.UTC(),
		Clients: len(s.clients), Staying: s.staying,
	}
	if s.cfg.Idle > 0 && s.staying == "" {
		st.ExitsAt = s.last.Add(s.cfg.Idle).UTC()
	}
	return st
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
		why := ""
		if s.cfg.Staying != nil {
			var err error
			if why, err = s.cfg.Staying(s.accept, s.cfg.Idle); err != nil {
				if s.accept.Err() != nil {
					return
				}
				why = "cannot read what is open: " + err.Error()
			}
		}
		s.mu.Lock()
		s.staying = why
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
