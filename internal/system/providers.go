// Package system is the composition root: the one place that knows every
// adapter and builds the program's graph from configuration. It is linear and
// dull on purpose. Only internal/cli imports it.
package system

import (
	"os"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
	"github.com/tholehq/thole/internal/provider/registry"
	"github.com/tholehq/thole/internal/provider/testprovider"
)

// Providers is every provider this program has.
func Providers(cfg config.Providers) []provider.Provider {
	return []provider.Provider{
		codex.New(cfg.Codex),
		claude.New(claude.Config{Binary: cfg.Claude}),
		opencode.New(opencode.Config{Binary: cfg.Opencode}),
		scripted(),
	}
}

// scripted is the built-in agent.
func scripted() *testprovider.Provider {
	if os.Getenv(sampleVariable) != "" {
		return testprovider.Demo()
	}
	return testprovider.New()
}

// offered lists what a user may choose: the agents, and in a demo the scripted
// one. The models that codex names are not there in a demo.
func offered(r *registry.Registry, demo bool) func() []provider.Info {
	return func() []provider.Info {
		var out []provider.Info
		for _, info := range r.All() {
			if info.Name != testprovider.Name || demo {
				if info.Name == codex.Name && demo {
					info.Models = nil
				}
				out = append(out, info)
			}
		}
		return out
	}
}
