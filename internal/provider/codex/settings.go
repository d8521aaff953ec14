package codex

import "github.com/tholehq/thole/internal/provider"

// Laid is a directory for files that settings refer to.
const Laid = "thole"

// Settings implements provider.Configured. Whether those of a project count is an argument.
func (*Provider) Settings() (all []provider.Setting) {
	for _, name := range []string{"config.toml", "environments.toml", ".env", "AGENTS.override.md"} {
		all = append(all, provider.Setting{Path: name})
	}
	all = append(all, provider.Setting{Path: "AGENTS.md", Texts: []string{"AGENTS.override.md", "AGENTS.md"}})
	all = append(all, provider.Setting{Path: "hooks.json", Content: "{}"})
	for _, name := range []string{"agents", "hooks", "plugins", "prompts", "rules", "skills", ".codex-plugin", ".claude-plugin", ".cursor-plugin", Laid, "~/.agents"} {
		all = append(all, provider.Setting{Path: name, Dir: true})
	}
	return all
}
