package opencode

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/tholehq/thole/internal/provider"
)

// tested: the driver was proven with one version; any other is asked what it has.
func tested(_ provider.Version, text string) (provider.Capabilities, bool) {
	return capabilities(nil), text == pinned
}

// description is the part of the server's OpenAPI document that says what it
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

// ask starts a server of an unknown version and reads its own description.
func (p *Provider) ask(ctx context.Context, found *provider.Info) error {
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	s := newSession(p.cfg, found.Binary, provider.SessionConfig{Dir: home, Data: home, Auth: home, Env: map[string]string{
		"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "OPENCODE_DISABLE_MODELS_FETCH": "1",
	}})
	defer s.Close()
	if err := s.open(ctx); err != nil {
		return err
	}
	srv, err := s.Alive(ctx)
	if err != nil {
		return err
	}
	var d description
	if err := srv.call(ctx, http.MethodGet, "/doc", nil, &d); err != nil {
		return fmt.Errorf("read its description: %w", err)
	}
	for _, path := range []string{"/event", "/session/*/prompt_async", "/session/*/abort", "/session/*/message"} {
		if !d.has(path) {
			return fmt.Errorf("it has no %s", path)
		}
	}
	d.plan = s.agents["plan"] && s.agents["build"]
	found.Capabilities = capabilities(&d)
	return nil
}

// capabilities are what the tested version can do, or what a description says.
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
	c.AskSurvives, c.ToolInputFlow = c.Resume, provider.Unavailable
	return provider.Degraded(c, map[string]string{
		"ask_survives_restart": "a stopped server forgets its questions; the answer is sent as a new message",
		"tool_input_stream":    "a tool's input is sent when it is complete",
		"cost":                 "known for models that have a price in the configuration",
	})
}
