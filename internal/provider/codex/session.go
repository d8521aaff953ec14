package codex

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
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
	base.Session[*link]
	provider *Provider
	mode     mode // of the session's own profile

	// Owned by Open, then by one turn at a time.
	begun bool   // the thread has a turn and can be resumed
	model string // the thread's own model
}

// link is one app-server. What follows the client belongs to the code that handles what
// it says.
type link struct {
	base.Process
	client *appclient.Client
	totals app.TokenUsage         // the thread's, as last reported
	collab *app.CollaborationMode // as last sent to codex; of the turn that runs
	// commands outlive the turns that began them.
	commands commands
}

// Dead reports whether it says no more.
func (l *link) Dead() bool {
	select {
	case <-l.Read:
		return true
	default:
		return l.Process.Dead()
	}
}

// Start brings a server with the thread open on it.
func (s *session) Start(ctx context.Context) (*link, error) {
	if err := prepareHome(s.Cfg); err != nil {
		return nil, err
	}
	proc, err := s.Launch(environ(s.Cfg), append(serverArgs(s.Cfg), "app-server"))
	if err != nil {
		return nil, err
	}
	l := &link{Process: base.Process{Process: proc}}
	fail := func(step string, err error) error {
		var refused *appclient.Error
		if ctx.Err() == nil && !errors.As(err, &refused) { // it does not listen any more: let it say its last words
			waited, cancel := context.WithTimeout(context.Background(), closeGrace)
			_ = proc.Wait(waited)
			cancel()
		}
		diagnosis := proc.Diagnosis()
		l.Close(0)
		return startError(step, err, diagnosis)
	}
	l.client, err = appclient.Pipe(ctx, proc.Stdout, proc.Stdin, appclient.Options{Name: "thole", Version: version.Version, Experimental: true,
		OnNotification: func(n appclient.Notification) { s.heard(l, n) }, OnRequest: s.asked})
	if err != nil {
		return nil, fail("initialize", err)
	}
	l.Read = l.client.Done()
	view, err := s.open(ctx, l.client)
	if err != nil {
		return nil, fail("open thread", err)
	}
	s.SetNative(view.Thread.ID)
	s.model = view.Model
	return l, nil
}

// startError keeps the classes of errors that callers act on.
func startError(step string, err error, diagnosis string) error {
	var refused *appclient.Error
	if errors.As(err, &refused) {
		text := refused.Message
		switch {
		case strings.Contains(text, "no rollout found"), strings.Contains(text, "not found"), strings.Contains(text, "archived"):
			return thole.Errorf(thole.CodeNotFound, "%w: %s", provider.ErrSessionLost, text)
		case strings.Contains(text, "active writer"):
			return thole.Errorf(thole.CodeBusy, "codex: %s: %s", step, text).WithHint("another codex process holds this conversation; close it first")
		}
		return thole.Errorf(thole.CodeInvalid, "codex: %s: %w", step, err)
	}
	return thole.Errorf(thole.CodeUnavailable, "codex did not start: %s: %w; %s", step, err, diagnosis).
		WithHint("run `thole provider probe codex` to see what is wrong")
}

// open starts, resumes or forks the thread. Settings are repeated by every turn,
// because codex keeps what one turn was given.
func (s *session) open(ctx context.Context, c *appclient.Client) (app.ThreadView, error) {
	approval, _ := s.mode.wire()
	sandbox := s.mode.sandbox
	if s.mode.guarded || s.mode.boxed {
		sandbox = "danger-full-access"
	}
	settings := app.Settings{Cwd: &s.Cfg.Dir, Model: opt(s.Cfg.Model), ApprovalPolicy: quoted(approval)}
	told := opt(s.Cfg.Instructions)
	switch native := s.NativeID(); {
	case s.begun:
		r, err := c.Resume(ctx, app.ThreadResumeParams{ThreadID: native, Settings: settings, Sandbox: &sandbox, Config: own(s.Cfg), DeveloperInstructions: told, ExcludeTurns: true})
		if err == nil && r.Thread.ID != native {
			err = &appclient.Error{Message: "thread not found: codex opened " + r.Thread.ID + " instead"}
		}
		return r.ThreadView, err
	case s.Cfg.Resume != "":
		return c.Fork(ctx, app.ThreadForkParams{ThreadID: s.Cfg.Resume, Settings: settings, Sandbox: &sandbox, Config: own(s.Cfg), DeveloperInstructions: told, ExcludeTurns: true})
	}
	return c.StartThread(ctx, app.ThreadStartParams{Settings: settings, Sandbox: &sandbox, Config: own(s.Cfg), DeveloperInstructions: told, DynamicTools: dynamicTools(s.Cfg.Tools)})
}

// own is what of the thread's options codex reads only when its thread is opened.
func own(cfg provider.SessionConfig) json.RawMessage {
	search := cfg.Options[provider.OptionWebSearch]
	if search == "" {
		return nil
	}
	raw, _ := json.Marshal(map[string]string{"web_search": search})
	return raw
}

func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s)
	return raw
}

// environ is the whole environment of the process.
func environ(cfg provider.SessionConfig) map[string]string {
	return base.Environ(cfg, map[string]string{"HOME": cfg.Data, "RUST_LOG": "error"}, map[string]string{"CODEX_HOME": cfg.Data})
}

// modeOf is a profile as it can be held here.
func (s *session) modeOf(ctx context.Context, p thole.Profile) (mode, error) {
	m, err := parseMode(p)
	if m.boxed = s.Cfg.Box != nil; m.boxed {
		return m, err
	}
	if err == nil && m.sandbox != "danger-full-access" && !s.provider.sandboxWorks(ctx, s.Binary, environ(s.Cfg)) {
		m = m.guard()
	}
	return m, err
}
