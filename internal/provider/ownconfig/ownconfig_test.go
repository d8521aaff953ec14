package ownconfig_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider/ownconfig"
)

// home is a user's home with files.
func home(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func line(c ownconfig.Config, key string) ownconfig.Line {
	for _, l := range c.Lines {
		if l.Key == key {
			return l
		}
	}
	return ownconfig.Line{}
}

func fate(t *testing.T, c ownconfig.Config, want map[string]ownconfig.Fate) {
	t.Helper()
	for key, f := range want {
		if l := line(c, key); l.Fate != f || f == ownconfig.Refused && l.Why == "" {
			t.Errorf("%s: %+v, want %s", key, l, f)
		}
	}
}

const codexConfig = `
model = "gpt-5.5"
notify = ["say", "done"]
nonsense = 1
model_provider = "azure"
profile = "fast"
model_instructions_file = "base.md"
[profiles.fast]
model_reasoning_effort = "low"
sandbox_mode = "danger-full-access"
[model_providers.azure]
base_url = "https://a.example.com/openai"
query_params = { api-version = "1" }
env_http_headers = { "api-key" = "AZURE" }
[mcp_servers.good]
command = "sh"
env = { LEVEL = "3", API_TOKEN = "s3cret" }
env_vars = ["GITHUB_TOKEN"]
[mcp_servers.leaky]
command = "sh"
args = ["--api-key", "s3cret"]
[mcp_servers.remote]
url = "https://mcp.example.com/"
bearer_token_env_var = "GITHUB_TOKEN"
[hooks]
PreToolUse = [{ command = "HOME/.codex/hooks/x" }]
`

func TestCodex(t *testing.T) {
	dir := home(t, map[string]string{".codex/base.md": "be brief", ".codex/AGENTS.md": "one", ".codex/AGENTS.override.md": "two", ".codex/skills/a/run.sh": "#!/bin/sh\n"})
	put := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, ".codex/config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(strings.ReplaceAll(codexConfig, "HOME", dir))
	u := ownconfig.User{Home: dir, Getenv: func(k string) string { return map[string]string{"GITHUB_TOKEN": "ghv", "AZURE": "az"}[k] }}
	c := ownconfig.Read(u, "codex")
	fate(t, c, map[string]ownconfig.Fate{
		"model": ownconfig.Passed, "notify": ownconfig.Refused, "nonsense": ownconfig.Refused, "model_provider": ownconfig.Mapped, "model_providers.azure.base_url": ownconfig.Mapped,
		"profiles.fast.model_reasoning_effort": ownconfig.Passed, "profiles.fast.sandbox_mode": ownconfig.Refused, "mcp_servers.good.env.LEVEL": ownconfig.Passed, "mcp_servers.good.env.API_TOKEN": ownconfig.Refused,
		"mcp_servers.good.env_vars.GITHUB_TOKEN": ownconfig.Refused, "mcp_servers.leaky": ownconfig.Refused, "mcp_servers.remote.bearer_token_env_var": ownconfig.Refused, "hooks": ownconfig.Refused, "model_instructions_file": ownconfig.Mapped,
	})
	if line(c, "nonsense").Why != "unknown to thole" {
		t.Error("an unknown key is not said to be unknown")
	}
	text := string(c.Files["config.toml"])
	for _, bad := range []string{"s3cret", "ghv", "az", "leaky", "notify", "sandbox", "example.com/openai", "hooks"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the session's settings:\n%s", bad, text)
		}
	}
	if string(c.Files["thole/model_instructions_file-base.md"]) != "be brief" || !strings.Contains(text, `"thole/model_instructions_file-base.md"`) || string(c.Files["AGENTS.md"]) != "two" || c.Files["skills/a/run.sh"] == nil {
		t.Errorf("files: %v\n%s", c.Files, text)
	}

	u.Hooks, u.Secrets = []string{"codex"}, []string{"good", "leaky", "remote"}
	c = ownconfig.Read(u, "codex")
	text = string(c.Files["config.toml"])
	for _, want := range []string{"s3cret", `Authorization = "Bearer ghv"`, `GITHUB_TOKEN = "ghv"`, "$HOME/.codex/hooks/x", "leaky"} {
		if !strings.Contains(text, want) {
			t.Errorf("with consent %q is missing:\n%s", want, text)
		}
	}
	if raw, _ := json.Marshal(map[string]any{"files": c.Show(), "lines": c.Lines}); bytes.Contains(raw, []byte("s3cret")) || bytes.Contains(raw, []byte("ghv")) {
		t.Errorf("a secret is shown: %s", raw)
	}

	put("model = \"s3cret\nx")
	if c = ownconfig.Read(u, "codex"); len(c.Lines) == 0 || c.Lines[0].Fate != ownconfig.Refused || strings.Contains(c.Lines[0].Why, "s3cret") {
		t.Errorf("a file that is no TOML: %+v", c.Lines)
	}
}

func TestClaude(t *testing.T) {
	dir := home(t, map[string]string{
		".claude/settings.json":     `{"model":"opus","env":{"MAX_THINKING_TOKENS":"1","ANTHROPIC_BASE_URL":"https://x.example.com","CLAUDE_CODE_USE_BEDROCK":"1","FOO":"bar"},"permissions":{"allow":["Bash(ls)"],"defaultMode":"bypassPermissions"},"hooks":{"a":1},"statusLine":{"command":"x"}}`,
		".claude.json":              `{"numStartups":3,"oauthAccount":{"x":1},"mcpServers":{"a":{"command":"sh","env":{"X":"${HOME}"},"headers":{"X":"y"}}}}`,
		".claude/skills/a/SKILL.md": "---\nname: a\nallowed-tools: Bash\n\"hooks\":\n  x: y\nhooks:\n  PreToolUse: x\n---\nbody hooks:\n",
		".claude/CLAUDE.md":         "see @style.md and @~/notes/a.md, mail me@example.md or @none.md\n", ".claude/style.md": "short @more.md", ".claude/more.md": "more", "notes/a.md": "notes",
		".claude/agents/b.md": "---\nname: b\npermissionMode: bypassPermissions\n---\n",
	})
	c := ownconfig.Read(ownconfig.User{Home: dir}, "claude")
	fate(t, c, map[string]ownconfig.Fate{
		"model": ownconfig.Passed, "env.MAX_THINKING_TOKENS": ownconfig.Passed, "env.ANTHROPIC_BASE_URL": ownconfig.Mapped, "env.CLAUDE_CODE_USE_BEDROCK": ownconfig.Refused, "env.FOO": ownconfig.Refused, "permissions.allow": ownconfig.Passed,
		"permissions.defaultMode": ownconfig.Refused, "hooks": ownconfig.Refused, "statusLine": ownconfig.Refused, "mcpServers.a.env.X": ownconfig.Refused, "mcpServers.a.headers.X": ownconfig.Refused, "*": ownconfig.Refused, "permissionMode": ownconfig.Refused,
	})
	if got := string(c.Files["claude/skills/a/SKILL.md"]); got != "---\nname: a\nallowed-tools: Bash\n---\nbody hooks:\n" {
		t.Errorf("the skill is %q", got)
	}
	if got := string(c.Files["claude/CLAUDE.md"]); got != "see @thole/1-style.md and @thole/3-a.md, mail me@example.md or @none.md\n" || string(c.Files["claude/thole/1-style.md"]) != "short @2-more.md" || string(c.Files["claude/thole/2-more.md"]) != "more" {
		t.Errorf("the instructions are %q", c.Files)
	}
	if got := string(c.Files["claude/mcp.json"]); strings.Contains(got, "numStartups") || !strings.Contains(got, `"command": "sh"`) {
		t.Errorf("the servers are %s", got)
	}
	c = ownconfig.Read(ownconfig.User{Home: dir, Hooks: []string{"claude"}}, "claude")
	fate(t, c, map[string]ownconfig.Fate{"hooks": ownconfig.Mapped})
	if got := string(c.Files["claude/skills/a/SKILL.md"]); !strings.Contains(got, "PreToolUse") {
		t.Errorf("with consent the skill is %q", got)
	}
}

// A user has settings of which a session gets nothing: then it gets what it has anyway. An
// empty list of servers keeps claude from starting.
func TestNothingIsLeft(t *testing.T) {
	dir := home(t, map[string]string{".claude.json": `{"numStartups":3,"primaryApiKey":"x"}`, ".claude/settings.json": `{"nonsense":1}`, ".codex/config.toml": "nonsense = 1\n"})
	for _, cli := range []string{"claude", "codex"} {
		if c := ownconfig.Read(ownconfig.User{Home: dir}, cli); len(c.Files) != 0 || len(c.Lines) == 0 {
			t.Errorf("%s gets %q, and of the user's %+v", cli, c.Files, c.Lines)
		}
	}
}

func TestOpencode(t *testing.T) {
	dir := home(t, map[string]string{
		".config/opencode/opencode.json":  `{"model":"a/b","permission":{"*":"allow","bash":{"*":"ask","git push":"deny"},"edit":"allow"},"instructions":["docs/*.md"],"agent":{"x":{"prompt":"{file:./p.txt}","permission":"allow"}}}`,
		".config/opencode/opencode.jsonc": "{ // mine\n \"model\": \"c/d\", /* two */ \"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"sh\", \"-c\", \"a // b, }\",], }, }, }",
		".config/opencode/p.txt":          "from a file", ".claude/CLAUDE.md": "hello", ".config/opencode/plugin/x.js": "x", ".config/opencode/agents/y.md": "---\ndescription: y\npermission:\n  \"*\": allow\n  edit: deny\n---\n",
	})
	c := ownconfig.Read(ownconfig.User{Home: dir}, "opencode")
	fate(t, c, map[string]ownconfig.Fate{"permission.*": ownconfig.Refused, "permission.bash": ownconfig.Passed, "agent.x.permission": ownconfig.Refused, "agent.x.prompt": ownconfig.Mapped, "instructions.0": ownconfig.Passed})
	if got, want := c.Env[ownconfig.Permission], `{"bash":{"*":"ask","git push":"deny"},"edit":"allow"}`; got != want {
		t.Errorf("the rules are %s, want %s", got, want)
	}
	var got struct {
		Model        string
		Instructions []string
		Permission   any
		MCP          map[string]struct{ Command []string }
		Agent        map[string]struct{ Prompt string }
	}
	if err := json.Unmarshal(c.Files["~/.opencode/opencode.json"], &got); err != nil {
		t.Fatal(err)
	}
	if got.Model != "c/d" || len(got.Instructions) != 2 || got.Instructions[0] != "~/.opencode/AGENTS.md" || got.Permission != nil || got.MCP["a"].Command[2] != "a // b, }" || got.Agent["x"].Prompt != "from a file" {
		t.Errorf("the settings are %+v", got)
	}
	if c.Files["~/.opencode/plugin/x.js"] != nil || string(c.Files["~/.opencode/agent/y.md"]) != "---\ndescription: y\npermission:\n  edit: deny\n---\n" {
		t.Errorf("files: %q", c.Files["~/.opencode/agent/y.md"])
	}
}

// A program that the box does not show is named.
func TestProgramsThatAreNotShown(t *testing.T) {
	dir := home(t, map[string]string{".codex/config.toml": "[mcp_servers.a]\ncommand = \"sh\"\n"})
	c := ownconfig.Read(ownconfig.User{Home: dir, Shown: func(string) bool { return false }}, "codex")
	if l := line(c, "mcp_servers.a.command"); l.Fate != ownconfig.Passed || !strings.Contains(l.Why, "executor.paths") {
		t.Errorf("the command: %+v", l)
	}
}

func TestBounds(t *testing.T) {
	files := map[string]string{}
	for _, n := range "abcdefghij" {
		files[".codex/skills/"+string(n)+"/big"] = strings.Repeat("x", 1<<20)
	}
	files[".codex/skills/k/bigger"] = strings.Repeat("x", 1<<20+1)
	c := ownconfig.Read(ownconfig.User{Home: home(t, files)}, "codex")
	refused := 0
	for _, l := range c.Lines {
		if l.Fate == ownconfig.Refused {
			refused++
		}
	}
	if len(c.Files) != 8 || refused != 3 {
		t.Errorf("%d files are laid and %d refused", len(c.Files), refused)
	}
}

// The documentation has the tables as they are.
func TestTheDocumentIsCurrent(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := ownconfig.Fill(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(doc, want) {
		t.Error("docs/agents.md is not current: go generate ./internal/provider/ownconfig")
	}
}

// What an agent writes in place is not the user's word, and no link there leads to a file
// of the user.
func TestWrittenByTheAgent(t *testing.T) {
	dir := home(t, map[string]string{"dotfiles/claude/skills/a/SKILL.md": "evil", "dotfiles/claude/settings.json": `{"model":"evil"}`, ".ssh/id": "secret", "plain/rules/a.md": "good", "plain/CLAUDE.md": "good"})
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../../.ssh/id", "dotfiles/claude/CLAUDE.md")
	link("../../plain/rules", "dotfiles/claude/rules")
	link("dotfiles/claude", ".claude")
	u := ownconfig.User{Home: dir}
	if c := ownconfig.Read(u, "claude"); len(c.Files) != 4 {
		t.Fatalf("without a thread there %v is laid", c.Show())
	}
	u.Written = filepath.Join(dir, "dotfiles")
	c := ownconfig.Read(u, "claude")
	if len(c.Files) != 0 || len(c.Lines) == 0 {
		t.Errorf("laid: %v", c.Show())
	}
	for _, l := range c.Lines {
		if l.Fate != ownconfig.Refused || !strings.Contains(l.Why, "in place") {
			t.Errorf("%+v", l)
		}
	}
	u.Written = filepath.Join(dir, "elsewhere")
	if c := ownconfig.Read(u, "claude"); len(c.Files) != 4 {
		t.Errorf("with a thread elsewhere %v is laid", c.Show())
	}
}
