// Package system is the composition root: the one place that knows every
// adapter and builds the program's graph from configuration. It is linear and
// dull on purpose. Only internal/cli imports it.
package system

import (
	"path/filepath"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
	"github.com/tholehq/thole/internal/provider/testprovider"
)

// Providers is every provider this program has.
func Providers(cfg config.Providers) []provider.Provider {
	return []provider.Provider{
		codex.New(cfg.Codex),
		claude.New(claude.Config{Binary: cfg.Claude}),
		opencode.New(opencode.Config{Binary: cfg.Opencode}),
		testprovider.New(),
	}
}

// binaries lists what a sandbox must see to run the CLIs.
func (r *registry) binaries() []string {
	var out []string
	for _, binary := range r.paths() {
		out = append(out, provider.Shown(binary)...)
	}
	return out
}

// paths tells executord where the CLIs are, in the variables of the
// configuration: where their links lead, because a sandbox shows no links of the
// user's directories.
func (r *registry) paths() map[string]string {
	out := map[string]string{}
	for _, p := range r.list {
		at := locate(p).Binary
		if at == "" {
			continue
		}
		binary, err := filepath.EvalSymlinks(at)
		if err != nil {
			binary = at // its start will say what is wrong with it
		}
		out[config.Variable("providers."+p.Name())] = binary
	}
	return out
}
