package opencode

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// session is one conversation with a server of its own. A server that died is
// replaced at the next turn.
type session struct {
	opts   Config
	binary string
	cfg    provider.SessionConfig

	turn chan struct{} // holds one token; whoever has it owns the fields below
	// Owned by the holder of turn (Open, then one Run at a time).
	agents  map[string]bool
	allowed allowances
	lastID  int64

	mu     sync.Mutex // guards what follows
	srv    *server
	feed   *feed
	native string
	run    *run
	closed bool
}

func newSession(opts Config, binary string, cfg provider.SessionConfig) *session {
	return &session{opts: opts, binary: binary, cfg: cfg, turn: make(chan struct{}, 1)}
}

// NativeID is the server's session id, known after Open.
func (s *session) NativeID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.native
}

// PID is the process id of the server, 0 when none runs.
func (s *session) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return 0
	}
	return s.srv.proc.Pid()
}

// open starts the server and finds, forks or makes the conversation.
func (s *session) open(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if _, err := stanceOf(s.cfg.Profile, s.agents); err != nil {
		return err
	}
	var i info
	var err error
	switch {
	case s.cfg.Resume == "":
		err = s.srv.call(ctx, http.MethodPost, "/session", map[string]any{}, &i)
	case s.cfg.Fork:
		if err = s.lookup(ctx, s.cfg.Resume); err == nil {
			err = s.srv.call(ctx, http.MethodPost, "/session/"+s.cfg.Resume+"/fork", map[string]any{}, &i)
		}
	default:
		err = s.lookup(ctx, s.cfg.Resume)
		i.ID = s.cfg.Resume
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.native = i.ID
	s.mu.Unlock()
	return nil
}

// lookup checks that a session exists for this directory: on one of another
// directory a turn would hang.
func (s *session) lookup(ctx context.Context, id string) error {
	var i info
	var err error
	lost := !isSessionID(id)
	if !lost {
		err = s.srv.call(ctx, http.MethodGet, "/session/"+id, nil, &i)
		lost = isStatus(err, http.StatusNotFound) || err == nil && !sameDir(i.Directory, s.cfg.Dir)
	}
	if lost {
		return thole.Errorf(thole.CodeNotFound, "%w: opencode has no session %s for this directory", provider.ErrSessionLost, id).
			WithHint("sessions are bound to the workspace's path and to their data directory")
	}
	return err
}

// isSessionID reports whether the server could have made the id. It fails on any
// other without saying why, and the id becomes part of a path.
func isSessionID(id string) bool {
	rest, ok := strings.CutPrefix(id, "ses_")
	return ok && rest != "" && strings.Trim(rest, letters) == ""
}

func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	ra, err1 := filepath.EvalSymlinks(a)
	rb, err2 := filepath.EvalSymlinks(b)
	return errors.Join(err1, err2) == nil && ra == rb
}

// connect starts a server and its event feed.
func (s *session) connect(ctx context.Context) error {
	ctx, cancel := s.opts.bound(ctx)
	defer cancel()
	srv, err := startServer(ctx, s.binary, s.cfg)
	if err != nil {
		return err
	}
	if err = s.greet(ctx, srv); err != nil {
		srv.close(0)
		return err
	}
	f, err := startFeed(ctx, srv)
	if err != nil {
		srv.close(0)
		return err
	}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.srv, s.feed = srv, f
	}
	s.mu.Unlock()
	if closed {
		f.stop()
		srv.close(0)
		return errClosed()
	}
	return nil
}

// greet asks for the agents, which also makes the server read its configuration:
// a broken one shows here.
func (s *session) greet(ctx context.Context, srv *server) error {
	var list []struct {
		Name string `json:"name"`
	}
	if err := srv.call(ctx, http.MethodGet, "/agent", nil, &list); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "opencode does not answer: %w; %s", err, srv.proc.Diagnosis())
	}
	s.agents = map[string]bool{}
	for _, a := range list {
		s.agents[a.Name] = true
	}
	return nil
}

// alive returns a running server, starting a new one if need be.
func (s *session) alive(ctx context.Context) (*server, *feed, error) {
	s.mu.Lock()
	srv, f, closed := s.srv, s.feed, s.closed
	s.mu.Unlock()
	if closed {
		return nil, nil, errClosed()
	}
	if srv != nil && !srv.dead() {
		return srv, f, nil
	}
	s.drop(0)
	if err := s.connect(ctx); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	srv, f = s.srv, s.feed
	s.mu.Unlock()
	return srv, f, s.lookup(ctx, s.NativeID())
}

// drop ends the present server.
func (s *session) drop(grace time.Duration) {
	s.mu.Lock()
	srv, f := s.srv, s.feed
	s.srv, s.feed = nil, nil
	s.mu.Unlock()
	if srv != nil {
		f.stop()
		srv.close(grace)
	}
}

// Close ends the server and everything it left behind.
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.run != nil {
		s.run.em.Interrupt()
	}
	s.mu.Unlock()
	s.drop(time.Second)
	moveCredentials(s.cfg)
	return nil
}

func errClosed() error { return thole.Errorf(thole.CodeGone, "opencode: the session is closed") }

// running is the turn to act on.
func (s *session) running() (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return nil, provider.ErrNoTurn
	}
	return s.run, nil
}

// parts makes the parts of a prompt.
func (s *session) parts(input []thole.Input) ([]any, error) {
	return provider.Blocks(s.cfg.Dir, input, func(mime, data string) any {
		return map[string]any{"type": "file", "mime": mime, "filename": "image", "url": "data:" + mime + ";base64," + data}
	})
}

// Steer adds input to the running turn.
func (s *session) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	parts, err := s.parts(input)
	if err != nil {
		return err
	}
	r, err := s.running()
	if err != nil {
		return err
	}
	return r.lock.Do(ctx, func() error { return r.steer(ctx, input, parts, clientID) })
}

// Answer settles a pending ask.
func (s *session) Answer(ctx context.Context, ask thole.AskID, answer event.Answer) error {
	r, err := s.running()
	if err != nil {
		return err
	}
	return r.lock.Do(ctx, func() error { return r.answer(ctx, ask, answer) })
}

// Defer is not supported: the server forgets what it asks when it stops.
func (s *session) Defer(context.Context, thole.AskID) error { return provider.ErrUnsupported }

// Stop interrupts the running turn and does not wait for its end.
func (s *session) Stop(context.Context) error {
	r, err := s.running()
	if err != nil {
		return err
	}
	r.em.Interrupt()
	r.lock.Stop()
	return nil
}
