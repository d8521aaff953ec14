// Package registry knows what the providers of a machine can do, and where their
// CLIs are. It probes; it runs no turn.
package registry

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/provider"
)

// Registry knows what the providers of this machine can do. Each is probed by
// itself in the background, so one that hangs is in nobody else's way, and what a
// binary said before is kept in the home: a restart asks again, but no turn waits
// for it.
type Registry struct {
	list  []provider.Provider
	kept  *Probes
	limit time.Duration // of one probe
	log   *slog.Logger

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex // guards what follows
	infos map[string]provider.Info
	// known: a probe of the binary that is there succeeded.
	known map[string]bool
	under map[string]chan struct{} // closed when the probe under way ended
}

// probeTime bounds how long a turn waits for its own provider's probe.
const probeTime = 30 * time.Second

func New(list []provider.Provider, kept *Probes, log *slog.Logger) *Registry {
	return &Registry{
		list: list, kept: kept, limit: probeTime, log: log,
		infos: map[string]provider.Info{}, known: map[string]bool{}, under: map[string]chan struct{}{},
	}
}

// Start implements service.Part.
func (r *Registry) Start(ctx context.Context) error {
	r.ctx, r.stop = context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.list {
		at := locate(p)
		if info, ok := r.kept.get(p.Name(), at.Binary); ok {
			at, r.known[p.Name()] = info, true
		}
		r.infos[p.Name()] = at
		r.look(p)
	}
	return nil
}

// Stop implements service.Part.
func (r *Registry) Stop(context.Context) error {
	r.stop()
	r.wg.Wait()
	return nil
}

// located is a provider that knows without a probe whether its CLI is there.
type located interface{ Locate() provider.Info }

func locate(p provider.Provider) provider.Info {
	if l, ok := p.(located); ok {
		return l.Locate()
	}
	return provider.Info{Name: p.Name(), Title: p.Name(), Available: true}
}

// look begins a probe, unless one is under way, and returns what is closed when it
// ended. r.mu is held.
func (r *Registry) look(p provider.Provider) <-chan struct{} {
	if done := r.under[p.Name()]; done != nil {
		return done
	}
	done := make(chan struct{})
	r.under[p.Name()] = done
	r.wg.Go(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(r.ctx, r.limit)
		defer cancel()
		before, _ := stampOf(locate(p).Binary)
		info := p.Probe(ctx)
		if !info.Available && ctx.Err() != nil && info.Binary != "" {
			info.Problem = fmt.Sprintf("%s did not answer within %s", info.Binary, r.limit)
		}
		r.learn(p.Name(), info, before, r.ctx.Err() != nil)
	})
	return done
}

// learn takes what a probe found. One that failed says nothing against what the
// same binary said before.
func (r *Registry) learn(name string, info provider.Info, before stamp, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under[name] = nil
	switch {
	case ended:
	case info.Available:
		r.infos[name], r.known[name] = info, true
		if err := r.kept.put(name, before, info); err != nil {
			r.log.Warn("keep what a CLI can do", "provider", name, "err", err)
		}
	case r.known[name] && info.Binary != "":
		r.log.Warn("a CLI did not say again what it can do", "provider", name, "err", info.Problem)
	default:
		r.infos[name], r.known[name] = info, false
	}
}

// Info says what one provider can do. Where that is not known it waits for this
// provider's probe, and for no other's; one that failed is tried again.
func (r *Registry) Info(ctx context.Context, name string) provider.Info {
	for _, p := range r.list {
		if p.Name() != name {
			continue
		}
		r.mu.Lock()
		info, known := r.infos[name], r.known[name]
		var done <-chan struct{}
		if !known {
			done = r.look(p)
		}
		r.mu.Unlock()
		if known {
			return info
		}
		select {
		case <-done:
		case <-ctx.Done():
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.infos[name]
	}
	return provider.Info{}
}

// All lists the providers in a fixed order, as far as they are known now. One that
// has not answered yet may be chosen: its turn waits for it.
func (r *Registry) All() []provider.Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]provider.Info, 0, len(r.list))
	for _, p := range r.list {
		out = append(out, r.infos[p.Name()])
	}
	return out
}

// Settle has everything probed that is not known, for a caller that lists what there is
// to choose from; it does not wait long for one that hangs.
func (r *Registry) Settle() {
	r.mu.Lock()
	var wait []<-chan struct{}
	for _, p := range r.list {
		if !r.known[p.Name()] {
			wait = append(wait, r.look(p))
		}
	}
	r.mu.Unlock()
	enough := time.After(settleTime)
	for _, done := range wait {
		select {
		case <-done:
		case <-r.ctx.Done():
			return
		case <-enough:
			return
		}
	}
}

const settleTime = 5 * time.Second

// Binaries lists what a sandbox must see to run the CLIs.
func (r *Registry) Binaries() []string {
	var out []string
	for _, binary := range r.Paths() {
		out = append(out, provider.Shown(binary)...)
	}
	return out
}

// Paths are the CLIs by their providers, for executord: where their links lead, because a sandbox shows no links of the
// user's directories.
func (r *Registry) Paths() map[string]string {
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
		out[p.Name()] = binary
	}
	return out
}
