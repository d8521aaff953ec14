package ownconfig

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// kept are the settings of a session in which a CLI finds its MCP servers and hooks.
var kept = map[string]struct{ servers, member, hooks string }{
	"codex":    {"config.toml", "mcp_servers", "config.toml"},
	"claude":   {"claude/mcp.json", "mcpServers", "claude/settings.json"},
	"opencode": {opencodeFile, "mcp", ""},
}

// Inventory is what a session of a CLI finds in what is laid for it. Nothing was started:
// servers have no state and no tools.
func (c Config) Inventory(cli string) provider.Inventory {
	from := maps.Clone(c.from)
	for _, l := range c.Lines {
		if rest, ok := strings.CutPrefix(l.From, "~/"); ok && l.To != "" {
			from[l.To] = filepath.Join(c.home, rest)
		} else if l.To != "" {
			from[l.To] = l.From
		}
	}
	var out provider.Inventory
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if path.Base(name) != "SKILL.md" {
			continue
		}
		said := frontTexts(c.Files[name])
		s := provider.Skill{Name: said["name"], Description: said["description"], Path: from[name], Scope: "user"}
		if s.Name == "" {
			s.Name = path.Base(path.Dir(name))
		}
		out.Skills = append(out.Skills, s)
	}
	at := kept[cli]
	out.Servers = laidServers(c.members(at.servers)[at.member])
	if at.hooks != "" {
		trusted := provider.Hook{Source: "user", Trust: "trusted", Path: from[at.hooks]}
		out.Hooks = provider.ReadHooks(c.members(at.hooks)["hooks"], trusted)
	}
	if alone, ok := c.Files["hooks.json"]; ok && cli == "codex" {
		var file struct {
			Hooks json.RawMessage `json:"hooks"`
		}
		_ = strictjson.Unmarshal(alone, &file)
		out.Hooks = append(out.Hooks, provider.ReadHooks(file.Hooks, provider.Hook{Source: "user", Trust: "trusted", Path: from["hooks.json"]})...)
	}
	return out
}

// members are the settings in a file, each as JSON.
func (c Config) members(name string) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	o, err := decode(name, c.Files[name])
	if err != nil {
		return nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	_ = strictjson.Unmarshal(raw, &out)
	return out
}

func laidServers(raw json.RawMessage) (out []provider.MCPServer) {
	var by map[string]struct {
		URL     string                     `json:"url"`
		Enabled *bool                      `json:"enabled"`
		Headers map[string]json.RawMessage `json:"headers"`
		HTTP    map[string]json.RawMessage `json:"http_headers"`
	}
	if strictjson.Unmarshal(raw, &by) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		one := by[name]
		s := provider.MCPServer{Name: name, State: "notStarted", Auth: "unsupported"}
		if one.Enabled != nil && !*one.Enabled {
			s.State = "disabled"
		}
		if u, err := url.Parse(one.URL); err == nil && u.Host != "" {
			s.Origin, s.Auth = u.Scheme+"://"+u.Host, "unknown"
			for _, header := range slices.Concat(slices.Collect(maps.Keys(one.Headers)), slices.Collect(maps.Keys(one.HTTP))) {
				if strings.EqualFold(header, "authorization") {
					s.Auth = "bearerToken"
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// frontTexts are the values of a Markdown text's front matter, each on one line.
func frontTexts(body []byte) map[string]string {
	out := map[string]string{}
	lines := bytes.Split(body, []byte("\n"))
	if !bytes.Equal(bytes.TrimSpace(lines[0]), fence) {
		return out
	}
	key := ""
	for _, l := range lines[1:] {
		text := strings.TrimRight(string(l), "\r")
		if strings.TrimSpace(text) == string(fence) {
			break
		}
		if m := frontLine().FindStringSubmatch(text); m != nil {
			key = m[1]
			value := strings.TrimSpace(m[2])
			if strings.Trim(value, ">|-+") == "" {
				value = ""
			}
			out[key] = strings.Trim(value, `"'`)
		} else if key != "" {
			out[key] = strings.TrimSpace(out[key] + " " + strings.TrimSpace(text))
		}
	}
	return out
}
