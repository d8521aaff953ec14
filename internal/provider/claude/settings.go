package claude

import "github.com/tholehq/thole/internal/provider"

// memory leads to the instructions of the project, which are text and count also where
// its settings do not.
const memory = "@/workspace/CLAUDE.md\n@/workspace/.claude/CLAUDE.md\n@/workspace/CLAUDE.local.md\n"

// Settings implements provider.Configured. The CLI works without writing any of them.
func (*Provider) Settings() (all []provider.Setting) {
	for _, file := range []string{".claude.json", ".config.json", "settings.json", "settings.local.json", "remote-settings.json", "policy-limits.json"} {
		all = append(all, provider.Setting{Path: name + "/" + file, Content: "{}"})
	}
	all = append(all, provider.Setting{Path: name + "/CLAUDE.md", Content: memory})
	for _, dir := range []string{"agents", "commands", "dev-mods", "hooks", "output-styles", "plugins", "rules", "skills", "workflows"} {
		all = append(all, provider.Setting{Path: name + "/" + dir, Dir: true})
	}
	return append(all, provider.Setting{Path: "~/.config/anthropic", Dir: true})
}
