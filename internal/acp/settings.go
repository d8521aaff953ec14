package acp

import (
	"cmp"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// settings are what an editor can choose of a thread: the profile as mode, model, effort.
type settings struct {
	profile  string
	model    string
	provider string
	effort   string
	models   []app.Model
}

// profiles are the modes, with the words of the contract for them.
var profiles = []struct{ mode, approval, sandbox, name, about string }{
	{string(thole.ProfilePlan), "never", "readOnly", "Plan", "Read files and plan; nothing is changed"},
	{string(thole.ProfileAsk), "untrusted", "workspaceWrite", "Ask", "Ask before edits and commands"},
	{string(thole.ProfileEdit), "on-request", "workspaceWrite", "Edit", "Edit files in the directory; ask before what leaves the sandbox"},
	{string(thole.ProfileFull), "never", "dangerFullAccess", "Full", "Never ask"},
}

// profileOf is the profile of a pair of the contract's words; codex has other
// pairs, which are their own name.
func profileOf(approval, sandbox string) string {
	for _, p := range profiles {
		if p.approval == approval && p.sandbox == sandbox {
			return p.mode
		}
	}
	return approval + "/" + sandbox
}

// words are the contract's for a profile.
func words(profile string) (approval, sandbox string, err error) {
	for _, p := range profiles {
		if p.mode == profile {
			return p.approval, p.sandbox, nil
		}
	}
	return "", "", thole.Errorf(thole.CodeInvalid, "unknown mode %q", profile).WithHint("use plan, ask, edit or full")
}

func (s *session) read(v app.ThreadView) settings {
	return settings{profileOf(v.ApprovalPolicy, v.Sandbox.Type), v.Model, v.ModelProvider, str(v.ReasoningEffort), s.set.models}
}

// models gets the models of all agents that are there.
func (s *session) models() error {
	got, err := call[app.ModelListResult](s.ctx, s.srv.owner, "model/list", app.ModelListParams{})
	s.set.models = got.Data
	return err
}

// modes are the profiles, and the thread's own pair where that is not one of them.
func (s *session) modes() modes {
	out := modes{Current: s.set.profile}
	known := false
	for _, p := range profiles {
		out.Available = append(out.Available, mode{p.mode, p.name, p.about})
		known = known || p.mode == s.set.profile
	}
	if !known {
		out.Available = append(out.Available, mode{ID: s.set.profile, Name: s.set.profile})
	}
	return out
}

// providerOf is the agent of a model of the list.
func providerOf(id string) string {
	if name, _, ok := strings.Cut(id, "/"); ok {
		return name
	}
	return table.Contract
}

// options are what the editor offers: once the thread has turns, the models of its agent.
func (s *session) options() []configOption {
	var groups []configGroup
	var efforts []configValue
	listed := false
	for _, m := range s.set.models {
		provider := providerOf(m.ID)
		if s.begun && provider != s.set.provider {
			continue
		}
		i := slices.IndexFunc(groups, func(g configGroup) bool { return g.Group == provider })
		if i < 0 {
			i = len(groups)
			groups = append(groups, configGroup{Group: provider, Name: provider})
		}
		groups[i].Options = append(groups[i].Options, configValue{m.ID, m.DisplayName, m.Description})
		if m.ID != s.set.model {
			continue
		}
		listed = true
		for _, e := range m.SupportedReasoningEfforts {
			efforts = append(efforts, configValue{Value: e.ReasoningEffort, Name: e.ReasoningEffort})
		}
		s.set.effort = cmp.Or(s.set.effort, m.DefaultReasoningEffort)
	}
	if !listed {
		groups = append(groups, configGroup{"current", "current", []configValue{{Value: s.set.model, Name: s.set.model}}})
	}
	if e := s.set.effort; e != "" && !slices.ContainsFunc(efforts, func(v configValue) bool { return v.Value == e }) {
		efforts = append(efforts, configValue{Value: e, Name: e})
	}
	var choice []configValue
	for _, m := range s.modes().Available {
		choice = append(choice, configValue{m.ID, m.Name, m.Description})
	}
	out := []configOption{
		{"mode", "Mode", "mode", "select", s.set.profile, choice},
		{"model", "Model", "model", "select", s.set.model, groups},
	}
	if len(efforts) > 0 {
		out = append(out, configOption{"effort", "Effort", "thought_level", "select", s.set.effort, efforts})
	}
	return out
}

// offer sends the editor what can be chosen now.
func (s *session) offer() {
	s.update(object{"sessionUpdate": "config_option_update", "configOptions": s.options()})
}

// changed takes settings that a client of the thread chose, maybe this editor.
func (s *session) changed(now app.ThreadSettings) {
	was := s.set
	s.set = settings{profileOf(now.ApprovalPolicy, now.SandboxPolicy.Type), now.Model, now.ModelProvider, str(now.Effort), was.models}
	if s.set.profile != was.profile {
		s.update(object{"sessionUpdate": "current_mode_update", "currentModeId": s.set.profile})
	}
	s.set.effort = cmp.Or(s.set.effort, was.effort)
	if s.set.profile != was.profile || s.set.model != was.model || s.set.effort != was.effort {
		s.offer()
	}
}

// choose changes a setting of the thread, for everybody who uses it.
func (s *session) choose(option, value string) error {
	p := app.SettingsUpdateParams{ThreadID: s.id}
	next := s.set
	switch option {
	case "mode":
		if value == s.set.profile {
			return nil
		}
		approval, sandbox, err := words(value)
		if err != nil {
			return err
		}
		p.ApprovalPolicy, p.SandboxPolicy = encode(approval), &app.SandboxPolicy{Type: sandbox}
		next.profile = value
	case "model":
		p.Model = &value
		next.model, next.provider, next.effort = value, providerOf(value), ""
	case "effort":
		p.Effort = &value
		next.effort = value
	default:
		return thole.Errorf(thole.CodeInvalid, "unknown option %q", option).WithHint("the options are mode, model and effort")
	}
	if _, err := call[app.Empty](s.ctx, s.srv.owner, "thread/settings/update", p); err != nil {
		return err
	}
	s.set = next
	return nil
}

func (s *session) setMode(req *jsonrpc.Request, id string) {
	if err := s.choose("mode", id); err != nil {
		_ = req.Error(toWire(err))
		return
	}
	_ = req.Reply(object{})
	s.offer()
}

func (s *session) setOption(req *jsonrpc.Request, p sessionParams) {
	var value string
	err := strictjson.Unmarshal(p.Value, &value)
	if err != nil {
		err = thole.Errorf(thole.CodeInvalid, "the value of %q is not a string", p.ConfigID)
	}
	was := s.set.profile
	if err == nil {
		err = s.choose(p.ConfigID, value)
	}
	if err != nil {
		_ = req.Error(toWire(err))
		return
	}
	_ = req.Reply(object{"configOptions": s.options()})
	if s.set.profile != was {
		s.update(object{"sessionUpdate": "current_mode_update", "currentModeId": s.set.profile})
	}
}
