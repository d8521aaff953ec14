package opencode

import (
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// rule is what the host answers when the server asks.
type rule string

const (
	ruleDeny  rule = "deny"  // nothing may change
	ruleAsk   rule = "ask"   // a human decides
	ruleEdit  rule = "edit"  // edits of the workspace pass, a human decides the rest
	ruleAllow rule = "allow" // everything passes
)

// stance is what a profile means here: the agent that runs the turn and the
// host's rule.
type stance struct {
	agent string
	rule  rule
}

// stanceOf maps a profile. Native values are an agent, alone or with a rule after
// a slash; alone, an agent acts as the server would let it: freely, except for
// the planning one.
func stanceOf(p thole.Profile, agents map[string]bool) (stance, error) {
	agent, word, given := strings.Cut(provider.Native(name, p), "/")
	st := stance{agent: agent, rule: rule(word)}
	if !given {
		st.rule = ruleAllow
	}
	if agent == "plan" {
		st.rule = ruleDeny
	}
	switch st.rule {
	case ruleDeny, ruleAsk, ruleEdit, ruleAllow:
		if agents[agent] {
			return st, nil
		}
	}
	return stance{}, thole.Errorf(thole.CodeInvalid, "opencode: unknown profile %q", p).
		WithHint("use plan, ask, edit or full, or an agent of opencode such as build, plan, general or explore")
}

type ruling int

const (
	rulingAsk ruling = iota
	rulingAllow
	rulingDeny
)

const planDenial = "Plan mode: nothing may be changed and no command may run yet. Read the files you need and present a plan."

// decide is the host's answer to a permission, or that a human must give it.
func (st stance) decide(a *nativeAsk) ruling {
	if name, own := strings.CutPrefix(a.Permission, provider.ToolsName+"_"); own && slices.Contains(provider.FreeTools, name) {
		return rulingAllow
	}
	if strings.HasPrefix(a.Permission, clientPrefix) || a.Permission == outputTool { // the client that runs them decides about them
		return rulingAllow
	}
	switch st.rule {
	case ruleAllow:
		return rulingAllow
	case ruleDeny:
		switch a.Permission {
		case "webfetch":
			return rulingAsk
		}
		return rulingDeny
	case ruleEdit:
		if a.Permission == "edit" {
			return rulingAllow
		}
	}
	return rulingAsk
}

// allowances are what a human allowed for the rest of the session.
type allowances []allowance

type allowance struct{ permission, pattern string }

func (al allowances) cover(a *nativeAsk) bool {
	if len(a.Patterns) == 0 {
		return al.covers(a.Permission, "*")
	}
	for _, p := range a.Patterns {
		if !al.covers(a.Permission, p) {
			return false
		}
	}
	return true
}

func (al allowances) covers(permission, pattern string) bool {
	for _, one := range al {
		if one.permission == permission && wildcard(one.pattern, pattern) {
			return true
		}
	}
	return false
}

// wildcard matches s against a pattern in which * stands for anything. "ls *"
// also means a bare "ls".
func wildcard(pattern, s string) bool {
	if head, ok := strings.CutSuffix(pattern, " *"); ok && s == head {
		return true
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// modelRef names a model for the server.
type modelRef struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
}

// modelOf reads "provider/model"; the model's name may hold slashes. Empty is the
// configured one.
func modelOf(s string) (*modelRef, error) {
	if s == "" {
		return nil, nil
	}
	p, m, ok := strings.Cut(s, "/")
	if !ok || p == "" || m == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "opencode: model %q is not of the form provider/model", s).
			WithHint("for example anthropic/claude-sonnet-4-5")
	}
	return &modelRef{ProviderID: p, ModelID: m}, nil
}
