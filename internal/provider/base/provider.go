package base

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// Provider is the part of every driver's provider that knows its binary.
type Provider struct {
	Binary provider.Probe
}

// Name is the provider's name.
func (p *Provider) Name() string { return p.Binary.Name }

// Probe inspects the installed CLI.
func (p *Provider) Probe(ctx context.Context) provider.Info { return p.Binary.Run(ctx) }

// Locate says what is known of the CLI without running it.
func (p *Provider) Locate() provider.Info { return p.Binary.Locate() }

// Find returns the binary for a session, which needs a workspace and a data directory.
func (p *Provider) Find(cfg provider.SessionConfig) (string, error) {
	if cfg.Dir == "" || cfg.Data == "" {
		return "", thole.Errorf(thole.CodeInvalid, "%s: a session needs a workspace and a data directory", p.Name())
	}
	return p.Binary.Find(p.Binary.Path)
}
