package workspace

import (
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/provider/table"
)

// AgentData is the directory of the stored tree that holds the CLIs' conversations. An
// executor has them in another place than the files. What its agent calls by that name
// among the files is stored as OwnAgentData.
const (
	AgentData    = ".agent_data"
	OwnAgentData = ".agent_data.workspace"
)

// Excluded reports whether a path stays out of snapshots, with all below it.
// Project configuration (.codex, .claude, .opencode) is the user's work and is
// kept; what machines put next to it is not. Credentials never leave the
// executor.
func Excluded(path string) bool {
	first, rest, _ := strings.Cut(path, "/")
	name := path[strings.LastIndexByte(path, '/')+1:]
	if first != "" && slices.ContainsFunc(table.CLIs, func(c table.CLI) bool { return c.Project == first }) {
		return rest != "" && (name == "node_modules" || rest == "settings.local.json")
	}
	if first == AgentData {
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
