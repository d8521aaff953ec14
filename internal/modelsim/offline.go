package modelsim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Names of the models. Claude offers its todo tools only to a model it knows by
// name, so that one is a real name.
const (
	Model       = "sim-1"
	OtherModel  = "sim-2"
	ClaudeModel = "claude-sonnet-4-5"
)

// CodexConfig writes into dir, a CODEX_HOME, the configuration with which codex
// needs no network and no key. Codex must not find dir under /tmp if it is to
// link its helpers there; it runs without them. Policy and sandbox are left to the
// caller.
func CodexConfig(dir, baseURL string) error {
	catalog := filepath.Join(dir, "sim-models.json")
	if err := writeJSONFile(catalog, codexCatalog()); err != nil {
		return err
	}
	config := `model = "` + Model + `"
model_provider = "sim"
model_catalog_json = ` + strconv.Quote(catalog) + `
check_for_update_on_startup = false
suppress_unstable_features_warning = true

[model_providers.sim]
name = "sim"
base_url = ` + strconv.Quote(baseURL+"/v1") + `
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 2
stream_max_retries = 2
stream_idle_timeout_ms = 60000

[analytics]
enabled = false

[feedback]
enabled = false

# Codex offers no plan tool and no question tool without these two.
[tools.update_plan]
enabled = true

[features]
default_mode_request_user_input = true
`
	return writeFile(filepath.Join(dir, "config.toml"), []byte(config))
}

// ClaudeEnv is the environment with which claude needs no network and no login.
// HOME and PATH are the caller's, as is CLAUDE_CONFIG_DIR. Pass --model ClaudeModel.
func ClaudeEnv(baseURL string) []string {
	return []string{
		"ANTHROPIC_BASE_URL=" + baseURL,
		"ANTHROPIC_API_KEY=sk-ant-sim-000",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"ENABLE_TOOL_SEARCH=false", // else most tools are not in the request
	}
}

// OpencodeEnv is the environment with which opencode needs no network, no key and
// no file. HOME, PATH and XDG_* are the caller's.
func OpencodeEnv(baseURL string) []string {
	return []string{
		"OPENCODE_CONFIG_CONTENT=" + string(encode(opencodeConfig(baseURL))),
		"OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_MODELS_FETCH=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
	}
}

func opencodeConfig(baseURL string) map[string]any {
	entry := func(name string) map[string]any {
		return map[string]any{
			"name": name, "tool_call": true, "reasoning": true,
			"attachment": true, "modalities": map[string]any{"input": []string{"text", "image"}, "output": []string{"text"}},
			"limit": map[string]any{"context": 128000, "output": 8192},
			"cost":  map[string]any{"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 0.5},
		}
	}
	return map[string]any{
		"autoupdate": false, "share": "disabled", "snapshot": false,
		"model": "sim/" + Model, "small_model": "sim/" + Model, "enabled_providers": []string{"sim"},
		"provider": map[string]any{"sim": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Scripted model",
			"options": map[string]any{"baseURL": baseURL + "/v1", "apiKey": "sim"},
			"models":  map[string]any{Model: entry("Scripted model"), OtherModel: entry("Other scripted model")},
		}},
	}
}

// codexCatalog describes the models to codex such that it offers them plain
// function tools and apply_patch; a model it does not know gets no apply_patch.
func codexCatalog() map[string]any {
	efforts := []any{}
	for _, e := range []string{"low", "medium", "high"} {
		efforts = append(efforts, map[string]any{"effort": e, "description": e})
	}
	entry := func(slug, name string, priority int) map[string]any {
		return map[string]any{
			"slug": slug, "display_name": name, "description": "Answers from a script",
			"default_reasoning_level": "low", "supported_reasoning_levels": efforts,
			"default_reasoning_summary": "none", "support_verbosity": true, "default_verbosity": "low",
			"shell_type": "unified_exec", "apply_patch_tool_type": "freeform", "web_search_tool_type": "text",
			"visibility": "list", "supported_in_api": true, "priority": priority,
			"additional_speed_tiers": []any{}, "service_tiers": []any{}, "availability_nux": nil, "upgrade": nil,
			"include_skills_usage_instructions": false, "include_plugin_usage_instructions": false,
			"include_apps_usage_instructions": false,
			"truncation_policy":               map[string]any{"mode": "tokens", "limit": 10000},
			"supports_image_detail_original":  true, "input_modalities": []any{"text", "image"},
			"context_window": 272000, "max_context_window": 272000, "effective_context_window_percent": 95,
			"comp_hash": "0", "experimental_supported_tools": []any{},
			"supports_search_tool": false, "supports_experimental_context": false,
			"use_responses_lite": false, "supports_reasoning_effort_updates": false,
			"node_repl_auto_review_required": false, "node_repl_disabled": false,
			"base_instructions": "You answer from a script.",
		}
	}
	return map[string]any{"models": []any{entry(Model, "Scripted model", 1), entry(OtherModel, "Other scripted model", 2)}}
}

// modelList answers GET /models in a form that serves all three CLIs.
func modelList() map[string]any {
	list := codexCatalog()
	data := []any{}
	for _, id := range []string{Model, OtherModel, ClaudeModel} {
		data = append(data, map[string]any{
			"id": id, "object": "model", "type": "model", "display_name": id,
			"created": created, "created_at": "2026-01-01T00:00:00Z", "owned_by": "sim",
		})
	}
	list["object"], list["data"], list["has_more"] = "list", data, false
	return list
}

func writeJSONFile(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'))
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
