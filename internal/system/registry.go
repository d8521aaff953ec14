package system

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/provider"
)

// registry knows what the providers of this machine can do. Each is probed by
// itself in the background, so one that hangs is in nobody else's way, and what a
// binary said before is kept in the home: a restart asks again, but no turn waits
// for it.
type registry struct {
	list  []provider.Provider
	kept  *probes
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

func newRegistry(list []provider.Provider, kept *probes, log *slog.Logger) *registry {
	return &registry{
		list: list, kept: kept, limit: probeTime, log: log,
		infos: map[string]provider.Info{}, known: map[string]bool{}, under: map[string]chan struct{}{},
	}
}

// Start implements service.Part.
func (r *registry) Start(ctx context.Context) error {
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
func (r *registry) Stop(context.Context) error {
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
func (r *registry) look(p provider.Provider) <-chan struct{} {
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
func (r *registry) learn(name string, info provider.Info, before stamp, ended bool) {
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

// info says what one provider can do. Where that is not known it waits for this
// provider's probe, and for no other's; one that failed is tried again.
func (r *registry) info(ctx context.Context, name string) provider.Info {
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

// all lists the providers in a fixed order, as far as they are known now. One that
// has not answered yet may be chosen: its turn waits for it.
func (r *registry) all() []provider.Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]provider.Info, 0, len(r.list))
	for _, p := range r.list {
		out = append(out, r.infos[p.Name()])
	}
	return out
}

// settle has everything probed that is not known, for whoever lists what there is
// to choose from; it does not wait long for one that hangs.
func (r *registry) settle() {
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
