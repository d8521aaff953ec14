package opencode

import (
	"maps"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// rules make everything ask that could change or leak something. The server takes
// the last rule that matches, so the general one comes first; the order is why
// this is text. They apply to every agent, sub-agents included.
const rules = `{"*":"ask","read":"allow","list":"allow","glob":"allow","grep":"allow","lsp":"allow","todowrite":"allow","todoread":"allow",` +
	`"question":"allow","task":"allow","skill":"allow","invalid":"allow","websearch":"allow","codesearch":"allow"}`

func dataHome(cfg provider.SessionConfig) string { return filepath.Join(cfg.Data, name, "data") }

// environment is the server's whole environment. Its state is under Data; its
// configuration directory and its cache are not worth syncing.
func environment(cfg provider.SessionConfig, password string) map[string]string {
	aside := cfg.Auth
	if aside == "" {
		aside = cfg.Data
	}
	env := map[string]string{
		"PATH":            "/usr/local/bin:/usr/bin:/bin",
		"HOME":            filepath.Join(cfg.Data, "home"),
		"XDG_CONFIG_HOME": filepath.Join(aside, name, "config"),
		"XDG_CACHE_HOME":  filepath.Join(aside, name, "cache"),
	}
	maps.Copy(env, cfg.Env)
	env["XDG_DATA_HOME"] = dataHome(cfg)
	env["XDG_STATE_HOME"] = filepath.Join(cfg.Data, name, "state")
	env["OPENCODE_SERVER_PASSWORD"] = password
	delete(env, "OPENCODE_SERVER_USERNAME")
	env["OPENCODE_PERMISSION"] = rules
	env["OPENCODE_CLIENT"] = "thole"
	for _, k := range []string{"OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_SHARE", "OPENCODE_ENABLE_QUESTION_TOOL"} {
		env[k] = "1"
	}
	return env
}

func launch(binary string, cfg provider.SessionConfig, password string) (*process.Process, error) {
	env := environment(cfg, password)
	for _, dir := range []string{env["HOME"], env["XDG_CONFIG_HOME"], env["XDG_CACHE_HOME"], env["XDG_STATE_HOME"], filepath.Join(dataHome(cfg), name), cfg.Auth} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "opencode: make the data directory: %w", err)
		}
	}
	if cfg.Env["XDG_CONFIG_HOME"] == "" {
		if err := prepareConfig(filepath.Join(env["XDG_CONFIG_HOME"], name)); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "opencode: prepare the configuration directory: %w", err)
		}
	}
	dropDeadLocks(env["XDG_STATE_HOME"])
	linkCredentials(cfg)
	return process.Start(process.Spec{
		Path: binary, Args: []string{"serve", "--hostname", "127.0.0.1", "--port", "0"},
		Dir: cfg.Dir, Env: env, Secrets: provider.Secrets(env), Box: cfg.Box,
	})
}

// credentials is the server's file of logins. It wants it among its data, which
// is synced, so what lies there is a link to the place that is not.
const credentials = "auth.json"

func linkCredentials(cfg provider.SessionConfig) {
	moveCredentials(cfg)
	if cfg.Auth == "" {
		return
	}
	link := filepath.Join(dataHome(cfg), name, credentials)
	os.Remove(link)
	_ = os.Symlink(filepath.Join(cfg.Auth, credentials), link)
}

// moveCredentials takes logins out of the synced directory: a refresh may have
// put a file in the link's place.
func moveCredentials(cfg provider.SessionConfig) {
	from := filepath.Join(dataHome(cfg), name, credentials)
	info, err := os.Lstat(from)
	if err != nil {
		return
	}
	if info.Mode().IsRegular() && cfg.Auth != "" {
		if raw, err := os.ReadFile(from); err == nil {
			_ = os.WriteFile(filepath.Join(cfg.Auth, credentials), raw, 0o600) // kept or not, it must not be synced
		}
	}
	os.Remove(from)
}
