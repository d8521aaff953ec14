package ownconfig_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/ownconfig"
)

// What a session will find is known from the configuration, before an agent runs. Only
// what passes is listed: hooks of the user are not, without consent.
func TestInventoryOfTheConfiguration(t *testing.T) {
	home := t.TempDir()
	const hook = `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"true","timeout":5}]}]}}`
	for name, text := range map[string]string{
		".codex/skills/mine/SKILL.md":            "---\nname: mine\ndescription: >\n  What codex\n  can do\n---\nDo it.\n",
		".codex/config.toml":                     "[mcp_servers.far]\nurl = \"https://mcp.example.com/x\"\n[mcp_servers.near]\ncommand = \"true\"\nenabled = false\n",
		".codex/hooks.json":                      hook,
		".claude/skills/mine/SKILL.md":           "---\ndescription: 'What claude can do'\n---\n",
		".claude.json":                           `{"mcpServers":{"near":{"type":"stdio","command":"true"}}}`,
		".claude/settings.json":                  hook,
		".config/opencode/skills/other/SKILL.md": "---\nname: other\ndescription: What opencode can do\n---\n",
		".config/opencode/opencode.json":         `{"mcp":{"near":{"type":"local","command":["true"]}}}`,
	} {
		at := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	near := provider.MCPServer{Name: "near", State: "notStarted", Auth: "unsupported"}
	off := near
	off.State = "disabled"
	for cli, want := range map[string]provider.Inventory{
		"codex": {
			Skills:  []provider.Skill{{Name: "mine", Description: "What codex can do", Path: home + "/.codex/skills/mine/SKILL.md", Scope: "user"}},
			Servers: []provider.MCPServer{{Name: "far", State: "notStarted", Auth: "unknown", Origin: "https://mcp.example.com"}, off},
		},
		"claude": {
			Skills:  []provider.Skill{{Name: "mine", Description: "What claude can do", Path: home + "/.claude/skills/mine/SKILL.md", Scope: "user"}},
			Servers: []provider.MCPServer{near},
		},
		"opencode": {
			Skills: []provider.Skill{
				{Name: "mine", Description: "What claude can do", Path: home + "/.claude/skills/mine/SKILL.md", Scope: "user"},
				{Name: "other", Description: "What opencode can do", Path: home + "/.config/opencode/skills/other/SKILL.md", Scope: "user"},
			},
			Servers: []provider.MCPServer{near},
		},
	} {
		if got := ownconfig.Read(ownconfig.User{Home: home}, cli).Inventory(cli); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", cli, got, want)
		}
		with := ownconfig.Read(ownconfig.User{Home: home, Hooks: []string{cli}}, cli).Inventory(cli)
		if cli == "opencode" {
			continue
		}
		if len(with.Hooks) != 1 || with.Hooks[0].Event != "preToolUse" || with.Hooks[0].Command != "true" || with.Hooks[0].Timeout != 5 || !strings.HasPrefix(with.Hooks[0].Path, home+"/.") {
			t.Errorf("%s with consent: %+v", cli, with.Hooks)
		}
	}
}
