package ownconfig

import (
	"encoding/json"
	"slices"
	"strings"
)

// Permission is the variable in which opencode's driver finds the user's rules of what may
// be done without a question. They stand after those of the profile, and the last that
// matches counts.
const Permission = "THOLE_OPENCODE_PERMISSION"

// opencodeKeys are those of opencode.json, as opencode 1.18 knows them.
var opencodeKeys = []Key{
	pass("$schema model small_model default_agent subagent_depth username disabled_providers enabled_providers tools watcher.ignore snapshot attachment tool_output compaction " +
		"experimental.batch_tool experimental.primary_tools experimental.continue_loop_on_deny experimental.mcp_timeout experimental.disable_paste_summary"),
	become(General, "permission agent.*.permission mode.*.permission"),
	become(Inline, "agent.*.prompt mode.*.prompt command.*.template"),
	pass("agent.*.model agent.*.variant agent.*.temperature agent.*.top_p agent.*.tools agent.*.disable agent.*.description agent.*.mode agent.*.hidden agent.*.options agent.*.color agent.*.steps agent.*.maxSteps " +
		"mode.*.model mode.*.variant mode.*.temperature mode.*.top_p mode.*.tools mode.*.disable mode.*.description mode.*.mode mode.*.hidden mode.*.options mode.*.color mode.*.steps mode.*.maxSteps " +
		"command.*.description command.*.agent command.*.model command.*.variant command.*.subtask"),
	become(AsTexts, "instructions"),
	become(ToGateway, "provider.*.api provider.*.name provider.*.env provider.*.id provider.*.npm provider.*.whitelist provider.*.blacklist provider.*.models provider.*.options.baseURL provider.*.options.apiKey provider.*.options.headers"),
	refuse("the gateway has its own", "provider.*.options.timeout provider.*.options.chunkTimeout provider.*.options.setCacheKey"),
	refuse("Bedrock, Vertex and Azure by name sign calls themselves, which cannot go through the gateway: use a base URL with a key", "provider.*.options.region provider.*.options.profile provider.*.options.endpoint provider.*.options.project provider.*.options.location provider.*.options.resourceName provider.*.options.enterpriseUrl"),
	become(Program, "mcp.*.command"),
	become(Values, "mcp.*.environment mcp.*.headers"),
	become(Address, "mcp.*.url"),
	pass("mcp.*.type mcp.*.enabled mcp.*.timeout"),
	refuse("a sign-in of the server needs your browser: use a token and `providers.mcp_secrets`, or `oauth = false`", "mcp.*.oauth"),
	refuse("the server runs where the agent works", "mcp.*.cwd"),
	become(ByConsent, "formatter lsp experimental.hook"),
	refuse(whyPlugins, "plugin"),
	refuse("a directory or an address of this machine; skills of yours are laid", "skills.paths skills.urls reference references"),
	refuse("sends what agents do elsewhere", "share autoshare enterprise experimental.openTelemetry"),
	refuse(whyHost, "shell server logLevel autoupdate"),
	refuse(whyScreen, "theme keybinds tui layout"),
	refuse(whyProfile, "experimental.policies"),
}

var opencodeAgentKeys = []Key{
	pass("name description mode model variant temperature top_p tools disable hidden color steps maxSteps options prompt"),
	become(General, "permission"),
}

var opencodeTable = Table{CLI: "opencode", Files: slices.Concat(
	[]File{
		{Root: XDG, From: "config.json", To: opencodeFile, Keys: opencodeKeys},
		{Root: XDG, From: "opencode.json", To: opencodeFile, Keys: opencodeKeys},
		{Root: XDG, From: "opencode.jsonc", To: opencodeFile, Keys: opencodeKeys},
		{Root: Home, From: ".opencode/opencode.json", To: opencodeFile, Keys: opencodeKeys},
		{Root: Home, From: ".opencode/opencode.jsonc", To: opencodeFile, Keys: opencodeKeys},
		{Root: XDG, From: "AGENTS.md", To: opencodeText},
		{Root: Home, From: ".claude/CLAUDE.md", To: opencodeText, Why: "as opencode does without an AGENTS.md of its own"},
	},
	opencodeDirs("agent", "agents", opencodeAgentKeys),
	opencodeDirs("mode", "modes", opencodeAgentKeys),
	opencodeDirs("command", "commands", skillKeys),
	opencodeDirs("skill", "skills", skillKeys),
	[]File{
		{Root: Home, From: ".claude/skills", To: "~/.opencode/skill", Dir: true, Front: skillKeys},
		{Root: Home, From: ".agents/skills", To: "~/.opencode/skill", Dir: true, Front: skillKeys},
	},
	opencodePrograms("plugin", "plugins", "tool", "tools"),
	[]File{
		{Root: XDG, From: "themes", Fate: Refused, Why: whyScreen},
		{Root: XDG, From: "tui.json", Fate: Refused, Why: whyScreen},
		{From: "auth.json", Fate: Refused, Why: whyLogin},
	},
), Tail: opencodeTail}

const (
	opencodeFile = "~/.opencode/opencode.json"
	opencodeText = "~/.opencode/AGENTS.md"
)

// opencodeDirs are a directory under both of its names, in both places.
func opencodeDirs(one, many string, keys []Key) (out []File) {
	for _, name := range []string{one, many} {
		f := File{To: "~/.opencode/" + one, Dir: true, Front: keys}
		if one != "skill" {
			f.Ends = []string{".md"}
		}
		config, home := f, f
		config.Root, config.From = XDG, name
		home.Root, home.From = Home, ".opencode/"+name
		out = append(out, config, home)
	}
	return out
}

func opencodePrograms(names ...string) (out []File) {
	for _, name := range names {
		f := File{Root: XDG, From: name, To: "~/.opencode/" + strings.TrimSuffix(name, "s"), Dir: true, Consent: true}
		home := f
		home.Root, home.From = Home, ".opencode/"+name
		out = append(out, f, home)
	}
	return out
}

// opencodeTail names the instructions in the settings, and takes the permission rules out
// of them for the driver.
func opencodeTail(r *reader) {
	o := r.merged[opencodeFile]
	if o == nil {
		o = newObject()
	}
	if rules := o.by["permission"]; rules != nil {
		o.remove("permission")
		if raw, err := json.Marshal(rules); err == nil {
			r.Env[Permission] = string(raw)
		}
	}
	if r.Files[opencodeText] != nil {
		texts, _ := o.by["instructions"].([]any)
		o.set("instructions", append([]any{opencodeText}, texts...))
	}
	if len(o.names) > 0 {
		r.merged[opencodeFile] = o
	}
}
