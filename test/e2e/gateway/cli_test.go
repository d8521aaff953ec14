package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

var makers = map[string]func(testing.TB) provider.Provider{
	"codex":      func(t testing.TB) provider.Provider { return codex.New(lab.Codex(t)) },
	"codex exec": func(t testing.TB) provider.Provider { return codex.NewExec(lab.Codex(t)) },
	"claude":     func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: lab.Claude(t)}) },
	"claude old": func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: lab.ClaudeOld(t)}) },
	"opencode":   func(t testing.TB) provider.Provider { return opencode.New(opencode.Config{Binary: lab.Opencode(t)}) },
}

// login writes the logins of a user of each CLI.
func (r *rig) login() {
	later := time.Now().Add(24 * time.Hour)
	r.put(".codex/auth.json", map[string]any{"auth_mode": "chatgpt", "last_refresh": time.Now().UTC().Format(time.RFC3339Nano), "tokens": map[string]any{
		"id_token": jwt(map[string]any{"email": "a@example.com"}), "access_token": jwt(map[string]any{"exp": later.Unix(), "for": "chatgpt"}), "refresh_token": "refresh-codex", "account_id": "acc-1",
	}})
	r.put(".claude/.credentials.json", map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": "sk-ant-oat01-mine", "refreshToken": "refresh-claude", "expiresAt": later.UnixMilli(), "scopes": []string{"user:inference"}, "subscriptionType": "pro",
	}})
	r.put(".local/share/opencode/auth.json", map[string]any{
		"anthropic": map[string]any{"type": "api", "key": "sk-ant-mine"}, "github-copilot": map[string]any{"type": "oauth", "refresh": "refresh-copilot"},
	})
}

// Each CLI works with the user's own login or key, which reaches the service and nothing
// else, in the header and at the place that the CLI itself would use.
func TestCLIsThroughTheGateway(t *testing.T) {
	for _, c := range []struct {
		name, cli, maker, model string
		env, files              map[string]string
		url, header, value      string
		default_                string // the model that the CLI takes by itself
	}{
		{name: "codex with a ChatGPT login", cli: "codex", model: "gpt-5.5", url: "https://chatgpt.com/backend-api/codex/responses", header: "Chatgpt-Account-Id", value: "acc-1"},
		{name: "codex exec with a company's gateway", cli: "codex", maker: "codex exec", model: "gpt-5.5", env: map[string]string{"OPENAI_API_KEY": "sk-company", "OPENAI_BASE_URL": "https://llm.example.com/openai/v1"},
			url: "https://llm.example.com/openai/v1/responses", header: "Authorization", value: "Bearer sk-company"},
		{name: "codex with a base URL of its settings", cli: "codex", model: "gpt-5.5", env: map[string]string{"AZURE": "az-key"}, files: map[string]string{".codex/config.toml": "model_provider = \"azure\"\n[model_providers.azure]\nname = \"Azure\"\nbase_url = \"https://a.openai.azure.com/openai/v1\"\nquery_params = { api-version = \"1\" }\nenv_http_headers = { \"api-key\" = \"AZURE\" }\n"},
			url: "https://a.openai.azure.com/openai/v1/responses", header: "Api-Key", value: "az-key"},
		{name: "claude with a base URL of its settings", cli: "claude", files: map[string]string{".claude/settings.json": `{"env":{"ANTHROPIC_BASE_URL":"https://llm.example.com","ANTHROPIC_AUTH_TOKEN":"t","ANTHROPIC_CUSTOM_HEADERS":"X-Team: blue"}}`},
			url: "https://llm.example.com/v1/messages", header: "X-Team", value: "blue"},
		{name: "claude with its login", cli: "claude", url: "https://api.anthropic.com/v1/messages", header: "Authorization", value: "Bearer sk-ant-oat01-mine"},
		{name: "old claude with its login", cli: "claude", maker: "claude old", url: "https://api.anthropic.com/v1/messages", header: "Authorization", value: "Bearer sk-ant-oat01-mine", default_: "claude-sonnet-5"},
		{name: "claude with a key", cli: "claude", env: map[string]string{"ANTHROPIC_API_KEY": "sk-ant-key"}, url: "https://api.anthropic.com/v1/messages", header: "X-Api-Key", value: "sk-ant-key", default_: "claude-opus-5-5"},
		{name: "opencode with its login", cli: "opencode", url: "https://api.anthropic.com/v1/messages", header: "X-Api-Key", value: "sk-ant-mine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.cli, c.env)
			r.login()
			for name, body := range c.files {
				r.put(name, body)
			}
			if c.maker == "" {
				c.maker = c.cli
			}
			b := providertest.NewBench(t, providertest.Harness{New: makers[c.maker], Configure: r.configure})
			b.Config.Model = c.model
			got := b.Play(b.Open(), "sim: run echo hello > made ;; say fine")
			if b.File("made") != "hello\n" {
				t.Errorf("the turn did not work: %+v", got)
			}
			for _, s := range r.calls() {
				if url, _, _ := strings.Cut(s.url, "?"); url != c.url || s.header.Get(c.header) != c.value {
					t.Errorf("%s came with %s %q, want %q at %s", s.url, c.header, s.header.Get(c.header), c.value, c.url)
				}
				if beta := s.header.Get("Anthropic-Beta"); strings.HasPrefix(c.value, "Bearer sk-ant-oat") && strings.Count(beta, "oauth-2025-04-20") != 1 {
					t.Errorf("a login's call came with the features %q", beta)
				}
			}
			if c.default_ != "" && !strings.Contains(r.seen[0].body, `"model":"`+c.default_+`"`) {
				t.Errorf("the default model is not %s: %.80s", c.default_, r.seen[0].body)
			}
		})
	}
}
