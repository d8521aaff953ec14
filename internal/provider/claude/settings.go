package claude

import "github.com/tholehq/thole/internal/provider"

// memory leads to the instructions of the project, which are text and count also where
// its settings do not.
const memory = "@" + provider.DirPlace + "/CLAUDE.md\n@" + provider.DirPlace + "/.claude/CLAUDE.md\n@" + provider.DirPlace + "/CLAUDE.local.md\n"

// servers is the file of the user's MCP servers: where settings of the project do not
// count, claude takes them from nowhere else.
const servers = name + "/mcp.json"

// Settings implements provider.Configured. The CLI works without writing any of them.
func (*Provider) Settings() (all []provider.Setting) {
	for _, file := range []string{".claude.json", ".config.json", "settings.json", "settings.local.json", "remote-settings.json", "policy-limits.json"} {
		all = append(all, provider.Setting{Path: name + "/" + file, Content: "{}"})
	}
	all = append(all, provider.Setting{Path: name + "/CLAUDE.md", Tail: memory})
	all = append(all, provider.Setting{Path: servers, Content: `{"mcpServers":{}}`})
	for _, dir := range []string{"agents", "commands", "dev-mods", "hooks", "output-styles", "plugins", "rules", "thole", "workflows"} {
		all = append(all, provider.Setting{Path: name + "/" + dir, Dir: true})
	}
	all = append(all, provider.Setting{Path: name + "/skills", Dir: true, Skills: []string{".claude/skills"}})
	return append(all, provider.Setting{Path: "~/.config/anthropic", Dir: true})
}
