package appserver

import (
	"slices"
	"testing"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// Every model of every agent can be chosen by the name it is listed under, and an
// agent that names no default of its own has an entry that leaves the choice to it.
func TestModelsOfAgents(t *testing.T) {
	c := &catalog{cfg: &Config{Providers: func() []provider.Info {
		return []provider.Info{
			{Name: "codex", Title: "Codex", Available: true, Models: []provider.Model{{ID: "gpt-x", Title: "X", Efforts: []string{"low", "high", "max"}, Effort: "low"}}},
			{Name: "claude", Title: "Claude Code", Available: true, Models: []provider.Model{{ID: "default", Title: "Default", Default: true}, {ID: "opus", Title: "Opus"}}},
			{Name: "opencode", Title: "opencode", Available: true},
		}
	}}}
	type choice struct{ agent, model, effort string }
	want := map[string]choice{
		"codex/default": {"codex", "", "medium"}, "gpt-x": {"codex", "gpt-x", "low"},
		"claude/default": {"claude", "", "medium"}, "claude/opus": {"claude", "opus", "medium"}, "opencode/default": {"opencode", "", "medium"},
	}
	models := c.list(event.Settings{})
	if len(models) != len(want) || models[0].ID != "codex/default" || !models[0].IsDefault {
		t.Errorf("%+v", models)
	}
	for _, m := range models {
		agent, model, err := c.pick(m.ID, "", "")
		if got := (choice{agent, model, m.DefaultReasoningEffort}); err != nil || got != want[m.ID] {
			t.Errorf("%s is %+v, not %+v: %v", m.ID, got, want[m.ID], err)
		}
		if back := c.wireModel(agent, model); back != m.ID {
			t.Errorf("%s is shown as %s", m.ID, back)
		}
	}
}

// Of a model's inputs those are listed that threads carry; a provider that says nothing of
// them is believed to take all.
func TestInputsOfModels(t *testing.T) {
	c := &catalog{cfg: &Config{Providers: func() []provider.Info {
		return []provider.Info{{Name: "codex", Available: true, Models: []provider.Model{
			{ID: "words", Inputs: []string{"text"}, Default: true}, {ID: "all", Inputs: []string{"text", "image", "audio"}}, {ID: "unknown"},
		}}}
	}}}
	want := map[string][]string{"words": {"text"}, "all": {"text", "image"}, "unknown": {"text", "image"}}
	for _, m := range c.list(event.Settings{}) {
		if !slices.Equal(m.InputModalities, want[m.ID]) {
			t.Errorf("%s reads %v, want %v", m.ID, m.InputModalities, want[m.ID])
		}
	}
}

// A model without efforts is listed with one, because clients want one; who chooses it leaves
// the effort to the agent, and a model's own words are kept.
func TestEffortOfAModelThatHasNone(t *testing.T) {
	c := &catalog{cfg: &Config{Providers: func() []provider.Info {
		return []provider.Info{
			{Name: "claude", Available: true, Models: []provider.Model{{ID: "default", Default: true}, {ID: "opus", Efforts: []string{"low", "medium", "high"}}}},
			{Name: "opencode", Available: true},
		}
	}}}
	for _, v := range []struct {
		word     string
		set, now event.Settings
		want     string
	}{
		{"medium", event.Settings{Provider: "claude"}, event.Settings{}, ""},
		{"medium", event.Settings{Provider: "opencode"}, event.Settings{}, ""},
		{"medium", event.Settings{}, event.Settings{Provider: "claude"}, ""},
		{"medium", event.Settings{}, event.Settings{Provider: "claude", Model: "opus"}, "medium"},
		{"medium", event.Settings{Provider: "claude", Model: "opus"}, event.Settings{Provider: "claude", Effort: "low"}, "medium"},
		{"medium", event.Settings{Provider: "claude", Model: event.OwnChoice}, event.Settings{Provider: "claude", Model: "opus", Effort: "high"}, event.OwnChoice},
		{"medium", event.Settings{Provider: "opencode", Model: "openai/gpt"}, event.Settings{}, "medium"},
		{"high", event.Settings{Provider: "claude"}, event.Settings{}, "high"},
	} {
		if got := c.effort(v.word, v.set, v.now); got != v.want {
			t.Errorf("%s with %+v on %+v is %q, want %q", v.word, v.set, v.now, got, v.want)
		}
	}
}
