package appserver

import (
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
