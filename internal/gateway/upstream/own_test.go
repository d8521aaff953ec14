package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
)

// Whatever a user has set up for a CLI works through the gateway, in the order in which
// the CLI itself takes it, and no session learns of a key.
func TestOwnSetUps(t *testing.T) {
	chat, claude := func(m *machine) { m.put(login("codex", now)) }, func(m *machine) { m.put(login("claude", now.Add(1e13))) }
	for name, c := range map[string]struct {
		cli, route   string
		env          map[string]string
		files        map[string]string
		with         func(*machine)
		url          string
		header, want string
		code         thole.Code // instead of a route
	}{
		"codex, ChatGPT login":            {cli: "codex", route: "codex", with: chat, url: "https://chatgpt.com/backend-api/codex", header: "Authorization", want: "Bearer access-0"},
		"codex, account of the login":     {cli: "codex", route: "codex", with: chat, url: "https://chatgpt.com/backend-api/codex", header: "Chatgpt-Account-Id", want: "acc-1"},
		"codex, key in the login":         {cli: "codex", route: "codex", files: map[string]string{".codex/auth.json": `{"OPENAI_API_KEY":"SECRET"}`}, url: "https://api.openai.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"codex, a key for other programs": {cli: "codex", route: "codex", with: chat, env: map[string]string{"OPENAI_API_KEY": "SECRET"}, url: "https://chatgpt.com/backend-api/codex", header: "Authorization", want: "Bearer access-0"},
		"codex, only a variable":          {cli: "codex", route: "codex", env: map[string]string{"OPENAI_API_KEY": "SECRET"}, url: "https://api.openai.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"codex, its own variable":         {cli: "codex", route: "codex", with: chat, env: map[string]string{"CODEX_API_KEY": "SECRET"}, url: "https://api.openai.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"codex, company by variables":     {cli: "codex", route: "codex", with: chat, env: map[string]string{"OPENAI_API_KEY": "SECRET", "OPENAI_BASE_URL": "https://llm.example.com/v1/"}, url: "https://llm.example.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"codex, company by settings": {cli: "codex", route: "codex", with: chat, env: map[string]string{"ACME_KEY": "SECRET", "ACME_TEAM": "SECRET-team"}, files: map[string]string{".codex/config.toml": `
model_provider = "acme"
model = "acme-large"
[model_providers.acme]
base_url = "https://llm.example.com/openai"
env_key = "ACME_KEY"
query_params = { api-version = "2026-01-01" }
env_http_headers = { X-Team = "ACME_TEAM" }
`}, url: "https://llm.example.com/openai?api-version=2026-01-01", header: "X-Team", want: "SECRET-team"},
		"codex, local model":          {cli: "codex", route: "codex", files: map[string]string{".codex/config.toml": `model_provider = "ollama"`}, url: "http://localhost:11434/v1", header: "Authorization", want: ""},
		"codex, variable missing":     {cli: "codex", route: "codex", with: chat, files: map[string]string{".codex/config.toml": "model_provider = \"a\"\n[model_providers.a]\nbase_url = \"https://a.example.com\"\nenv_key = \"NONE\""}, code: thole.CodeNotFound},
		"codex, Bedrock":              {cli: "codex", route: "codex", with: chat, files: map[string]string{".codex/config.toml": `model_provider = "amazon-bedrock"`}, code: thole.CodeUnsupported},
		"codex, damaged settings":     {cli: "codex", route: "codex", with: chat, files: map[string]string{".codex/config.toml": `model_provider = `}, code: thole.CodeInvalid},
		"codex, nothing":              {cli: "codex", route: "codex", code: thole.CodeNotFound},
		"claude, login":               {cli: "claude", route: "claude", with: claude, url: "https://api.anthropic.com/v1", header: "Anthropic-Beta", want: "oauth-2025-04-20"},
		"claude, key before login":    {cli: "claude", route: "claude", with: claude, env: map[string]string{"ANTHROPIC_API_KEY": "SECRET"}, url: "https://api.anthropic.com/v1", header: "X-Api-Key", want: "SECRET"},
		"claude, token at a company":  {cli: "claude", route: "claude", env: map[string]string{"ANTHROPIC_AUTH_TOKEN": "SECRET", "ANTHROPIC_BASE_URL": "https://llm.example.com/anthropic/"}, url: "https://llm.example.com/anthropic/v1", header: "Authorization", want: "Bearer SECRET"},
		"claude, key at a company":    {cli: "claude", route: "claude", env: map[string]string{"ANTHROPIC_API_KEY": "SECRET", "ANTHROPIC_BASE_URL": "https://llm.example.com"}, url: "https://llm.example.com/v1", header: "X-Api-Key", want: "SECRET"},
		"claude, settings":            {cli: "claude", route: "claude", files: map[string]string{".claude/settings.json": `{"env":{"ANTHROPIC_BASE_URL":"https://c.example.com","ANTHROPIC_AUTH_TOKEN":"SECRET","ANTHROPIC_CUSTOM_HEADERS":"X-Team: SECRET-team"}}`}, url: "https://c.example.com/v1", header: "X-Team", want: "SECRET-team"},
		"claude, long-lived token":    {cli: "claude", route: "claude", with: claude, env: map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "SECRET"}, url: "https://api.anthropic.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"claude, Bedrock":             {cli: "claude", route: "claude", with: claude, env: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}, code: thole.CodeUnsupported},
		"claude, key helper":          {cli: "claude", route: "claude", files: map[string]string{".claude/settings.json": `{"apiKeyHelper":"/bin/key"}`}, code: thole.CodeUnsupported},
		"opencode, login":             {cli: "opencode", route: "oc-groq", files: map[string]string{".local/share/opencode/auth.json": `{"groq":{"type":"api","key":"SECRET"},"github-copilot":{"type":"oauth","refresh":"SECRET-refresh"}}`}, url: "https://api.groq.com/openai/v1", header: "Authorization", want: "Bearer SECRET"},
		"opencode, no login by OAuth": {cli: "opencode", route: "oc-github-copilot", files: map[string]string{".local/share/opencode/auth.json": `{"github-copilot":{"type":"oauth","refresh":"SECRET-refresh"}}`}, code: thole.CodeNotFound},
		"opencode, variable":          {cli: "opencode", route: "oc-anthropic", env: map[string]string{"ANTHROPIC_API_KEY": "SECRET"}, url: "https://api.anthropic.com/v1", header: "X-Api-Key", want: "SECRET"},
		"opencode, company":           {cli: "opencode", route: "oc-openai", env: map[string]string{"OPENAI_API_KEY": "SECRET", "OPENAI_BASE_URL": "https://llm.example.com/v1/"}, url: "https://llm.example.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"opencode, its base as it is": {cli: "opencode", route: "oc-anthropic", env: map[string]string{"ANTHROPIC_API_KEY": "SECRET", "ANTHROPIC_BASE_URL": "https://llm.example.com/a"}, url: "https://llm.example.com/a", header: "X-Api-Key", want: "SECRET"},
		"opencode, free models":       {cli: "opencode", route: "oc-opencode", url: "https://opencode.ai/zen/v1", header: "Authorization", want: "Bearer public"},
		"opencode, settings": {cli: "opencode", route: "oc-acme", env: map[string]string{"ACME": "SECRET"}, files: map[string]string{".config/opencode/opencode.json": `{"model":"acme/large","mcp":{"x":{"command":["SECRET-command"]}},
			"provider":{"acme":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"https://llm.example.com/v1","apiKey":"{env:ACME}","headers":{"X-Team":"SECRET-team"}},"models":{"large":{"headers":{"x":"SECRET-header"}}}}}}`},
			url: "https://llm.example.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"opencode, handed settings": {cli: "opencode", route: "oc-acme", env: map[string]string{"OPENCODE_CONFIG_CONTENT": `{"provider":{"acme":{"npm":"@ai-sdk/anthropic","options":{"baseURL":"https://llm.example.com/v1","apiKey":"SECRET"}}}}`},
			url: "https://llm.example.com/v1", header: "X-Api-Key", want: "SECRET"},
		"opencode, base of a known one": {cli: "opencode", route: "oc-openai", env: map[string]string{"OPENAI_API_KEY": "SECRET"}, files: map[string]string{".config/opencode/opencode.json": `{"provider":{"openai":{"options":{"baseURL":"https://llm.example.com/v1"}}}}`},
			url: "https://llm.example.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"opencode, settings with comments": {cli: "opencode", route: "oc-acme", files: map[string]string{".config/opencode/opencode.jsonc": "{ // mine\n\"provider\":{\"acme\":{\"options\":{\"baseURL\":\"https://llm.example.com/v1\",\"apiKey\":\"SECRET\",},},},}"},
			url: "https://llm.example.com/v1", header: "Authorization", want: "Bearer SECRET"},
		"codex, Azure": {cli: "codex", route: "codex", env: map[string]string{"AZURE": "SECRET"}, files: map[string]string{".codex/config.toml": "model_provider = \"azure\"\n[model_providers.azure]\nname = \"Azure\"\nbase_url = \"https://a.openai.azure.com/openai\"\nquery_params = { api-version = \"2025-04-01-preview\" }\nenv_http_headers = { \"api-key\" = \"AZURE\" }\n"},
			url: "https://a.openai.azure.com/openai?api-version=2025-04-01-preview", header: "Api-Key", want: "SECRET"},
		"a route of another CLI": {cli: "claude", route: "codex", with: chat, code: thole.CodeNotFound},
		"a route that is none":   {cli: "opencode", route: "oc-../x", code: thole.CodeNotFound},
		"no CLI":                 {cli: "test", route: "", code: thole.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if c.with != nil {
				c.with(m)
			}
			for path, body := range c.files {
				m.put(path, body)
			}
			if c.env != nil {
				m.env = c.env
			}
			r := m.routes()
			if c.code != "" {
				if _, err := r.Route(bg, claim(c.cli, thole.LocalUser), c.route); thole.CodeOf(err) != c.code {
					t.Errorf("%v, want %s", err, c.code)
				}
				return
			}
			u, h := signed(t, r, c.cli, c.route)
			if u.Base.String() != c.url || h.Get(c.header) != c.want {
				t.Errorf("%s with %s %q, want %s with %q", u.Base, c.header, h.Get(c.header), c.url, c.want)
			}
			w, err := r.Ways(bg, gateway.Claim{Owner: thole.DefaultOwner, Provider: c.cli})
			if err != nil {
				t.Fatal(err)
			}
			g, err := provider.Through(c.cli, w, "tgw_token")
			if err != nil {
				t.Fatal(err)
			}
			if all, _ := json.Marshal(g); strings.Contains(string(all), "SECRET") || strings.Contains(string(all), "access-0") || strings.Contains(string(all), "refresh-0") {
				t.Errorf("a session learns of a credential: %s", all)
			}
			for name, file := range g.Files {
				if strings.Contains(string(file), "SECRET") || strings.Contains(string(file), "access-0") {
					t.Errorf("a session finds a credential in %s", name)
				}
			}
		})
	}
}
