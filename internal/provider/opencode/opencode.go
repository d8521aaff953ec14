// Package opencode drives opencode: one `opencode serve` for each session, on
// loopback with a password of its own, spoken to over HTTP and its event stream.
//
// Every edit, command and unknown tool asks the host first, in all profiles, by
// rules that also reach sub-agents; the host answers by the turn's profile. So a
// profile holds for one turn, plan cannot be talked into writing, and a change's
// diff is known before it is made. "Always" is remembered here and not in the
// server, where it would outlive the profile it was given under.
//
// The event stream has no replay: after a reconnect the messages, todos and
// pending asks are read again, and everything that was emitted already is skipped.
// The package does not touch the server's database and uses none of its
// experimental interfaces.
package opencode

import (
	"cmp"
	"context"
	"time"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/provider/table"
)

// Name is the provider's name.
const Name = "opencode"

const (
	name   = Name
	pinned = "1.18.33"
)

// Config places the CLI and sets the driver's waits. The zero value finds the
// CLI on this machine.
type Config struct {
	// Binary is the path of the CLI, "" to look for it.
	Binary string
	// Start bounds the server's start when the caller's context does not.
	Start time.Duration
	// Stall is how long a model call may stay silent before the turn fails.
	Stall time.Duration
	// StopGrace is how long an aborted turn may take to end before the server is
	// killed.
	StopGrace time.Duration
	// RetryLimit is the longest wait for a retry that a turn sits out; the server
	// would obey a Retry-After of days.
	RetryLimit time.Duration
}

func (c *Config) defaults() {
	c.Start = cmp.Or(c.Start, 60*time.Second)
	c.Stall = cmp.Or(c.Stall, 5*time.Minute)
	c.StopGrace = cmp.Or(c.StopGrace, 5*time.Second)
	c.RetryLimit = cmp.Or(c.RetryLimit, 10*time.Minute)
}

// Provider makes sessions of opencode.
type Provider struct {
	base.Provider
	cfg Config
}

// New returns the driver. It does nothing yet: a missing CLI shows in Probe and
// Open.
func New(cfg Config) *Provider {
	cfg.defaults()
	beside := "opencode-" + provider.NodePlatform()
	p := &Provider{cfg: cfg}
	p.Provider.Binary = provider.Probe{Path: cfg.Binary, Pinned: pinned, Tested: tested, Ask: p.ask,
		Query: provider.Query{Env: map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1"}, Homes: []string{"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}},
		Binary: provider.Binary{Title: name, Name: name, Install: table.Of(Name).Install + "@" + pinned,
			Homes:          []string{".opencode/bin/opencode"},
			NativePatterns: []string{beside + "/bin/opencode", beside + "-baseline/bin/opencode", beside + "-musl/bin/opencode"}}}
	return p
}

// Open starts a server and the conversation on it.
func (p *Provider) Open(ctx context.Context, cfg provider.SessionConfig) (provider.Session, error) {
	binary, err := p.Find(cfg)
	if err != nil {
		return nil, err
	}
	if _, err := modelOf(cfg.Model); err != nil {
		return nil, err
	}
	if len(cfg.Tools) > 0 && cfg.Env[provider.ToolsURL] == "" {
		return nil, provider.ErrNoTools()
	}
	s := newSession(p.cfg, binary, cfg)
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
