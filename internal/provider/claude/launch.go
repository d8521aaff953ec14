package claude

import (
	"cmp"
	"os"
	"path/filepath"

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
	if own := filepath.Join(cfg.Data, servers); exists(own) {
		args = append(args, "--mcp-config", own)
	}
	add("--mcp-config", cfg.Options["mcp_config"])
	add("--allowedTools", cfg.Options["allowed_tools"])
	add("--disallowedTools", cfg.Options["disallowed_tools"])
	return args
}

// exists looks from outside of the box: what is laid there is not the agent's.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

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
	return base.Environ(cfg, map[string]string{"CLAUDE_CODE_ENABLE_TASKS": "0"}, fixed)
}
