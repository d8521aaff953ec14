package opencode

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/provider"
)

// Probe inspects the installed CLI in a home of its own. The driver was proven
// with one version; any other is asked what it has.
func (p *Provider) Probe(ctx context.Context) provider.Info {
	info := provider.Info{Name: name, Title: title, Pinned: pinned, Profiles: provider.Profiles(name), Capabilities: provider.Degraded(provider.All(provider.Unknown), nil)}
	binary, err := find(p.cfg.Binary)
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	info.Binary = binary
	said, err := p.version(ctx, binary)
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	_, text, ok := provider.ParseVersion(said)
	if !ok {
		info.Problem, info.Fix = fmt.Sprintf("%s does not say its version: %q", binary, said), install
		return info
	}
	info.Version = text
	if text == pinned {
		info.Available, info.Capabilities = true, capabilities(nil)
		return info
	}
	info.Problem, info.Fix = "version "+text+" was not tested; what it can do was asked of it", install
	caps, err := p.ask(ctx, binary, text)
	if err != nil {
		info.Problem = "version " + text + " was not tested and has no server that we can use: " + err.Error()
		return info
	}
	info.Available, info.Capabilities = true, caps
	return info
}

// stamp tells one file from another that took its place.
type stamp struct {
	path string
	size int64
	time time.Time
}

// version asks a binary once: the CLI needs a second of CPU to say it.
func (p *Provider) version(ctx context.Context, binary string) (string, error) {
	file, err := os.Stat(binary)
	if err != nil {
		return "", err
	}
	key := stamp{binary, file.Size(), file.ModTime()}
	p.mu.Lock()
	said, ok := p.known[key]
	p.mu.Unlock()
	if ok {
		return said, nil
	}
	ctx, cancel := p.cfg.bound(ctx)
	defer cancel()
	said, err = provider.Query{Binary: binary, Args: []string{"--version"}, Env: map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1"},
		Homes: []string{"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}}.Output(ctx)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	p.known = map[stamp]string{key: said}
	p.mu.Unlock()
	return said, nil
}

// description is the part of the server's OpenAPI document that tells what it
// can do.
type description struct {
	Paths      map[string]any `json:"paths"`
	Components struct {
		Schemas struct {
			Assistant struct {
				Properties map[string]any `json:"properties"`
			} `json:"AssistantMessage"`
		} `json:"schemas"`
	} `json:"components"`
	plan bool
}

// has reports a path; the names of its parameters do not count.
func (d *description) has(path string) bool {
	for p := range d.Paths {
		words := strings.Split(p, "/")
		for i, w := range words {
			if strings.HasPrefix(w, "{") || strings.HasPrefix(w, ":") {
				words[i] = "*"
			}
		}
		if strings.Join(words, "/") == path {
			return true
		}
	}
	return false
}

// ask starts a server of an unknown version, once, and reads its own description,
// without a model call.
func (p *Provider) ask(ctx context.Context, binary, version string) (provider.Capabilities, error) {
	p.mu.Lock()
	known, ok := p.asked[version]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return provider.Capabilities{}, err
	}
	defer os.RemoveAll(home)
	s := newSession(p.cfg, binary, provider.SessionConfig{Dir: home, Data: home, Auth: home, Env: map[string]string{
		"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "OPENCODE_DISABLE_MODELS_FETCH": "1",
	}})
	defer s.Close()
	if err := s.open(ctx); err != nil {
		return provider.Capabilities{}, err
	}
	var d description
	if err := s.srv.call(ctx, http.MethodGet, "/doc", nil, &d); err != nil {
		return provider.Capabilities{}, fmt.Errorf("read its description: %w", err)
	}
	for _, path := range []string{"/event", "/session/*/prompt_async", "/session/*/abort", "/session/*/message"} {
		if !d.has(path) {
			return provider.Capabilities{}, fmt.Errorf("it has no %s", path)
		}
	}
	d.plan = s.agents["plan"] && s.agents["build"]
	known = capabilities(&d)
	p.mu.Lock()
	p.asked = map[string]provider.Capabilities{version: known}
	p.mu.Unlock()
	return known, nil
}

// capabilities are what the tested version can do, or what a description tells.
func capabilities(d *description) provider.Capabilities {
	c := provider.All(provider.Validated)
	if d != nil {
		field := func(name string) provider.Capability {
			_, ok := d.Components.Schemas.Assistant.Properties[name]
			return provider.Found(ok)
		}
		c = provider.Capabilities{
			Resume: provider.Found(d.has("/session/*")), Fork: provider.Found(d.has("/session/*/fork")), Steer: provider.Found(d.has("/session/*/prompt_async")),
			HumanLoop: provider.Found(d.has("/question/*/reply")), ToolApproval: provider.Found(d.has("/permission/*/reply")),
			TodoStream: provider.Found(d.has("/session/*/todo")), Compact: provider.Found(d.has("/session/*/summarize")), PlanMode: provider.Found(d.plan),
			Usage: field("tokens"), Cost: field("cost"),
		}
	}
	c.AskSurvives, c.ToolInputFlow = provider.Unavailable, provider.Unavailable
	return provider.Degraded(c, map[string]string{
		"ask_survives_restart": "a stopped server forgets its questions; the answer is sent as a new message",
		"tool_input_stream":    "a tool's input is told when it is complete",
		"cost":                 "known for models that have a price in the configuration",
	})
}
