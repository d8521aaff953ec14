// Package codex drives OpenAI's codex through `codex app-server` on stdio: one
// native process per session, JSON-RPC lines, approvals, questions, plans,
// steering, forks and usage. It translates and decides nothing of its own except
// what a profile forbids; threads, logs and retries belong to others.
package codex

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/provider/table"
)

const (
	// Name is the provider's name.
	Name = table.Contract
	// Pinned is the version that the conformance suite ran against.
	Pinned = "0.166.0"
)

// Provider makes sessions on one codex binary.
type Provider struct {
	base.Provider

	mu      sync.Mutex      // guards what follows
	exec    bool            // always the fallback
	sandbox map[string]bool // whether codex's own sandbox works, by CODEX_HOME
}

// New uses the binary at path, or the one on PATH when path is empty.
func New(path string) *Provider {
	vendor := "vendor/" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-*/bin/codex"
	p := &Provider{sandbox: map[string]bool{}}
	p.Binary = provider.Probe{Path: path, Pinned: Pinned, Tested: p.tested, Ask: p.ask, List: p.models, Query: provider.Query{Homes: []string{"CODEX_HOME"}},
		Binary: provider.Binary{Title: "Codex", Name: Name, Install: table.Of(Name).Install + "@" + Pinned,
			NativePatterns: []string{vendor, "@openai/codex-" + provider.NodePlatform() + "/" + vendor}}}
	return p
}

// NewExec is New on the fallback: `codex exec --json`. New takes it by itself for
// a session with the option transport=exec, or when a CLI has no app-server.
func NewExec(path string) *Provider {
	p := New(path)
	p.exec = true
	return p
}

// Open implements provider.Provider.
func (p *Provider) Open(ctx context.Context, cfg provider.SessionConfig) (provider.Session, error) {
	binary, err := p.Find(cfg)
	if err != nil {
		return nil, err
	}
	data, err := base.OpenFiles(cfg, cfg.Data)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open codex session: %w", err)
	}
	data.Close()
	if p.execOnly() || cfg.Options["transport"] == "exec" {
		return p.openExec(ctx, binary, cfg)
	}
	s := &session{provider: p, begun: cfg.Resume != "" && !cfg.Fork}
	s.Init(options(cfg), binary, cfg, s)
	if s.begun {
		s.SetNative(cfg.Resume)
	}
	if s.mode, err = s.modeOf(ctx, cfg.Profile); err == nil {
		_, err = s.Alive(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func options(cfg provider.SessionConfig) base.Options {
	return base.Options{Name: Name, Ready: startLimit, StopGrace: stopGrace, CloseGrace: closeGrace, CutGrace: closeGrace,
		Login: filepath.Join(cfg.Data, "auth.json"), Linked: true}
}

func (p *Provider) execOnly() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exec
}
