package claude

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// hookTimeout is how long the CLI lets a held question wait, in seconds. It is
// below the 24.8 days at which the CLI's timer overflows.
const hookTimeout = 14 * 24 * 3600

// closeGrace is how long an idle CLI gets to end by itself.
const closeGrace = 2 * time.Second

// session is one conversation. Its process may come and go: a crash, a deferred
// question or a change to a mode that needs another start bring a new one, which
// resumes by the native id.
type session struct {
	opts   Config
	binary string
	cfg    provider.SessionConfig

	turn chan struct{} // holds one token; whoever has it owns the fields below
	// Owned by the holder of turn (Open, then one Run at a time).
	first   opening // how the conversation began
	begun   bool    // the CLI has it on disk
	stance  stance
	boot    stance // the stance the process was started with
	model   string
	effort  string
	base    map[string]modelUsage
	tasks   map[string]bool // background work of the CLI that has not ended
	todos   *todoList
	backlog []*message       // came before a turn began
	parked  bool             // a question was deferred: only a new process asks it again
	hello   *controlResponse // to initialize

	keeps func(context.Context) bool // whether this version keeps deferred questions

	mu     sync.Mutex // guards what follows
	conn   *conn
	native string
	run    *run
	closed bool
}

func newSession(opts Config, binary string, cfg provider.SessionConfig, st stance, keeps func(context.Context) bool) *session {
	s := &session{opts: opts, keeps: keeps, binary: binary, cfg: cfg, stance: st, model: cfg.Model, effort: cfg.Effort, turn: make(chan struct{}, 1), tasks: map[string]bool{}}
	switch {
	case cfg.Resume != "" && cfg.Fork:
		s.first = opening{resume: cfg.Resume, fork: uuid.NewString()}
		s.native = s.first.fork
	case cfg.Resume != "":
		s.first, s.begun = opening{resume: cfg.Resume}, true
		s.native = cfg.Resume
	default:
		s.first = opening{fresh: uuid.NewString()}
		s.native = s.first.fresh
	}
	s.todos = &todoList{session: s.native}
	s.todos.load(configDir(cfg))
	return s
}

// NativeID is the CLI's session id. We choose it, so it is known from the start.
func (s *session) NativeID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.native
}

// PID is the process id of the CLI, 0 when none runs.
func (s *session) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return 0
	}
	return s.conn.proc.Pid()
}

// connect starts a process for the conversation as it is now.
func (s *session) connect(ctx context.Context) error {
	o := s.first
	if s.begun {
		o = opening{resume: s.NativeID()}
	}
	args := arguments(s.cfg, o, s.stance, s.model, s.effort)
	p, err := launch(s.binary, s.cfg, args)
	if err != nil {
		return err
	}
	c := newConn(p)
	ctx, cancel := context.WithTimeout(ctx, s.opts.Start)
	defer cancel()
	s.backlog, s.parked = nil, false
	if err := s.handshake(ctx, c); err != nil {
		c.close(0)
		return err
	}
	s.boot = s.stance
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.close(0)
		return errClosed()
	}
	s.conn = c
	return nil
}

// handshake waits until the CLI answers and takes the usage baseline: totals may
// include earlier processes of this session.
func (s *session) handshake(ctx context.Context, c *conn) error {
	hooks := map[string]any{"PreToolUse": []any{map[string]any{
		"matcher": "", "hookCallbackIds": []string{"pre"}, "timeout": hookTimeout,
	}}}
	hello, err := s.ask(ctx, c, "initialize", map[string]any{"hooks": hooks})
	if err != nil {
		return err
	}
	s.hello = hello
	// A version without this request answers with an error: it has no total.
	usage, err := s.ask(ctx, c, "get_usage", nil)
	if err != nil {
		return err
	}
	var u struct {
		Session struct {
			ModelUsage map[string]modelUsage `json:"model_usage"`
		} `json:"session"`
	}
	_ = strictjson.Unmarshal(usage.Response, &u)
	s.base = u.Session.ModelUsage
	return nil
}

// ask sends one control request before any turn and waits for its answer. What
// else the CLI says meanwhile is kept for the first turn.
func (s *session) ask(ctx context.Context, c *conn, subtype string, fields map[string]any) (*controlResponse, error) {
	id, err := c.control(subtype, fields)
	if err != nil { // it does not listen any more: let it say its last words
		waited, cancel := context.WithTimeout(ctx, closeGrace)
		_ = c.proc.Wait(waited)
		cancel()
		return nil, s.startFailure(c)
	}
	lock := provider.NewTurnLock()
	var answer *controlResponse
	c.listen(listener{lock, func(m *message) {
		switch {
		case m.Type == "result" && m.IsError:
			lock.End(provider.Ended{})
		case m.Type == "control_response" && m.Response != nil && m.Response.RequestID == id:
			answer = m.Response
			lock.End(provider.Ended{})
		default:
			s.backlog = append(s.backlog, m)
		}
	}})
	select {
	case <-lock.Over():
	case <-c.gone:
	case <-ctx.Done():
		return nil, thole.Errorf(thole.CodeUnavailable, "claude did not become ready: %w; %s", context.Cause(ctx), c.proc.Diagnosis()).
			WithHint("run `claude --version` and check that the machine is not overloaded")
	}
	if answer == nil {
		return nil, s.startFailure(c)
	}
	return answer, nil
}

// startFailure says why the CLI ended before it was ready.
func (s *session) startFailure(c *conn) error {
	c.close(closeGrace)
	why := c.proc.Diagnosis()
	if strings.Contains(why, "No conversation found") {
		return thole.Errorf(thole.CodeNotFound, "%w: claude has no session %s for this directory", provider.ErrSessionLost, s.NativeID()).
			WithHint("sessions are bound to the workspace's path and to their data directory")
	}
	return thole.Errorf(thole.CodeUnavailable, "claude did not start: %s", why)
}

// reconnect brings a process back for the next turn.
func (s *session) reconnect(ctx context.Context) (*conn, error) {
	s.drop(0)
	err := s.connect(ctx)
	if s.begun && s.first.resume != s.NativeID() && errors.Is(err, provider.ErrSessionLost) {
		s.begun = false // nothing had reached the disk before the process ended
		err = s.connect(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, errClosed()
	}
	return s.conn, nil
}

// drop ends the present process.
func (s *session) drop(grace time.Duration) {
	s.mu.Lock()
	c := s.conn
	s.conn = nil
	s.mu.Unlock()
	if c != nil {
		c.close(grace)
	}
	clear(s.tasks)
}

// Close ends the CLI and everything it left behind.
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	c, r := s.conn, s.run
	s.conn = nil
	s.mu.Unlock()
	if c != nil {
		if r != nil {
			r.em.Interrupt()
			c.close(0)
		} else {
			c.close(closeGrace)
		}
	}
	moveCredentials(s.cfg)
	return nil
}

func errClosed() error { return thole.Errorf(thole.CodeGone, "claude: the session is closed") }

// running is the turn to act on.
func (s *session) running() (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return nil, provider.ErrNoTurn
	}
	return s.run, nil
}

// content makes the blocks of a user message.
func (s *session) content(input []thole.Input) ([]any, error) {
	return provider.Blocks(s.cfg.Dir, input, func(mime, data string) any {
		return map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": mime, "data": data}}
	})
}

// Steer adds input to the running turn.
func (s *session) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	content, err := s.content(input)
	if err != nil {
		return err
	}
	r, err := s.running()
	if err != nil {
		return err
	}
	return r.lock.Do(ctx, func() error { return r.steer(input, content, clientID) })
}

// Answer settles a pending ask.
func (s *session) Answer(ctx context.Context, ask thole.AskID, answer event.Answer) error {
	r, err := s.running()
	if err != nil {
		return err
	}
	return r.lock.Do(ctx, func() error { return r.answer(ask, answer) })
}

// Defer parks a pending question on disk.
func (s *session) Defer(ctx context.Context, ask thole.AskID) error {
	r, err := s.running()
	if err != nil {
		return err
	}
	if !s.keeps(ctx) {
		return provider.ErrUnsupported
	}
	return r.lock.Do(ctx, func() error { return r.deferAsk(ask) })
}

// Stop interrupts the running turn and does not wait for its end.
func (s *session) Stop(ctx context.Context) error {
	r, err := s.running()
	if err != nil {
		return err
	}
	r.em.Interrupt()
	r.lock.Stop()
	return nil
}
