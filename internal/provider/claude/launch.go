package claude

import (
	"maps"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// credentials is the CLI's file of a login. Where it is stored is set apart from
// the rest of its state, which is synced.
const credentials = ".credentials.json"

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
		args = append(args, "--resume", o.resume, "--fork-session", "--session-id", o.fork)
	case o.resume != "":
		args = append(args, "--resume", o.resume)
	default:
		args = append(args, "--session-id", o.fresh)
	}
	add("--max-turns", cfg.Options["max_turns"])
	add("--settings", cfg.Options["settings"])
	add("--setting-sources", cfg.Options["setting_sources"])
	add("--mcp-config", cfg.Options["mcp_config"])
	add("--allowedTools", cfg.Options["allowed_tools"])
	add("--disallowedTools", cfg.Options["disallowed_tools"])
	return args
}

// environment is the CLI's whole environment.
func environment(cfg provider.SessionConfig) map[string]string {
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin",
		"HOME": filepath.Join(cfg.Data, "home"),
		// One tool that tells the whole list, instead of one call per entry.
		"CLAUDE_CODE_ENABLE_TASKS": "0",
	}
	maps.Copy(env, cfg.Env)
	env["CLAUDE_CONFIG_DIR"] = configDir(cfg)
	if cfg.Auth != "" {
		env["CLAUDE_SECURESTORAGE_CONFIG_DIR"] = cfg.Auth
	}
	for _, k := range []string{"DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"} {
		env[k] = "1"
	}
	if os.Geteuid() == 0 {
		// As root the CLI refuses to bypass permissions unless told that it is boxed
		// in; the executor is that box.
		env["IS_SANDBOX"] = "1"
	}
	return env
}

func launch(binary string, cfg provider.SessionConfig, args []string) (*process.Process, error) {
	env := environment(cfg)
	for _, dir := range []string{configDir(cfg), env["HOME"], cfg.Auth} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "claude: make the data directory: %w", err)
		}
	}
	return process.Start(process.Spec{Path: binary, Args: args, Dir: cfg.Dir, Env: env, Secrets: provider.Secrets(env), Box: cfg.Box})
}

// moveCredentials takes a login out of the synced directory: versions that do
// not know the separate place write it there.
func moveCredentials(cfg provider.SessionConfig) {
	from := filepath.Join(configDir(cfg), credentials)
	if info, err := os.Lstat(from); err != nil || !info.Mode().IsRegular() {
		return
	}
	raw, err := os.ReadFile(from)
	if err == nil && cfg.Auth != "" {
		_ = os.WriteFile(filepath.Join(cfg.Auth, credentials), raw, 0o600) // kept or not, it must not be synced
	}
	os.Remove(from)
}
