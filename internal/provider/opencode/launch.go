package opencode

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/provider/ownconfig"
	"github.com/tholehq/thole/internal/strictjson"
)

// rules make everything ask that could change or leak something. The server takes
// the last rule that matches, so the general one comes first; the order is why
// this is text. They apply to every agent, sub-agents included.
const rules = `{"*":"ask","read":"allow","list":"allow","glob":"allow","grep":"allow","lsp":"allow","todowrite":"allow","todoread":"allow",` +
	`"question":"allow","task":"allow","skill":"allow","invalid":"allow","websearch":"allow","codesearch":"allow"}`

// permission are the rules of the profile and after them those of the user. A name that
// both have keeps its first place and takes the last value.
func permission(user string) string {
	switch {
	case strings.HasPrefix(user, "{") && user != "{}":
		return strings.TrimSuffix(rules, "}") + "," + strings.TrimPrefix(user, "{")
	case user == `"deny"`:
		return strings.Replace(rules, `"*":"ask"`, `"*":"deny"`, 1)
	}
	return rules
}

func dataHome(cfg provider.SessionConfig) string { return filepath.Join(cfg.Data, name, "data") }

// environment is the server's whole environment. Its state is under Data. Its
// configuration directory is where its login is, which an agent in a box cannot write;
// its cache is not worth syncing.
func environment(cfg provider.SessionConfig, password string) map[string]string {
	aside := cfg.Auth
	if aside == "" {
		aside = cfg.Data
	}
	fixed := map[string]string{
		"XDG_DATA_HOME": dataHome(cfg), "XDG_STATE_HOME": filepath.Join(cfg.Data, name, "state"),
		"OPENCODE_SERVER_PASSWORD": password, "OPENCODE_PERMISSION": permission(cfg.Env[ownconfig.Permission]), "OPENCODE_CLIENT": "thole",
	}
	for _, k := range []string{"OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_SHARE", "OPENCODE_ENABLE_QUESTION_TOOL"} {
		fixed[k] = "1"
	}
	if cfg.NoProject {
		fixed["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
	}
	env := base.Environ(cfg, map[string]string{"XDG_CONFIG_HOME": filepath.Join(aside, name, "config")}, fixed)
	if env["XDG_CACHE_HOME"] == "" {
		env["XDG_CACHE_HOME"] = filepath.Join(env["HOME"], ".cache")
	}
	delete(env, "OPENCODE_SERVER_USERNAME")
	delete(env, ownconfig.Permission)
	addTools(cfg, env)
	return env
}

// contentVar holds settings of the server.
const contentVar = "OPENCODE_CONFIG_CONTENT"

// toolWait is how long a tool of thole's may take, in milliseconds: it may wait for a person.
const toolWait = 604_800_000

// addTools adds the tool server of thole, if the session has one, to the settings.
func addTools(cfg provider.SessionConfig, env map[string]string) {
	url, all := env[provider.ToolsURL], map[string]any{}
	if url == "" {
		return
	}
	if text := env[contentVar]; text != "" && strictjson.Unmarshal([]byte(text), &all) != nil {
		return // the server says what is wrong with them
	}
	servers := map[string]any{}
	if own, ok := all["mcp"].(map[string]any); ok {
		maps.Copy(servers, own)
	}
	server := func(url string) map[string]any {
		return map[string]any{
			"type": "remote", "url": url, "enabled": true, "oauth": false, "timeout": toolWait,
			"headers": map[string]string{"Authorization": "Bearer {env:" + provider.ToolsToken + "}"},
		}
	}
	servers[provider.ToolsName] = server(url)
	if len(cfg.Tools) > 0 {
		own := server(url + provider.ClientToolsPath)
		own["timeout"] = provider.ClientToolWait
		servers[provider.ClientToolsName] = own
	}
	all["mcp"] = servers
	if body, err := json.Marshal(all); err == nil {
		env[contentVar] = string(body)
	}
}

func (s *session) launch(password string) (*process.Process, error) {
	env := environment(s.Cfg, password)
	if s.Cfg.Env["XDG_CONFIG_HOME"] == "" {
		if err := prepareConfig(s.Cfg, filepath.Join(env["XDG_CONFIG_HOME"], name)); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "opencode: prepare the configuration directory: %w", err)
		}
	}
	dropDeadLocks(s.Cfg, env["XDG_STATE_HOME"])
	return s.Launch(env, []string{"serve", "--hostname", "127.0.0.1", "--port", "0"},
		env["HOME"], env["XDG_CONFIG_HOME"], env["XDG_CACHE_HOME"], env["XDG_STATE_HOME"], filepath.Join(dataHome(s.Cfg), name))
}
