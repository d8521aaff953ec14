// Package claude drives Claude Code: the native binary with its stream-json
// control protocol on stdin and stdout. Permission prompts, questions and hooks
// are answered over the same pipe, so the host decides every call.
//
// Questions are held in the PreToolUse hook and not in the permission prompt,
// because only a hook can be deferred: the CLI then parks the question on disk and
// asks it again when another process resumes the session. The same hook denies
// writes while planning, whatever rules the CLI would let them through by.
//
// The package never goes through a shell or the Node wrapper, passes on no
// environment of the host, and does not read the CLI's transcript files: what the
// CLI says on stdout is the truth, its exit code is not.
package claude

import (
	"cmp"
	"context"
	"time"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/provider/table"
)

// Name is the provider's name.
const Name = "claude"

const (
	name   = Name
	pinned = "2.1.325"
)

// Config places the CLI and sets the driver's waits. The zero value finds the
// CLI on this machine.
type Config struct {
	// Binary is the path of the CLI, "" to look for it.
	Binary string
	// Start bounds the CLI's start when the caller's context does not.
	Start time.Duration
	// Stall is how long a model call may stay silent before the turn fails.
	Stall time.Duration
	// StopGrace is how long an interrupted turn may take to end before the CLI is
	// killed.
	StopGrace time.Duration
	// Background is how long a turn that left a background command running waits
	// for its result. Later results are reported at the start of the next turn.
	Background time.Duration
}

func (c *Config) defaults() {
	c.Start = cmp.Or(c.Start, 30*time.Second)
	c.Stall = cmp.Or(c.Stall, 5*time.Minute)
	c.StopGrace = cmp.Or(c.StopGrace, 5*time.Second)
	c.Background = cmp.Or(c.Background, 10*time.Second)
}

// Provider makes sessions of Claude Code.
type Provider struct {
	base.Provider
	cfg Config
}

// New returns the driver. It does nothing yet: a missing CLI shows in Probe and
// Open.
func New(cfg Config) *Provider {
	cfg.defaults()
	beside := "@anthropic-ai/claude-code-" + provider.NodePlatform()
	p := &Provider{cfg: cfg}
	p.Provider.Binary = provider.Probe{Path: cfg.Binary, Pinned: pinned, Tested: tested, Ask: p.ask,
		Models: []provider.Model{{ID: "default", Title: "Default", Default: true}, {ID: "opus", Title: "Opus"}, {ID: "sonnet", Title: "Sonnet"}, {ID: "haiku", Title: "Haiku"}},
		Query:  provider.Query{Homes: []string{"CLAUDE_CONFIG_DIR"}, Env: map[string]string{"DISABLE_AUTOUPDATER": "1"}},
		Binary: provider.Binary{Title: "Claude Code", Name: name, Install: table.Of(Name).Install + "@" + pinned,
			Homes:          []string{".local/bin/claude", ".claude/local/claude"},
			NativePatterns: []string{beside + "/claude", beside + "-musl/claude"}}}
	return p
}

// Open starts the CLI for one conversation.
func (p *Provider) Open(ctx context.Context, cfg provider.SessionConfig) (provider.Session, error) {
	binary, err := p.Find(cfg)
	if err != nil {
		return nil, err
	}
	if len(cfg.Tools) > 0 && cfg.Env[provider.ToolsURL] == "" {
		return nil, provider.ErrNoTools()
	}
	st, err := stanceOf(cfg.Profile)
	if err != nil {
		return nil, err
	}
	s := newSession(p.cfg, binary, cfg, st, p.keeps)
	if _, err := s.Alive(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
