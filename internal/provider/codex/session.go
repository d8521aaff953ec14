package codex

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/version"
)

const (
	// startLimit bounds a start-up without a deadline of the caller's.
	startLimit = time.Minute
	// stopGrace is how long an interrupted turn may take to end before the process
	// is killed.
	stopGrace = 10 * time.Second
	// closeGrace is how long the process may take to end after its stdin closed.
	closeGrace = 3 * time.Second
)

// session is one conversation on one app-server process. The process is started
// again by the next turn when it died.
type session struct {
	provider *Provider
	binary   string
	cfg      provider.SessionConfig
	mode     mode

	runMu sync.Mutex // held by Run: one turn at a time

	mu     sync.Mutex // guards what follows
	proc   *process.Process
	conn   *client
	served chan struct{} // closed when the connection has ended and its turn was told
	native string
	begun  bool   // the thread has a turn and can be resumed
	model  string // the thread's own model
	run    *run
	closed bool
}

// connect starts the process and opens the thread. Callers hold runMu or are Open.
func (s *session) connect(ctx context.Context, open func(ctx context.Context, c *client) (threadResult, error)) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startLimit)
		defer cancel()
	}
	if err := s.prepareHome(); err != nil {
		return err
	}
	env := s.environ()
	proc, err := process.Start(process.Spec{Path: s.binary, Args: append(serverArgs(), "app-server"), Dir: s.cfg.Dir, Env: env, Secrets: provider.Secrets(env), Box: s.cfg.Box})
	if err != nil {
		return err
	}
	conn := newClient(stdio.New(proc.Stdout, proc.Stdin, 0))
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn.read(func(m *jsonrpc.Message) { s.handle(conn, m) })
		s.lost(conn, proc)
	}()
	fail := func(step string, err error) error {
		var refused *jsonrpc.Error
		if ctx.Err() == nil && !errors.As(err, &refused) { // it does not listen any more: let it say its last words
			waited, cancel := context.WithTimeout(context.Background(), closeGrace)
			_ = proc.Wait(waited)
			cancel()
		}
		diagnosis := proc.Diagnosis()
		proc.Kill()
		<-served
		return startError(step, err, diagnosis)
	}
	var hello initializeResult
	err = conn.Call(ctx, "initialize", initializeParams{
		ClientInfo:   clientInfo{Name: "thole", Title: "thole", Version: version.Version},
		Capabilities: map[string]any{"experimentalApi": true},
	}, &hello)
	if err != nil {
		return fail("initialize", err)
	}
	if err := conn.Notify("initialized"); err != nil {
		return fail("initialize", err)
	}
	thread, err := open(ctx, conn)
	if err != nil {
		return fail("open thread", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc, s.conn, s.served = proc, conn, served
	s.native, s.model = thread.Thread.ID, thread.Model
	return nil
}

// startError keeps the classes of errors that callers act on.
func startError(step string, err error, diagnosis string) error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		text := refused.Message
		switch {
		case strings.Contains(text, "no rollout found"), strings.Contains(text, "thread not found"), strings.Contains(text, "not found"), strings.Contains(text, "archived"):
			return thole.Errorf(thole.CodeNotFound, "%w: %s", provider.ErrSessionLost, text)
		case strings.Contains(text, "active writer"):
			return thole.Errorf(thole.CodeBusy, "codex: %s: %s", step, text).WithHint("another codex process holds this conversation; close it first")
		}
		return thole.Errorf(thole.CodeInvalid, "codex: %s: %w", step, err)
	}
	return thole.Errorf(thole.CodeUnavailable, "codex did not start: %s: %w; %s", step, err, diagnosis).
		WithHint("run `thole provider probe codex` to see what is wrong")
}

// threadParams of start, resume and fork. Settings are repeated by every turn,
// because codex keeps what one turn was given.
func (s *session) threadParams() threadParams {
	approval, _ := s.mode.wire()
	p := threadParams{Cwd: s.cfg.Dir, Model: s.cfg.Model, ApprovalPolicy: approval, DeveloperInstructions: s.cfg.Instructions, Sandbox: s.mode.sandbox}
	if s.mode.guarded {
		p.Sandbox = "danger-full-access"
	}
	return p
}

func (s *session) start(ctx context.Context, c *client) (r threadResult, err error) {
	return r, c.Call(ctx, "thread/start", s.threadParams(), &r)
}

func (s *session) resume(native string) func(context.Context, *client) (threadResult, error) {
	return func(ctx context.Context, c *client) (threadResult, error) {
		r, err := s.continued(ctx, c, "thread/resume", native)
		if err == nil && r.Thread.ID != native {
			err = &jsonrpc.Error{Message: "thread not found: codex opened " + r.Thread.ID + " instead"}
		}
		return r, err
	}
}

func (s *session) fork(native string) func(context.Context, *client) (threadResult, error) {
	return func(ctx context.Context, c *client) (threadResult, error) {
		return s.continued(ctx, c, "thread/fork", native)
	}
}

func (s *session) continued(ctx context.Context, c *client, method, native string) (r threadResult, err error) {
	p := s.threadParams()
	p.ThreadID, p.ExcludeTurns = native, true
	return r, c.Call(ctx, method, p, &r)
}

// alive returns a live connection, starting the process again when it died.
func (s *session) alive(ctx context.Context) (*client, error) {
	s.mu.Lock()
	conn, native, begun, closed, served := s.conn, s.native, s.begun, s.closed, s.served
	s.mu.Unlock()
	if closed {
		return nil, thole.Errorf(thole.CodeConflict, "codex session is closed")
	}
	if conn.alive() {
		return conn, nil
	}
	<-served
	open := s.start
	if begun {
		open = s.resume(native)
	}
	if err := s.connect(ctx, open); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn, nil
}

// environ is the whole environment of the process.
func (s *session) environ() map[string]string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": s.cfg.Data, "RUST_LOG": "error"}
	for k, v := range s.cfg.Env {
		env[k] = v
	}
	env["CODEX_HOME"] = s.cfg.Data
	return env
}

// NativeID implements provider.Session.
func (s *session) NativeID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.native
}

// PID is the process id of the CLI.
func (s *session) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.Pid()
}

// Close implements provider.Session.
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	proc, served := s.proc, s.served
	s.mu.Unlock()
	proc.Stop(closeGrace)
	<-served
	return s.linkAuth()
}
