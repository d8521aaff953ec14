package codex

import (
	"encoding/json"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// Model providers of codex. A thread goes on with the one it began with or not at all.
const (
	gatewayProvider = "thole"  // of threads that begin with the gateway
	ownProvider     = "openai" // codex's own, which settings cannot define
)

// serverArgs switch on the tools that codex hides by default, keep it quiet, and lead
// it to its model.
func serverArgs(cfg provider.SessionConfig) []string {
	return append([]string{
		"-c", "tools.update_plan.enabled=true",
		"-c", "features.default_mode_request_user_input=true",
		// A snapshot of the shell holds the whole environment, keys included, in a file.
		"-c", "features.shell_snapshot=false",
		"-c", "suppress_unstable_features_warning=true",
		"-c", "check_for_update_on_startup=false",
		"-c", "analytics.enabled=false",
		"-c", "feedback.enabled=false",
		"-c", "projects=" + trust(cfg),
	}, append(toolArgs(cfg), modelArgs(cfg, threadProvider(cfg))...)...)
}

// toolWait is how long a tool of thole's may take, in seconds: it may wait for a person.
const toolWait = "604800"

// toolArgs lead codex to the tool server of thole, if the session has one. Codex asks for a
// tool that is not known to be harmless as its approval policy says.
func toolArgs(cfg provider.SessionConfig) (args []string) {
	url := cfg.Env[provider.ToolsURL]
	if url == "" {
		return nil
	}
	const server = "mcp_servers." + provider.ToolsName
	set := func(key, value string) { args = append(args, "-c", server+"."+key+"="+value) }
	set("url", tomlText(url))
	set("bearer_token_env_var", tomlText(provider.ToolsToken))
	set("tool_timeout_sec", toolWait)
	for _, name := range provider.FreeTools {
		set("tools."+name+".approval_mode", tomlText("approve"))
	}
	return args
}

// trust says whether settings of the project count. Codex takes a project of which nothing
// is said for trusted as soon as a thread begins that is not confined by codex itself.
func trust(cfg provider.SessionConfig) string {
	level := "trusted"
	if cfg.NoProject {
		level = "untrusted"
	}
	return "{" + tomlText(cfg.Dir) + "={trust_level=" + tomlText(level) + "}}"
}

// modelArgs put the model provider of a thread, "" for one that begins, where the
// session has its model: at the gateway, or where codex goes by itself. They are
// arguments and not settings, because they belong to one process.
func modelArgs(cfg provider.SessionConfig, thread string) (args []string) {
	set := func(key, value string) { args = append(args, "-c", key+"="+tomlText(value)) }
	way := table.Of(Name).Gateway
	url := cfg.Env[way.URL]
	if url == "" {
		if thread == gatewayProvider {
			set("model_provider", thread)
			set("model_providers."+thread+".name", "OpenAI")
			args = append(args, "-c", "model_providers."+thread+".requires_openai_auth=true")
		}
		return args
	}
	if thread == "" {
		thread = gatewayProvider
	}
	set("model_provider", thread)
	if thread == ownProvider {
		set("openai_base_url", url)
	} else {
		set("model_providers."+thread+".name", "thole")
		set("model_providers."+thread+".base_url", url)
		set("model_providers."+thread+".wire_api", "responses")
		set("model_providers."+thread+".env_key", way.Token)
	}
	if model := cfg.Env[way.Model]; model != "" {
		set("model", model)
	}
	if cfg.Env[way.NoTools] != "" {
		set("web_search", "disabled")
	}
	return args
}

// tomlText quotes a text: a JSON string is a TOML one too.
func tomlText(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}
