package codex

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/protocol/app"
)

// mode is one turn's permission to act, in codex's terms and in ours.
type mode struct {
	approval string // untrusted, on-request, never
	sandbox  string // read-only, workspace-write, danger-full-access
	plan     bool
	// guarded says that codex's own sandbox does not work here (containers deny
	// user namespaces). Codex then runs without one and asks for everything that
	// it does not know to be harmless, and the host answers what the sandbox would
	// have enforced.
	guarded bool
	// boxed says that the whole CLI runs in a box of thole, in which codex's own
	// sandbox cannot start. The box holds what may be written and reached; codex knows
	// so, and only asks.
	boxed bool
}

// parseMode reads a neutral profile or native words: "policy/sandbox", or either
// alone.
func parseMode(p thole.Profile) (mode, error) {
	native := provider.Native(Name, p)
	m := mode{approval: "on-request", sandbox: "workspace-write", plan: provider.Neutral(Name, p) == thole.ProfilePlan}
	for _, word := range strings.Split(native, "/") {
		switch {
		case slices.Contains([]string{"untrusted", "on-request", "never"}, word):
			m.approval = word
		case slices.Contains([]string{"read-only", "workspace-write", "danger-full-access"}, word):
			m.sandbox = word
		default:
			return mode{}, thole.Errorf(thole.CodeInvalid, "unknown codex profile %q", p).
				WithHint("use plan, ask, edit, full, or an approval policy and a sandbox such as on-request/workspace-write")
		}
	}
	return m, nil
}

// guard replaces the sandbox by the host's answers.
func (m mode) guard() mode {
	m.guarded = m.sandbox != "danger-full-access"
	return m
}

// external says that codex is confined already.
var external = app.SandboxPolicy{Type: "externalSandbox", NetworkAccess: json.RawMessage(`"enabled"`)}

// wire is what codex is sent.
func (m mode) wire() (approval string, policy app.SandboxPolicy) {
	if m.boxed {
		if m.sandbox == "read-only" && !m.plan { // its workspace is writable: what is not known to be harmless is asked
			return "untrusted", external
		}
		if m.plan { // with never codex runs every tool of an MCP server unasked
			return "on-request", external
		}
		return m.approval, external
	}
	if m.guarded {
		return "untrusted", app.SandboxPolicy{Type: "dangerFullAccess"}
	}
	switch m.sandbox {
	case "read-only":
		return m.approval, app.SandboxPolicy{Type: "readOnly"}
	case "workspace-write":
		return m.approval, app.SandboxPolicy{Type: "workspaceWrite"}
	}
	return m.approval, app.SandboxPolicy{Type: "dangerFullAccess"}
}

// verdict is the host's own answer to an approval, "" when a human is to answer.
func (m mode) verdict(kind event.AskKind, changes []event.FileChange) event.Decision {
	switch {
	case kind == event.AskInput || kind == event.AskElicitation || kind == event.AskTool:
		return ""
	case m.plan:
		return event.DecisionDeny
	case !m.guarded:
		return ""
	case kind == event.AskFileChange && m.sandbox == "workspace-write" && m.approval != "untrusted" && inside(changes):
		return event.DecisionAllow
	case m.approval == "never": // nobody is to be asked
		return event.DecisionDeny
	}
	return ""
}

// inside reports whether every change stays in the workspace: the decoder emits
// such paths relative to it.
func inside(changes []event.FileChange) bool {
	for _, c := range changes {
		if !filepath.IsLocal(c.Path) || c.Move != "" && !filepath.IsLocal(c.Move) {
			return false
		}
	}
	return len(changes) > 0
}
