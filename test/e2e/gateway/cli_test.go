// Package gateway_test runs the real agent CLIs through the gateway.
package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

const token = "tgw_0123456789"

func TestMain(m *testing.M) { providertest.Main(m) }

func thin(t testing.TB, sim string) string {
	to, _ := url.Parse(sim)
	p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		_, rest, _ := strings.Cut(strings.TrimPrefix(r.In.URL.Path, "/"), "/")
		r.Out.URL.Path = "/" + rest
		r.SetURL(to)
		t.Logf("%s %s %s", r.In.Method, r.In.URL.Path, r.In.Header.Get("Authorization"))
	}}
	s := httptest.NewServer(http.HandlerFunc(p.ServeHTTP))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func configure(name, model string, w provider.Ways) func(t testing.TB, url string, cfg *provider.SessionConfig) {
	return func(t testing.TB, url string, cfg *provider.SessionConfig) {
		g, err := provider.Through(name, w, token)
		if err != nil {
			t.Fatal(err)
		}
		g = g.At(thin(t, url))
		for k, v := range g.Env {
			cfg.Env[k] = v
		}
		if err := g.Place(cfg.Auth); err != nil {
			t.Fatal(err)
		}
		cfg.Model = model; cfg.Env["OPENCODE_DISABLE_MODELS_FETCH"]="1"; cfg.Env["OPENCODE_DISABLE_DEFAULT_PLUGINS"]="1"
	}
}

func TestCLIs(t *testing.T) {
	sim := map[string]any{"npm": "@ai-sdk/openai-compatible", "models": map[string]any{"sim-1": map[string]any{"tool_call": true}}}
	for name, h := range map[string]providertest.Harness{
		"codex":            {New: func(t testing.TB) provider.Provider { return codex.New(lab.Codex(t)) }, Configure: configure("codex", "gpt-5.5", provider.Ways{})},
		"exec":             {New: func(t testing.TB) provider.Provider { return codex.NewExec(lab.Codex(t)) }, Configure: configure("codex", "gpt-5.5", provider.Ways{})},
		"claude":           {New: func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: lab.Claude(t)}) }, Configure: configure("claude", "", provider.Ways{})},
		"claude login":     {New: func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: lab.Claude(t)}) }, Configure: configure("claude", "", provider.Ways{Routes: []provider.RouteInfo{{Login: map[string]any{"claudeAiOauth": map[string]any{"subscriptionType": "pro", "scopes": []any{"user:inference"}}}}}})},
		"claude old":       {New: func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: lab.ClaudeOld(t)}) }, Configure: configure("claude", "", provider.Ways{})},
		"claude old login": {New: func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: lab.ClaudeOld(t)}) }, Configure: configure("claude", "", provider.Ways{Routes: []provider.RouteInfo{{Login: map[string]any{"claudeAiOauth": map[string]any{"subscriptionType": "pro", "scopes": []any{"user:inference"}}}}}})},
		"opencode":         {New: func(t testing.TB) provider.Provider { return opencode.New(opencode.Config{Binary: lab.Opencode(t)}) }, Configure: configure("opencode", "", provider.Ways{Routes: []provider.RouteInfo{{Provider: "acme", Settings: sim}}})},
		"opencode builtin": {New: func(t testing.TB) provider.Provider { return opencode.New(opencode.Config{Binary: lab.Opencode(t)}) }, Configure: configure("opencode", "", provider.Ways{Routes: []provider.RouteInfo{{Provider: "openai"}, {Provider: "anthropic"}, {Provider: "opencode", Keyless: true}}})},
		"opencode free":    {New: func(t testing.TB) provider.Provider { return opencode.New(opencode.Config{Binary: lab.Opencode(t)}) }, Configure: configure("opencode", "", provider.Ways{Routes: []provider.RouteInfo{{Provider: "opencode", Keyless: true}}})},
	} {
		t.Run(name, func(t *testing.T) {
			b := providertest.NewBench(t, h)
			b.Config.Profile = thole.ProfileFull
			s := b.Open()
			r := b.Play(s, "sim: run echo hello > made ;; say fine")
			if b.File("made") != "hello\n" {
				t.Errorf("%+v", r)
			}
			for _, q := range b.Sim.Requests() {
				t.Logf("%s %s model %q auth %v key %v beta %v", q.Method, q.Path, q.Model, q.Header["Authorization"], q.Header["X-Api-Key"], q.Header["Anthropic-Beta"])
			}
		})
	}
	_ = modelsim.Model
}
