package codex

import "github.com/tholehq/thole/internal/provider"

// Laid is a directory for files that settings refer to.
const Laid = "thole"

// Settings implements provider.Configured. Those of a project count only where
// config.toml trusts it, which nobody but the server can write.
func (*Provider) Settings() (all []provider.Setting) {
	for _, name := range []string{"config.toml", "environments.toml", ".env", "AGENTS.md", "AGENTS.override.md"} {
		all = append(all, provider.Setting{Path: name})
	}
	all = append(all, provider.Setting{Path: "hooks.json", Content: "{}"})
	for _, name := range []string{"agents", "hooks", "plugins", "prompts", "rules", "skills", ".codex-plugin", ".claude-plugin", ".cursor-plugin", Laid, "~/.agents"} {
		all = append(all, provider.Setting{Path: name, Dir: true})
	}
	return all
}
