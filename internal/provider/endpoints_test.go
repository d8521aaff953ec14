package provider_test

import (
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// Only what an agent's models are configured at counts, not every address that its settings mention.
func TestModelsOfAGrant(t *testing.T) {
	codex := `model_provider = "mine"
chatgpt_base_url = "https://chat.example.com/backend"
[model_providers.mine]
base_url = "http://[::1]:4002/v1"
[model_providers.other]
base_url = "https://other.example.com/v1"
[mcp_servers.docs]
url = "https://mcp.example.com"
[otel]
endpoint = "https://telemetry.example.com"
`
	opencode := `{"model":"sim/x","provider":{"sim":{"options":{"baseURL":"http://127.0.0.1:4000/v1"}},"two":{"api":"https://two.example.com:8443"}},
		"mcp":{"docs":{"type":"remote","url":"https://mcp.example.com"}},"$schema":"https://opencode.ai/config.json"}`
	for name, c := range map[string]struct {
		provider string
		grant    provider.Grant
		want     []string
	}{
		"codex alone":          {"codex", provider.Grant{Env: map[string]string{"OPENAI_API_KEY": "https://key.example.com"}}, []string{"api.openai.com:443", "auth.openai.com:443", "chatgpt.com:443"}},
		"codex elsewhere":      {"codex", provider.Grant{Env: map[string]string{"OPENAI_BASE_URL": "https://models.example.com/v1"}}, []string{"models.example.com:443"}},
		"codex with settings":  {"codex", provider.Grant{Config: map[string][]byte{"config.toml": []byte(codex), "notes.md": []byte("https://notes.example.com")}}, []string{"[::1]:4002", "chat.example.com:443"}},
		"codex with bad ones":  {"codex", provider.Grant{Config: map[string][]byte{"config.toml": []byte("https://bad.example.com")}}, []string{"api.openai.com:443", "auth.openai.com:443", "chatgpt.com:443"}},
		"claude elsewhere":     {"claude", provider.Grant{Env: map[string]string{"ANTHROPIC_BASE_URL": "http://10.0.0.5:8000", "OTHER_URL": "https://x.example.com"}}, []string{"10.0.0.5:8000"}},
		"claude with settings": {"claude", provider.Grant{Config: map[string][]byte{"settings.json": []byte(`{"env":{"ANTHROPIC_BASE_URL":"https://c.example.com","X":"https://x.example.com"},"hooks":{"url":"https://h.example.com"}}`)}}, []string{"c.example.com:443"}},
		"opencode alone":       {"opencode", provider.Grant{}, []string{"opencode.ai:443"}},
		"opencode with keys":   {"opencode", provider.Grant{Env: map[string]string{"GROQ_API_KEY": "k"}, Files: map[string][]byte{"auth.json": []byte(`{"anthropic":{"type":"api","key":"https://k.example.com"}}`)}}, []string{"api.anthropic.com:443", "api.groq.com:443"}},
		"behind the gateway":   {"codex", provider.Grant{Gateway: true, Config: map[string][]byte{"config.toml": []byte(codex)}}, nil},
		"opencode elsewhere":   {"opencode", provider.Grant{Env: map[string]string{"OPENCODE_CONFIG_CONTENT": opencode}}, []string{"127.0.0.1:4000", "two.example.com:8443"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.grant.Models(c.provider)
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
