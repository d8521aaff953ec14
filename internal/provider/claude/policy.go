package claude

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// Native permission modes. The CLI takes any string for a mode and reports
// success, so only these pass.
const (
	modeDefault = "default"
	modeEdits   = "acceptEdits"
	modePlan    = "plan"
	modeBypass  = "bypassPermissions"
	modeDontAsk = "dontAsk"
	modeAuto    = "auto"
)

// stance is what a profile means here: the CLI's mode, and whether the host
// allows what the CLI still asks about in it.
type stance struct {
	mode  string
	allow bool
}

func (s stance) plan() bool { return s.mode == modePlan }

// stanceOf maps a profile; native modes pass through unchanged.
func stanceOf(p thole.Profile) (stance, error) {
	switch mode := provider.Native(name, p); mode {
	case modeDefault, modePlan, modeEdits, modeDontAsk, modeAuto:
		return stance{mode: mode}, nil
	case modeBypass:
		return stance{mode: mode, allow: true}, nil
	}
	return stance{}, thole.Errorf(thole.CodeInvalid, "claude: unknown profile %q", p).
		WithHint("use plan, ask, edit or full, or a permission mode of Claude Code: default, acceptEdits, plan, dontAsk, auto, bypassPermissions")
}

const planDenial = "Plan mode: nothing may be changed yet. Read and plan, then call ExitPlanMode."

// planAllows reports whether a call may run while planning. The CLI's own plan
// mode is advice: rules of a project and of this session still let commands
// through. What is not known to be harmless is denied.
func planAllows(configDir, tool string, input json.RawMessage) bool {
	switch tool {
	case "Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch", "Skill",
		"Task", "Agent", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskOutput", "TodoWrite",
		"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool", outputTool:
		return true
	case ownTool("ask_user"), ownTool("job_status"), ownTool("goal_update"):
		return true
	case "Write", "Edit":
		path := filepath.Clean(stringField(input, "file_path"))
		return filepath.Dir(path) == filepath.Join(configDir, "plans") // the plan itself is a file
	case "Bash":
		return readOnly(stringField(input, "command"))
	}
	return strings.HasPrefix(tool, clientPrefix) // which changes nothing here
}

// readOnly reports whether a shell command plainly only reads: a chain of known
// programs without redirection, substitution or an option that writes or runs
// something. Separators inside quotes split too, so it errs on the side of no.
func readOnly(command string) bool {
	if strings.ContainsAny(command, "><`$\n\\(){}!") {
		return false
	}
	parts := strings.FieldsFunc(command, func(r rune) bool { return r == '|' || r == ';' || r == '&' })
	if len(parts) == 0 || lone(command) {
		return false
	}
	for _, p := range parts {
		if words := strings.Fields(p); len(words) == 0 || !readsOnly(words) {
			return false
		}
	}
	return true
}

// lone reports a single & between commands, which runs the first in the
// background.
func lone(command string) bool {
	return strings.Contains(strings.ReplaceAll(command, "&&", ""), "&")
}

func readsOnly(words []string) bool {
	args := words[1:]
	switch words[0] {
	case "ls", "cat", "head", "tail", "wc", "pwd", "echo", "stat", "which", "grep", "egrep", "fgrep", "du", "df", "true", "uname", "whoami", "basename", "dirname", "realpath":
		return true
	case "rg":
		return !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--pre") || strings.HasPrefix(a, "--hostname-bin") })
	case "find":
		return !slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") || a == "-delete" || strings.HasPrefix(a, "-fprint") || a == "-fls"
		})
	case "git":
		if len(args) == 0 || !slices.Contains([]string{"log", "show", "diff", "status", "blame", "ls-files", "rev-parse"}, args[0]) {
			return false
		}
		return !slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "--output") || strings.HasPrefix(a, "--ext-diff") || strings.HasPrefix(a, "--textconv")
		})
	}
	return false
}
