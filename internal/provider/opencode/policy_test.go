package opencode

import (
	"testing"

	thole "github.com/tholehq/thole"
)

func TestWildcard(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"touch *", "touch made", true}, {"touch *", "touch", true}, {"touch *", "touched", false}, {"*", "anything", true},
		{"git log *", "git push", false}, {"a*b*c", "a1b2c", true}, {"a*b*c", "acb", false}, {"exact", "exact", true}, {"exact", "exactly", false},
	} {
		if got := wildcard(c.pattern, c.s); got != c.want {
			t.Errorf("%q %q: %v", c.pattern, c.s, got)
		}
	}
}

// An allowance must cover every part of a command line.
func TestAllowances(t *testing.T) {
	al := allowances{{"bash", "touch *"}}
	if !al.cover(&nativeAsk{Permission: "bash", Patterns: []string{"touch a"}}) {
		t.Error("not covered")
	}
	if al.cover(&nativeAsk{Permission: "bash", Patterns: []string{"touch a", "rm a"}}) || al.cover(&nativeAsk{Permission: "edit", Patterns: []string{"touch a"}}) {
		t.Error("covers too much")
	}
}

func TestStances(t *testing.T) {
	agents := map[string]bool{"build": true, "plan": true, "explore": true}
	for p, want := range map[thole.Profile]stance{
		"": {"build", ruleAsk}, thole.ProfilePlan: {"plan", ruleDeny}, thole.ProfileEdit: {"build", ruleEdit},
		thole.ProfileFull: {"build", ruleAllow}, "explore": {"explore", ruleAllow}, "plan/allow": {"plan", ruleDeny},
	} {
		if got, err := stanceOf(p, agents); err != nil || got != want {
			t.Errorf("%q: %+v %v", p, got, err)
		}
	}
	for _, p := range []thole.Profile{"nobody", "build/everything", "/"} {
		if _, err := stanceOf(p, agents); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// Planning changes nothing, whatever is asked for.
func TestPlanDenies(t *testing.T) {
	for _, permission := range []string{"edit", "bash", "external_directory", "mcp_write", "doom_loop"} {
		if got := (stance{"plan", ruleDeny}).decide(&nativeAsk{Permission: permission}); got != rulingDeny {
			t.Errorf("%s: %v", permission, got)
		}
	}
}

func TestModelOf(t *testing.T) {
	if m, err := modelOf("a/b/c"); err != nil || m.ProviderID != "a" || m.ModelID != "b/c" {
		t.Errorf("%+v %v", m, err)
	}
	for _, s := range []string{"plain", "/x", "x/"} {
		if _, err := modelOf(s); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}
