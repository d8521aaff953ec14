package claude

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
)

// hookTimeout is how long the CLI lets a held question wait, in seconds. It is
// below the 24.8 days at which the CLI's timer overflows.
const hookTimeout = 14 * 24 * 3600

// closeGrace is how long an idle CLI gets to end by itself.
const closeGrace = 2 * time.Second

// session is one conversation. A crash, a deferred question or a change to a mode
// that needs another start bring a new process, which resumes by the native id.
type session struct {
	base.Session[*conn]
	opts Config

	// Owned by Open, then by one turn at a time.
	first   opening // how the conversation began
	begun   bool    // the CLI has it on disk
	stance  stance
	boot    stance // the stance the process was started with
	model   string
	effort  string
	schema  json.RawMessage // of the turn's last message; a process has one for life
	base    map[string]modelUsage
	tasks   map[string]bool // background work of the CLI that has not ended
	todos   *todoList
	backlog []*message       // came before a turn began
	parked  bool             // a question was deferred: only a new process asks it again
	hello   *controlResponse // to initialize

	keeps func(context.Context) bool // whether this version keeps deferred questions
}

func newSession(opts Config, binary string, cfg provider.SessionConfig, st stance, keeps func(context.Context) bool) *session {
	s := &session{opts: opts, keeps: keeps, stance: st, model: cfg.Model, effort: cfg.Effort, tasks: map[string]bool{}}
	s.Init(base.Options{Name: name, Ready: opts.Start, StopGrace: opts.StopGrace, CloseGrace: closeGrace, Stall: opts.Stall,
		Login: filepath.Join(configDir(cfg), ".credentials.json")}, binary, cfg, s)
	native := cfg.Resume // we choose it, so it is known from the start
	switch {
	case cfg.Resume != "" && cfg.Fork:
		s.first = opening{resume: cfg.Resume, fork: uuid.NewString()}
		native = s.first.fork
	case cfg.Resume != "":
		s.first, s.begun = opening{resume: cfg.Resume}, true
	default:
		s.first = opening{fresh: uuid.NewString()}
		native = s.first.fresh
	}
	s.SetNative(native)
	s.todos = &todoList{session: native}
	s.todos.load(cfg)
	return s
}

// Start brings a process for the conversation as it is now.
func (s *session) Start(ctx context.Context) (*conn, error) {
	c, err := s.connect(ctx)
	if s.begun && s.first.resume != s.NativeID() && errors.Is(err, provider.ErrSessionLost) {
		s.begun = false // nothing had reached the disk before the process ended
		c, err = s.connect(ctx)
	}
	return c, err
}

func (s *session) connect(ctx context.Context) (*conn, error) {
	o := s.first
	if s.begun {
		o = opening{resume: s.NativeID()}
	}
	env := environment(s.Cfg)
	p, err := s.Launch(env, arguments(s.Cfg, o, s.stance, s.model, s.effort), configDir(s.Cfg), env["HOME"])
	if err != nil {
		return nil, err
	}
	c := newConn(p)
	s.backlog, s.parked = nil, false
	clear(s.tasks)
	if err := s.handshake(ctx, c); err != nil {
		c.Close(0)
		return nil, err
	}
	s.boot = s.stance
	return c, nil
}

// handshake waits until the CLI answers and takes the usage baseline: totals may
// include earlier processes of this session.
func (s *session) handshake(ctx context.Context, c *conn) error {
	hooks := map[string]any{"PreToolUse": []any{map[string]any{
		"matcher": "", "hookCallbackIds": []string{"pre"}, "timeout": hookTimeout,
	}}}
	wish := map[string]any{"hooks": hooks}
	if s.schema != nil {
		wish["jsonSchema"] = s.schema
	}
	hello, err := s.ask(ctx, c, "initialize", wish)
	if err != nil {
		return err
	}
	s.hello = hello
	c.greeted(hello)
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
		_ = c.Wait(waited)
		cancel()
		return nil, s.startFailure(c)
	}
	lock := base.NewTurnLock()
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
	case <-c.Read:
	case <-ctx.Done():
		return nil, thole.Errorf(thole.CodeUnavailable, "claude did not become ready: %w; %s", context.Cause(ctx), c.Diagnosis()).
			WithHint("run `claude --version` and check that the machine is not overloaded")
	}
	if answer == nil {
		return nil, s.startFailure(c)
	}
	return answer, nil
}

// startFailure says why the CLI ended before it was ready.
func (s *session) startFailure(c *conn) error {
	c.Close(closeGrace)
	why := c.Diagnosis()
	if strings.Contains(why, "No conversation found") {
		return thole.Errorf(thole.CodeNotFound, "%w: claude has no session %s for this directory", provider.ErrSessionLost, s.NativeID()).
			WithHint("sessions are bound to the workspace's path and to their data directory")
	}
	return thole.Errorf(thole.CodeUnavailable, "claude did not start: %s", why)
}

// content makes the blocks of a user message.
func (s *session) content(input []thole.Input) ([]any, error) {
	return provider.Blocks(s.Cfg.Dir, input, func(mime, data string) any {
		return map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": mime, "data": data}}
	})
}
