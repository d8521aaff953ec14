package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// An agent that lies about what it has cannot fill the owner's memory, move a terminal's
// cursor or use words that clients do not know.
func TestInventoryIsBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	evil := provider.Inventory{
		Skills:  []provider.Skill{{Name: ""}, {Name: "a\x1b[2J" + long, Description: long, Scope: "galaxy"}},
		Hooks:   []provider.Hook{{Event: "preToolUse", Kind: "command", Trust: "friend", Source: "moon", Timeout: -1}, {Event: "notification", Kind: "command"}},
		Servers: []provider.MCPServer{{Name: "s", State: "dancing", Auth: "sure", Tools: []provider.MCPTool{{Name: "t", Input: json.RawMessage(`{"x":"` + strings.Repeat("y", 100<<10) + `"}`)}}}},
	}
	for range 3000 {
		evil.Skills = append(evil.Skills, provider.Skill{Name: "more"})
		evil.Servers[0].Tools = append(evil.Servers[0].Tools, provider.MCPTool{Name: "more"})
	}
	got := evil.Bounded()
	if len(got.Skills) != 999 || len(got.Servers[0].Tools) != 1000 || got.Servers[0].Tools[0].Input != nil {
		t.Errorf("%d skills, %d tools, a schema of %d bytes", len(got.Skills), len(got.Servers[0].Tools), len(got.Servers[0].Tools[0].Input))
	}
	if k := got.Skills[0]; strings.Contains(k.Name, "\x1b") || len(k.Description) > 4<<10 || k.Scope != "user" {
		t.Errorf("%.60q, a description of %d bytes, %s", k.Name, len(k.Description), k.Scope)
	}
	if s := got.Servers[0]; s.State != "" || s.Auth != "unknown" {
		t.Errorf("%q %q", s.State, s.Auth)
	}
	if len(got.Hooks) != 1 || got.Hooks[0].Trust != "untrusted" || got.Hooks[0].Source != "unknown" || got.Hooks[0].Timeout != 0 {
		t.Errorf("%+v", got.Hooks)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "notification") {
		t.Errorf("%q", got.Warnings)
	}
}
