package appserver

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/provider"
	clis "github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// The contract speaks of an approval policy and a sandbox; threads have a profile.
// The words of the two are those of codex's row in the profile table, so a codex
// thread keeps any pair as it is and other providers get the nearest neutral
// profile: never one that lets more through than the pair.

// wish is what a request wants of a thread's settings, in wire words.
type wish struct {
	app.Settings
	sandbox      string // as in thread/start: read-only, workspace-write, danger-full-access
	effort       *string
	instructions string
	mode         *app.CollaborationMode
}

// sandboxWord turns a sandbox policy into the word of the other form.
func sandboxWord(p *app.SandboxPolicy) (string, error) {
	if p == nil {
		return "", nil
	}
	for _, root := range p.WritableRoots {
		if !filepath.IsAbs(root) || strings.Contains(root, "..") {
			return "", thole.Errorf(thole.CodeInvalid, "sandboxPolicy.writableRoots: %q is not an absolute path", root)
		}
	}
	switch p.Type {
	case "readOnly":
		return "read-only", nil
	case "workspaceWrite":
		return "workspace-write", nil
	case "dangerFullAccess", "externalSandbox":
		return "danger-full-access", nil
	}
	return "", invalid("unknown variant `%s`, expected one of `dangerFullAccess`, `readOnly`, `externalSandbox`, `workspaceWrite`", p.Type)
}

func sandboxPolicy(word string) app.SandboxPolicy {
	no := false
	network := json.RawMessage("false")
	switch word {
	case "danger-full-access":
		return app.SandboxPolicy{Type: "dangerFullAccess"}
	case "workspace-write":
		return app.SandboxPolicy{Type: "workspaceWrite", WritableRoots: []string{}, NetworkAccess: network, ExcludeTmpdir: &no, ExcludeTmp: &no}
	}
	return app.SandboxPolicy{Type: "readOnly", NetworkAccess: network}
}

// approvalWord reads an approval policy. The granular form asks at least as much
// as on-request does.
func approvalWord(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var word string
	if strictjson.Unmarshal(raw, &word) != nil {
		var granular struct {
			Granular json.RawMessage `json:"granular"`
		}
		if strictjson.Unmarshal(raw, &granular) == nil && granular.Granular != nil {
			return "on-request", nil
		}
		return "", thole.Errorf(thole.CodeInvalid, "approvalPolicy is neither a word nor granular")
	}
	switch word {
	case "untrusted", "on-request", "never":
		return word, nil
	}
	return "", invalid("unknown variant `%s`, expected one of `untrusted`, `on-request`, `granular`, `never`", word)
}

// words is a profile as the pair that the contract speaks of.
func words(providerName string, p thole.Profile) (approval, sandbox string) {
	native := string(p)
	if providerName != clis.Contract || !strings.Contains(native, "/") {
		neutral := provider.Neutral(providerName, p)
		if neutral == "" {
			neutral = thole.ProfileAsk
		}
		native = provider.Native(clis.Contract, neutral)
	}
	approval, sandbox, _ = strings.Cut(native, "/")
	return approval, sandbox
}

// profile is the profile of a pair of words.
func profile(providerName, approval, sandbox string) thole.Profile {
	pair := thole.Profile(approval + "/" + sandbox)
	if neutral := provider.Neutral(clis.Contract, pair); neutral != "" {
		return neutral
	}
	if providerName == clis.Contract {
		return pair
	}
	switch {
	case approval == "untrusted" || sandbox == "read-only":
		return thole.ProfileAsk
	default:
		return thole.ProfileEdit
	}
}

var permissionProfiles = [...]struct{ id, sandbox, about string }{
	{":read-only", "read-only", "Read files; ask before anything else"},
	{":workspace", "workspace-write", "Read and edit files in the workspace"},
	{":danger-full-access", "danger-full-access", "No sandbox"},
}

// settings turns a wish into changes of settings; now is what they are laid over.
// The second result is true when the turn alone runs in plan mode.
func (s *Server) settings(w wish, now event.Settings) (event.Settings, bool, error) {
	var out event.Settings
	model := str(w.Model)
	plan := false
	if w.mode != nil {
		plan = w.mode.Mode == "plan"
		if model == "" {
			model = w.mode.Settings.Model
		}
		if w.effort == nil {
			w.effort = w.mode.Settings.Effort
		}
		if w.instructions == "" {
			w.instructions = str(w.mode.Settings.Instructions)
		}
	}
	var err error
	if out.Provider, out.Model, err = s.catalog.pick(model, str(w.ModelProvider), now.Provider); err != nil {
		return out, false, err
	}
	out.Effort, out.Instructions = str(w.effort), w.instructions

	approval, err := approvalWord(w.ApprovalPolicy)
	if err != nil {
		return out, false, err
	}
	sandbox := w.sandbox
	switch sandbox {
	case "", "read-only", "workspace-write", "danger-full-access":
	default:
		return out, false, invalid("unknown variant `%s`, expected one of `read-only`, `workspace-write`, `danger-full-access`", sandbox)
	}
	if id := str(w.Permissions); id != "" {
		if sandbox != "" {
			return out, false, thole.Errorf(thole.CodeInvalid, "permissions cannot be combined with a sandbox")
		}
		for _, p := range permissionProfiles {
			if p.id == id {
				sandbox = p.sandbox
			}
		}
		if sandbox == "" {
			return out, false, thole.Errorf(thole.CodeInvalid, "unknown permission profile: %s", id).WithHint("permissionProfile/list names them")
		}
	}
	if approval != "" || sandbox != "" {
		name := cmp.Or(out.Provider, now.Provider, s.catalog.provider())
		wasApproval, wasSandbox := words(cmp.Or(now.Provider, s.catalog.provider()), cmp.Or(now.Profile, s.cfg.DefaultProfile))
		out.Profile = profile(name, cmp.Or(approval, wasApproval), cmp.Or(sandbox, wasSandbox))
	}
	return out, plan, nil
}

// view is a thread with its settings in wire words.
func (s *Server) view(t fold.Thread) app.ThreadView {
	set := s.threadSettings(t.Settings, t.WorkDir())
	return app.ThreadView{
		Thread: s.thread(t), Model: set.Model, ModelProvider: set.ModelProvider, DisabledPluginIDs: []string{},
		Cwd: set.Cwd, RuntimeWorkspaceRoots: []string{set.Cwd}, InstructionSources: []string{},
		ApprovalPolicy: set.ApprovalPolicy, ApprovalsReviewer: set.ApprovalsReviewer, Sandbox: set.SandboxPolicy,
		ReasoningEffort: set.Effort, MultiAgentMode: set.MultiAgentMode,
	}
}

func (s *Server) threadSettings(now event.Settings, dir string) app.ThreadSettings {
	name := cmp.Or(now.Provider, s.catalog.provider())
	approval, sandbox := words(name, cmp.Or(now.Profile, s.cfg.DefaultProfile))
	model := s.catalog.wireModel(name, now.Model)
	return app.ThreadSettings{
		DisabledPluginIDs: []string{}, Cwd: dir, ApprovalPolicy: approval, ApprovalsReviewer: "user",
		SandboxPolicy: sandboxPolicy(sandbox), Model: model, ModelProvider: name, Effort: ptr(now.Effort),
		CollaborationMode: app.CollaborationMode{Mode: "default", Settings: app.ModeSettings{Model: model, Effort: ptr(now.Effort)}},
		MultiAgentMode:    "explicitRequestOnly",
	}
}

func str(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// ptr is nil for "", which is null on the wire.
func ptr[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	return new(string(s))
}
