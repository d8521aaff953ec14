// Package codex drives OpenAI's codex through `codex app-server` on stdio: one
// native process per session, JSON-RPC lines, approvals, questions, plans,
// steering, forks and usage. It translates and decides nothing of its own except
// what a profile forbids; threads, logs and retries belong to others.
package codex

import (
	"context"
	"errors"
	"os"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

const (
	// Name is the provider's name.
	Name = "codex"
	// Pinned is the version that the conformance suite ran against.
	Pinned = "0.166.0"

	install = "npm install -g @openai/codex@" + Pinned
)

// Provider makes sessions on one codex binary.
type Provider struct {
	binary string // absolute; "" when none was found
	exec   bool   // always the fallback

	mu      sync.Mutex      // guards what follows and exec
	sandbox map[string]bool // whether codex's own sandbox works, by CODEX_HOME
	probed  map[string]provider.Capabilities
}

// New uses the binary at path, or the one on PATH when path is empty. A Node
// wrapper is resolved to the native binary behind it: a signal to the wrapper
// would not reach the agent.
func New(path string) *Provider {
	return &Provider{binary: find(path), sandbox: map[string]bool{}, probed: map[string]provider.Capabilities{}}
}

// NewExec is New on the fallback: `codex exec --json`. New takes it by itself for
// a session with the option transport=exec, or when a CLI has no app-server.
func NewExec(path string) *Provider {
	p := New(path)
	p.exec = true
	return p
}

// Name implements provider.Provider.
func (*Provider) Name() string { return Name }

// Open implements provider.Provider.
func (p *Provider) Open(ctx context.Context, cfg provider.SessionConfig) (provider.Session, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	m, err := parseMode(cfg.Profile)
	if err != nil {
		return nil, err
	}
	if cfg.Dir == "" || cfg.Data == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "open codex session: no workspace or no data directory")
	}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open codex session: %w", err)
	}
	if p.execOnly() || cfg.Options["transport"] == "exec" {
		return p.openExec(ctx, cfg, m)
	}
	s := &session{provider: p, cfg: cfg, mode: m, begun: cfg.Resume != "" && !cfg.Fork}
	if m.sandbox != "danger-full-access" && !p.sandboxWorks(ctx, s.environ()) {
		s.mode = m.guard()
	}
	open := s.start
	switch {
	case cfg.Fork && cfg.Resume != "":
		open = s.fork(cfg.Resume)
	case cfg.Resume != "":
		open = s.resume(cfg.Resume)
	}
	if err := s.connect(ctx, open); err != nil {
		return nil, err
	}
	return s, nil
}

func (p *Provider) execOnly() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exec
}

// check says whether there is a binary to start.
func (p *Provider) check() error {
	if p.binary == "" {
		return p.missing(os.ErrNotExist)
	}
	if info, err := os.Stat(p.binary); err != nil || info.IsDir() {
		return p.missing(os.ErrNotExist)
	}
	return nil
}

func (p *Provider) missing(err error) error {
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	name := p.binary
	if name == "" {
		name = "codex"
	}
	return thole.Errorf(thole.CodeUnavailable, "%w: %s (install it with: %s)", provider.ErrMissing, name, install).WithHint("%s", install)
}
