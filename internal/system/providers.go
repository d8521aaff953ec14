// Package system is the composition root: the one place that knows every
// adapter and builds the program's graph from configuration. It is linear and
// dull on purpose. Only internal/cli imports it.
package system

import (
	"context"
	"path/filepath"
	"sync"
	"time"

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

// registry knows what the providers of this machine can do. Probes run in the
// background, because a CLI may take a second to answer.
type registry struct {
	list []provider.Provider

	mu    sync.Mutex // guards infos
	infos map[string]provider.Info
	ready chan struct{} // closed when every provider was probed once
	stop  context.CancelFunc
}

// Start implements service.Part.
func (r *registry) Start(ctx context.Context) error {
	ctx, r.stop = context.WithCancel(ctx)
	go r.probe(ctx)
	return nil
}

// Stop implements service.Part.
func (r *registry) Stop(context.Context) error {
	r.stop()
	<-r.ready
	return nil
}

func newRegistry(list []provider.Provider) *registry {
	return &registry{list: list, infos: map[string]provider.Info{}, ready: make(chan struct{})}
}

// probe asks every provider once, all at the same time.
func (r *registry) probe(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range r.list {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			info := p.Probe(ctx)
			r.mu.Lock()
			r.infos[info.Name] = info
			r.mu.Unlock()
		})
	}
	wg.Wait()
	close(r.ready)
}

// info says what one provider can do; it waits for the first probe.
func (r *registry) info(name string) provider.Info {
	<-r.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.infos[name]
}

// all lists the providers in a fixed order.
func (r *registry) all() []provider.Info {
	<-r.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]provider.Info, 0, len(r.list))
	for _, p := range r.list {
		out = append(out, r.infos[p.Name()])
	}
	return out
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
	for _, info := range r.all() {
		if info.Binary == "" {
			continue
		}
		binary, err := filepath.EvalSymlinks(info.Binary)
		if err != nil {
			binary = info.Binary // its start will say what is wrong with it
		}
		out[config.Variable("providers."+info.Name)] = binary
	}
	return out
}
