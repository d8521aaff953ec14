package codex

import (
	"encoding/json"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// Model providers of codex, as its threads remember them.
const (
	gatewayProvider = "thole"  // the gateway, where the session has one
	ownProvider     = "openai" // what codex takes by itself
)

// serverArgs switch on the tools that codex hides by default, keep it quiet, and lead
// it to the gateway where the session has one. They are arguments and not settings: a
// thread that began elsewhere keeps its config.toml.
func serverArgs(cfg provider.SessionConfig) []string {
	args := []string{
		"-c", "tools.update_plan.enabled=true",
		"-c", "features.default_mode_request_user_input=true",
		// A snapshot of the shell holds the whole environment, keys included, in a file.
		"-c", "features.shell_snapshot=false",
		"-c", "suppress_unstable_features_warning=true",
		"-c", "check_for_update_on_startup=false",
		"-c", "analytics.enabled=false",
		"-c", "feedback.enabled=false",
	}
	way := table.Of(Name).Gateway
	url := cfg.Env[way.URL]
	if url == "" {
		return args
	}
	if model := cfg.Env[way.Model]; model != "" {
		args = append(args, "-c", "model="+tomlText(model))
	}
	if cfg.Env[way.NoTools] != "" {
		args = append(args, "-c", `web_search="disabled"`)
	}
	const at = "model_providers." + gatewayProvider + "."
	return append(args,
		"-c", `model_provider="`+gatewayProvider+`"`,
		"-c", at+`name="thole"`,
		"-c", at+"base_url="+tomlText(url),
		"-c", at+`wire_api="responses"`,
		"-c", at+`env_key="`+way.Token+`"`,
	)
}

// modelProvider is what a thread is taken up with when it began with another model
// provider, which is then not known here. nil leaves that to codex.
func modelProvider(cfg provider.SessionConfig) *string {
	if cfg.Env[table.Of(Name).Gateway.URL] == "" {
		return nil
	}
	return opt(gatewayProvider)
}

// tomlText quotes a text: a JSON string is a TOML one too.
func tomlText(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}
