//go:build linux

package keys

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/tholehq/thole/internal/modelsim"
)

// models are what each CLI is asked to use.
var models = map[string]string{"codex": modelsim.Model, "claude": modelsim.ClaudeModel, "opencode": "sim/" + modelsim.Model}

// providers are the CLIs in the order in which tests take them.
var providers = []string{"codex", "claude", "opencode"}

// plant puts a key of its own into every place that thole, or a CLI by itself, takes one
// from, and leads all of them to the model at url.
func (w *world) plant(url string) {
	w.Helper()
	w.set("OPENAI_BASE_URL="+url+"/v1", "ANTHROPIC_BASE_URL="+url)
	for name, prefix := range map[string]string{
		"OPENAI_API_KEY": "sk-proj-", "CODEX_API_KEY": "sk-proj-", "ANTHROPIC_API_KEY": "sk-ant-api03-", "ANTHROPIC_AUTH_TOKEN": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-",
		"OPENROUTER_API_KEY": "sk-or-v1-", "GEMINI_API_KEY": "AIza", "GROQ_API_KEY": "gsk_", "OPENCODE_API_KEY": "", "OWN_PROVIDER_KEY": "",
	} {
		w.set(name + "=" + w.key(prefix, "-env-"+name))
	}
	w.set("OPENCODE_CONFIG_CONTENT=" + w.opencode(url, "-env-opencode"))
	w.write(filepath.Join(w.person, ".config/opencode/opencode.json"), w.opencode(url, "-file-opencode"))
	w.codexLogin()
	w.write(filepath.Join(w.person, ".codex/config.toml"), `[model_providers.own]
name = "own"
base_url = "`+url+`/v1"
env_key = "OWN_PROVIDER_KEY"
experimental_bearer_token = "`+w.key("", "-file-codex-bearer")+`"
http_headers = { "x-own" = "`+w.key("", "-file-codex-header")+`" }
`)
	w.claudeLogin()
	w.write(filepath.Join(w.person, ".claude/settings.json"), w.json(map[string]any{"env": map[string]any{"ANTHROPIC_API_KEY": w.key("sk-ant-api03-", "-file-claude-settings")}}))
	w.write(filepath.Join(w.person, ".claude.json"), w.json(map[string]any{"primaryApiKey": w.key("sk-ant-api03-", "-file-claude-json")}))
	w.write(filepath.Join(w.person, ".local/share/opencode/auth.json"), w.json(map[string]any{
		"sim":        map[string]any{"type": "api", "key": w.key("", "-file-opencode-sim")},
		"openrouter": map[string]any{"type": "api", "key": w.key("sk-or-v1-", "-file-opencode-openrouter")},
		"anthropic": map[string]any{"type": "oauth", "access": w.key("sk-ant-oat01-", "-file-opencode-access"), "refresh": w.key("sk-ant-ort01-", "-file-opencode-refresh"),
			"expires": time.Now().Add(24 * time.Hour).UnixMilli()},
	}))
}

func (w *world) codexLogin() {
	w.Helper()
	w.write(filepath.Join(w.person, ".codex/auth.json"), w.json(map[string]any{
		"OPENAI_API_KEY": w.key("sk-proj-", "-file-codex-key"), "last_refresh": time.Now().UTC().Format(time.RFC3339),
		"tokens": map[string]any{"id_token": w.jwt("-file-codex-id"), "access_token": w.jwt("-file-codex-access"), "refresh_token": w.key("", "-file-codex-refresh"), "account_id": "account-1"},
	}))
}

func (w *world) claudeLogin() {
	w.Helper()
	w.write(filepath.Join(w.person, ".claude/.credentials.json"), w.json(map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": w.key("sk-ant-oat01-", "-file-claude-access"), "refreshToken": w.key("sk-ant-ort01-", "-file-claude-refresh"),
		"expiresAt": time.Now().Add(24 * time.Hour).UnixMilli(), "scopes": []string{"user:inference", "user:profile"}, "subscriptionType": "max",
	}}))
}

// opencode is the configuration of a provider of one's own, with its key.
func (w *world) opencode(url, place string) string {
	return w.json(map[string]any{
		"model": "sim/" + modelsim.Model, "small_model": "sim/" + modelsim.Model, "autoupdate": false, "share": "disabled", "snapshot": false, "enabled_providers": []string{"sim"},
		"provider": map[string]any{"sim": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Scripted model",
			"options": map[string]any{"baseURL": url + "/v1", "apiKey": w.key("", place)},
			"models": map[string]any{modelsim.Model: map[string]any{"name": "Scripted model", "tool_call": true, "limit": map[string]any{"context": 128000, "output": 8192},
				"cost": map[string]any{"input": 1, "output": 2}}},
		}},
	})
}

func (w *world) json(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}
