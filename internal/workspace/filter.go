package workspace

import "strings"

// AgentData is where the CLIs keep their conversations, inside the workspace.
const AgentData = ".agent_data"

// Excluded reports whether a path stays out of snapshots, with all below it.
// Project configuration (.codex, .claude, .opencode) is the user's work and is
// kept; what machines put beside it is not. Credentials never leave the
// executor.
func Excluded(path string) bool {
	first, rest, _ := strings.Cut(path, "/")
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch first {
	case ".codex", ".claude", ".opencode":
		return rest != "" && (name == "node_modules" || rest == "settings.local.json")
	case AgentData:
		switch name {
		case "auth.json", ".credentials.json", "node_modules":
			return rest != ""
		case "log", "cache", "shell_snapshots", "shell-snapshots", "snapshot":
			// Only where the CLIs have them: deeper down it may be anybody's directory.
			depth := strings.Count(rest, "/")
			return depth >= 1 && depth <= 4
		}
	}
	return false
}
