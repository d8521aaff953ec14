package provider

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// probeLimit bounds a probe without a deadline of the caller's.
const probeLimit = time.Minute

// Probe is what the probes of all CLIs share: it finds the binary, asks its
// version, and asks a version that was not tested what it can do. What a binary
// reported is kept, because some need seconds to say it; only another file in its
// place is asked again. Safe for concurrent use.
type Probe struct {
	Binary
	Path   string // configured, "" to look for the binary
	Pinned string
	Models []Model
	// List asks the binary for its models, without a network; nil takes Models. A
	// version that cannot say them has none.
	List func(ctx context.Context, binary string) []Model
	// Query is how the CLI is asked, without the binary and the arguments.
	Query Query
	// Tested is what a version can do that the conformance suite ran with.
	Tested func(v Version, text string) (Capabilities, bool)
	// Ask asks any other version, without a model call; it completes the
	// capabilities of info, and may add models and words to its problem.
	Ask func(ctx context.Context, info *Info) error

	mu    sync.Mutex // guards known
	known map[stamp]Info
}

// stamp distinguishes one file from another that took its place.
type stamp struct {
	path string
	size int64
	time time.Time
}

// Locate says what is known without running the binary: whether it is there. One
// that is may be chosen; what it can do is unknown until it was probed.
func (p *Probe) Locate() Info {
	info, _ := p.locate()
	if info.Available {
		info.Problem = "it has not said yet what it can do"
	}
	return info
}

func (p *Probe) locate() (Info, os.FileInfo) {
	info := Info{Name: p.Name, Title: p.Title, Pinned: p.Pinned, Models: p.Models, Profiles: Profiles(p.Name), Modes: Modes(p.Name), Capabilities: Degraded(All(Unknown), nil)}
	binary, err := p.Find(p.Path)
	var file os.FileInfo
	if err == nil {
		info.Binary = binary
		file, err = os.Stat(binary)
	}
	if info.Available = err == nil; err != nil {
		info.Problem, info.Fix = err.Error(), p.Install
	}
	return info, file
}

// Run probes.
func (p *Probe) Run(ctx context.Context) Info {
	info, file := p.locate()
	if !info.Available {
		return info
	}
	key := stamp{info.Binary, file.Size(), file.ModTime()}
	p.mu.Lock()
	known, ok := p.known[key]
	p.mu.Unlock()
	if ok {
		return known
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, probeLimit)
		defer cancel()
	}
	if err := p.learn(ctx, &info); err != nil {
		info.Available, info.Problem, info.Fix = false, err.Error(), p.Install
		return info
	}
	p.mu.Lock()
	p.known = map[stamp]Info{key: info}
	p.mu.Unlock()
	return info
}

func (p *Probe) learn(ctx context.Context, info *Info) error {
	said, err := p.Say(ctx, info.Binary, "--version")
	if err != nil {
		return err
	}
	v, text, ok := ParseVersion(said)
	if !ok {
		return fmt.Errorf("%s does not say its version: %q", info.Binary, said)
	}
	info.Available, info.Version = true, text
	if p.List != nil {
		if info.Models = p.List(ctx, info.Binary); ctx.Err() != nil {
			return ctx.Err() // what was not heard is not kept
		}
	}
	if info.Capabilities, ok = p.Tested(v, text); ok {
		return nil
	}
	info.Problem, info.Fix = "version "+text+" was not tested; what it can do was asked of it", p.Install
	info.Capabilities = Degraded(All(Unknown), nil)
	if err := p.Ask(ctx, info); err != nil {
		return fmt.Errorf("version %s was not tested and cannot be used: %w", text, err)
	}
	return nil
}

// Say runs the binary and returns what it printed.
func (p *Probe) Say(ctx context.Context, binary string, args ...string) (string, error) {
	q := p.Query
	q.Binary, q.Args = binary, args
	return q.Output(ctx)
}
