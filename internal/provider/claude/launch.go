package claude

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
)

func configDir(cfg provider.SessionConfig) string { return filepath.Join(cfg.Data, name) }

// opening says which conversation a process is started for.
type opening struct {
	fresh  string // new session with this id
	resume string
	fork   string // resume into this new id
}

func arguments(cfg provider.SessionConfig, o opening, st stance, model, effort string) []string {
	args := []string{
		"--output-format", "stream-json", "--input-format", "stream-json", "--verbose",
		"--include-partial-messages", "--replay-user-messages",
		"--permission-prompt-tool", "stdio",
		"--permission-mode", st.mode,
	}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("--model", model)
	add("--effort", effort)
	add("--append-system-prompt", cfg.Instructions)
	switch {
	case o.fork != "":
		args = append(args, "--resume="+o.resume, "--fork-session", "--session-id", o.fork)
	case o.resume != "":
		args = append(args, "--resume="+o.resume) // one word: no id is taken for an option
	default:
		args = append(args, "--session-id", o.fresh)
	}
	add("--max-turns", cfg.Options["max_turns"])
	add("--settings", cfg.Options["settings"])
	if cfg.NoProject {
		args = append(args, "--strict-mcp-config")
		add("--setting-sources", cmp.Or(cfg.Options["setting_sources"], "user"))
	} else {
		add("--setting-sources", cfg.Options["setting_sources"])
	}
	lists, allowed := toolServer(cfg)
	if own := filepath.Join(cfg.Data, servers); exists(own) {
		lists = append(lists, own)
	}
	if own := cfg.Options["mcp_config"]; own != "" {
		lists = append(lists, own)
	}
	if len(lists) > 0 {
		args = append(append(args, "--mcp-config"), lists...)
	}
	if own := cfg.Options["allowed_tools"]; own != "" {
		allowed = append(allowed, own)
	}
	add("--allowedTools", strings.Join(allowed, ","))
	add("--disallowedTools", cfg.Options["disallowed_tools"])
	return args
}

// exists looks from outside of the box: what is laid there is not the agent's.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// toolServer is the configuration of the tool server of thole, if the session has one, and
// those of its tools that the CLI need not ask for.
func toolServer(cfg provider.SessionConfig) (servers, allowed []string) {
	url := cfg.Env[provider.ToolsURL]
	if url == "" {
		return nil, nil
	}
	server := func(url string) map[string]any {
		return map[string]any{"type": "http", "url": url, "headers": map[string]string{"Authorization": "Bearer ${" + provider.ToolsToken + "}"}}
	}
	all := map[string]any{provider.ToolsName: server(url)}
	if len(cfg.Tools) > 0 { // the client that runs them decides about them
		own := server(url + provider.ClientToolsPath)
		own["timeout"] = provider.ClientToolWait
		all[provider.ClientToolsName] = own
		allowed = append(allowed, strings.TrimSuffix(clientPrefix, "__"))
	}
	raw, _ := json.Marshal(map[string]any{"mcpServers": all})
	for _, name := range provider.FreeTools {
		allowed = append(allowed, ownTool(name))
	}
	return []string{string(raw)}, allowed
}

// ownTool is the CLI's name of a tool of thole's.
func ownTool(name string) string { return "mcp__" + provider.ToolsName + "__" + name }

// clientPrefix begins the CLI's names of the tools of the thread's client.
const clientPrefix = "mcp__" + provider.ClientToolsName + "__"

// toolWait is how long a tool of an MCP server may take, in milliseconds: it may wait for a
// person.
const toolWait = "604800000"

// environment is the CLI's whole environment.
func environment(cfg provider.SessionConfig) map[string]string {
	fixed := map[string]string{"CLAUDE_CONFIG_DIR": configDir(cfg)}
	if cfg.Auth != "" {
		fixed["CLAUDE_SECURESTORAGE_CONFIG_DIR"] = cfg.Auth
	}
	for _, k := range []string{"DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"} {
		fixed[k] = "1"
	}
	if os.Geteuid() == 0 {
		// As root the CLI refuses to bypass permissions unless it knows that it is boxed
		// in; the executor is that box.
		fixed["IS_SANDBOX"] = "1"
	}
	// One tool that reports the whole list, instead of one call per entry.
	return base.Environ(cfg, map[string]string{"CLAUDE_CODE_ENABLE_TASKS": "0", "MCP_TOOL_TIMEOUT": toolWait}, fixed)
}
