package appserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"
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
	summary      *string
	instructions string
	mode         *app.CollaborationMode
	// network says whether commands may use the network; nil leaves it.
	network *bool
	// webSearch is how Codex searches the web.
	webSearch *string
	// servers are tool servers of the client's, by name.
	servers map[string]*toolServer
}

// sandboxed reads a sandbox policy into the wish. Roots besides the workspace and
// directories that an executor has for itself cannot be given.
func (w *wish) sandboxed(p *app.SandboxPolicy, dir string) error {
	if p == nil {
		return nil
	}
	for _, root := range p.WritableRoots {
		if !filepath.IsAbs(root) || strings.Contains(root, "..") {
			return thole.Errorf(thole.CodeInvalid, "sandboxPolicy.writableRoots: %q is not an absolute path", root)
		}
		if rel, err := filepath.Rel(dir, root); err != nil || strings.HasPrefix(rel, "..") {
			return thole.Errorf(thole.CodeUnsupported, "sandboxPolicy.writableRoots: the thread's files are in %s; %s is elsewhere", dir, root).
				WithHint("leave it out; what lies outside of a thread's directory cannot be given to it later")
		}
	}
	for name, out := range map[string]*bool{"excludeSlashTmp": p.ExcludeTmp, "excludeTmpdirEnvVar": p.ExcludeTmpdir} {
		if out != nil && *out {
			return thole.Errorf(thole.CodeUnsupported, "sandboxPolicy.%s is not supported: /tmp of an executor is its own and stays writable", name).
				WithHint("leave it out")
		}
	}
	switch p.Type {
	case "readOnly":
		w.sandbox = "read-only"
	case "workspaceWrite":
		w.sandbox = "workspace-write"
	case "dangerFullAccess", "externalSandbox":
		w.sandbox = "danger-full-access"
	default:
		return invalid("unknown variant `%s`, expected one of `dangerFullAccess`, `readOnly`, `externalSandbox`, `workspaceWrite`", p.Type)
	}
	switch access := strings.TrimSpace(string(p.NetworkAccess)); access {
	case "", "null":
	case "true", `"enabled"`:
		w.network = new(true)
	case "false", `"restricted"`:
		w.network = new(false)
	default:
		return invalid("sandboxPolicy.networkAccess: %s is neither a boolean nor `restricted` or `enabled`", access)
	}
	return nil
}

// sandboxPolicy is a sandbox in wire words. network says whether commands may use the
// network.
func sandboxPolicy(word string, network bool) app.SandboxPolicy {
	no := false
	access := json.RawMessage(strconv.FormatBool(network))
	switch word {
	case "danger-full-access":
		return app.SandboxPolicy{Type: "dangerFullAccess"}
	case "workspace-write":
		return app.SandboxPolicy{Type: "workspaceWrite", WritableRoots: []string{}, NetworkAccess: access, ExcludeTmpdir: &no, ExcludeTmp: &no}
	}
	return app.SandboxPolicy{Type: "readOnly", NetworkAccess: access}
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

// pair is what a thread's profile is called in the contract: as the client said that chose
// it, as long as that still means the same.
func (s *Server) pair(now event.Settings) (approval, sandbox string) {
	name, p := cmp.Or(now.Provider, s.catalog.provider()), cmp.Or(now.Profile, s.cfg.DefaultProfile)
	if approval, sandbox, ok := strings.Cut(now.Options[provider.OptionPair], "/"); ok && name != clis.Contract && profile(name, approval, sandbox) == p {
		return approval, sandbox
	}
	return words(name, p)
}

// paired are the options of a change with the pair that a client said, where the profile alone
// would be called otherwise. Another option is another session of the agent.
func paired(name string, out, now event.Settings, approval, sandbox string) map[string]string {
	a, b := words(name, out.Profile)
	if name == clis.Contract || now.Options[provider.OptionPair] == "" && a == approval && b == sandbox {
		return out.Options
	}
	options := maps.Clone(out.Options)
	if options == nil {
		options = map[string]string{}
	}
	options[provider.OptionPair] = approval + "/" + sandbox
	return options
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

// permissionProfile names a sandbox as permissionProfile/list does. The TUI waits for that name
// after its user chose one, and sends no message before it has it.
func permissionProfile(sandbox string) *app.PermissionProfile {
	for _, p := range permissionProfiles {
		if p.sandbox == sandbox {
			return &app.PermissionProfile{ID: p.id}
		}
	}
	return nil
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
	if out.Model == "" && strings.HasSuffix(model, "/"+defaultModel) && now.Model != "" {
		out.Model = event.OwnChoice
	}
	out.Effort, out.Instructions = s.catalog.effort(str(w.effort), out, now), w.instructions
	if err := s.own(w, &out, now); err != nil {
		return out, false, err
	}

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
		wasApproval, wasSandbox := s.pair(now)
		approval, sandbox = cmp.Or(approval, wasApproval), cmp.Or(sandbox, wasSandbox)
		out.Profile = profile(name, approval, sandbox)
		out.Options = paired(name, out, now, approval, sandbox)
	}
	return out, plan, nil
}

// view is a thread with its settings in wire words.
func (s *Server) view(t fold.Thread) app.ThreadView {
	set := s.threadSettings(t.Settings, t.WorkDir())
	return app.ThreadView{
		Thread: s.thread(t), Model: set.Model, ModelProvider: set.ModelProvider, DisabledPluginIDs: []string{},
		Cwd: set.Cwd, RuntimeWorkspaceRoots: []string{set.Cwd}, InstructionSources: []string{}, ActivePermissionProfile: set.ActivePermissionProfile,
		ApprovalPolicy: set.ApprovalPolicy, ApprovalsReviewer: set.ApprovalsReviewer, Sandbox: set.SandboxPolicy,
		ReasoningEffort: set.Effort, ServiceTier: set.ServiceTier, MultiAgentMode: set.MultiAgentMode,
	}
}

func (s *Server) threadSettings(now event.Settings, dir string) app.ThreadSettings {
	name := cmp.Or(now.Provider, s.catalog.provider())
	approval, sandbox := s.pair(now)
	model := s.catalog.wireModel(name, now.Model)
	return app.ThreadSettings{
		DisabledPluginIDs: []string{}, Cwd: dir, ApprovalPolicy: approval, ApprovalsReviewer: "user",
		SandboxPolicy: sandboxPolicy(sandbox, networked(name, now)), ActivePermissionProfile: permissionProfile(sandbox), Model: model, ModelProvider: name, Effort: ptr(now.Effort),
		ServiceTier: ptr(now.Options[provider.OptionServiceTier]), Summary: ptr(now.Options[provider.OptionSummary]),
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
