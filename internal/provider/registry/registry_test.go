package registry

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/provider"
)

// slow is a provider whose probe waits for its context unless it may answer.
type slow struct {
	provider.Provider
	name, binary string
	answers      bool
	asked        *atomic.Int64
}

func (s slow) Name() string { return s.name }
func (s slow) Locate() provider.Info {
	return provider.Info{Name: s.name, Title: s.name, Binary: s.binary, Available: true}
}

func (s slow) Probe(ctx context.Context) provider.Info {
	s.asked.Add(1)
	if !s.answers {
		<-ctx.Done()
		return provider.Info{Name: s.name, Title: s.name, Binary: s.binary, Problem: ctx.Err().Error()}
	}
	return provider.Info{Name: s.name, Binary: s.binary, Available: true, Version: "1.2.3"}
}

// What a binary said is kept over a restart and not waited for again; another file
// in its place is. One that hangs costs its own turns a probe, and others nothing.
func TestProbesAreKeptAndApart(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "cli")
	write := func(body string) {
		t.Helper()
		if err := os.WriteFile(binary+".new", []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(binary+".new", binary); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	start := func(list ...provider.Provider) *Registry {
		t.Helper()
		r := New(list, OpenProbes(filepath.Join(dir, "probes.json")), slog.New(slog.DiscardHandler))
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Stop(context.Background()) })
		return r
	}
	ctx, asked := t.Context(), &atomic.Int64{}
	first := start(slow{name: "a", binary: binary, answers: true, asked: asked}, slow{name: "b", binary: filepath.Join(dir, "none"), asked: asked})
	if got := first.Info(ctx, "a"); got.Version != "1.2.3" {
		t.Fatalf("beside one that hangs it said %+v", got)
	}
	again := start(slow{name: "a", binary: binary, asked: asked})
	if got := again.Info(ctx, "a"); got.Version != "1.2.3" || !got.Available {
		t.Errorf("after a restart: %+v", got)
	}
	write("another")
	other := start(slow{name: "a", binary: binary, asked: asked})
	soon, cancel := context.WithCancel(ctx)
	cancel()
	if got := other.Info(soon, "a"); got.Version != "" {
		t.Errorf("another file was taken for the one that answered: %+v", got)
	}
	hung := New([]provider.Provider{slow{name: "a", binary: binary, asked: asked}}, nil, slog.New(slog.DiscardHandler))
	hung.limit = time.Millisecond
	if err := hung.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer hung.Stop(ctx)
	if got := hung.Info(ctx, "a"); got.Available || !strings.Contains(got.Problem, "did not answer within") {
		t.Errorf("one that hangs: %+v", got)
	}
	before := asked.Load()
	if hung.Info(ctx, "a"); asked.Load() == before {
		t.Error("one that failed was not asked again")
	}
}
