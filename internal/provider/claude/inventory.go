package claude

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// states are the states of a server in the words of the port.
var states = map[string]string{
	"connected": "connected", "failed": "failed", "disabled": "disabled", "pending": "starting", "needs-auth": "authenticationRequired",
}

// Inventory implements provider.Inventoried. The CLI names its skills when it greets and
// at the beginning of each turn; servers and hooks it is asked for.
func (s *session) Inventory(ctx context.Context) (provider.Inventory, error) {
	var out provider.Inventory
	c, err := s.Present()
	if err != nil {
		return out, err
	}
	out.Skills = c.skills(map[string]string{"user": configDir(s.Cfg), "repo": filepath.Join(s.Cfg.Dir, ".claude")})
	var servers struct {
		MCP []struct {
			Name   string `json:"name"`
			Status string `json:"status"`
			Error  string `json:"error"`
			Config struct {
				URL string `json:"url"`
			} `json:"config"`
			Info struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"serverInfo"`
			Tools []struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			} `json:"tools"`
		} `json:"mcpServers"`
	}
	if err := c.query(ctx, "mcp_status", nil, &servers); err != nil {
		return out, err
	}
	for _, m := range servers.MCP {
		one := provider.MCPServer{Name: m.Name, State: states[m.Status], Problem: m.Error, Title: m.Info.Name, Version: m.Info.Version, Auth: "unsupported"}
		if m.Config.URL != "" {
			one.Auth = "unknown"
		}
		if one.State == "authenticationRequired" {
			one.Auth = "notLoggedIn"
		}
		for _, t := range m.Tools {
			one.Tools = append(one.Tools, provider.MCPTool{Name: t.Name, Description: t.Description})
		}
		out.Servers = append(out.Servers, one)
	}
	var settings struct {
		Effective struct {
			Hooks json.RawMessage `json:"hooks"`
			Off   bool            `json:"disableAllHooks"`
		} `json:"effective"`
	}
	if err := c.query(ctx, "get_settings", nil, &settings); err != nil {
		return out, err
	}
	out.Hooks = provider.ReadHooks(settings.Effective.Hooks, provider.Hook{Source: "user", Trust: "trusted", Path: configDir(s.Cfg) + "/settings.json", Off: settings.Effective.Off})
	return out, nil
}

// CallServer implements provider.Served. A tool that fails is an error here: the CLI passes
// its text on and no result. Of resources it reads those alone that are pages of an app.
func (s *session) CallServer(ctx context.Context, call provider.ServerCall) (json.RawMessage, error) {
	c, err := s.Present()
	if err != nil {
		return nil, err
	}
	var out struct {
		Content    json.RawMessage `json:"content,omitempty"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		Meta       json.RawMessage `json:"_meta,omitempty"`
		Contents   json.RawMessage `json:"contents,omitempty"`
	}
	switch {
	case len(call.Meta) > 0:
		return nil, thole.Errorf(thole.CodeUnsupported, "claude passes no _meta on to a server").WithHint("leave _meta out")
	case call.Tool == "":
		err = c.query(ctx, "mcp_read_resource", map[string]any{"serverName": call.Server, "uri": call.URI}, &out)
	default:
		fields := map[string]any{"tool": "mcp__" + normal(call.Server) + "__" + normal(call.Tool), "result_not_for_model": true}
		if len(call.Arguments) > 0 {
			fields["arguments"] = call.Arguments
		}
		err = c.query(ctx, "mcp_call", fields, &out)
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "%w", err)
	}
	var text string
	if strictjson.Unmarshal(out.Content, &text) == nil { // of a server of an early version of the protocol
		if out.Content, err = json.Marshal([]any{map[string]string{"type": "text", "text": text}}); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// normal is a name as it stands in the name of a tool.
func normal(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

// skills are those that the CLI named. Before its first turn they are the commands that
// are not its own. dirs are where it keeps those of a scope.
func (c *conn) skills(dirs map[string]string) (out []provider.Skill) {
	c.asks.Lock()
	hello, names := c.hello, c.named
	c.asks.Unlock()
	var said struct {
		Commands []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Builtin     bool   `json:"builtin"`
		} `json:"commands"`
	}
	if hello != nil {
		_ = strictjson.Unmarshal(hello.Response, &said)
	}
	for _, k := range said.Commands {
		if names != nil && !slices.Contains(names, k.Name) || names == nil && k.Builtin {
			continue
		}
		one := provider.Skill{Name: k.Name, Description: k.Description, Path: "<built-in>", Scope: "system"}
		for suffix, scope := range map[string]string{" (user)": "user", " (project)": "repo"} {
			if text, ok := strings.CutSuffix(k.Description, suffix); ok {
				one.Description, one.Scope, one.Path = text, scope, filepath.Join(dirs[scope], "skills", k.Name, "SKILL.md")
			}
		}
		out = append(out, one)
	}
	return out
}

// query sends a control request next to the turn, if one runs, and reads the answer, unless out is nil.
func (c *conn) query(ctx context.Context, subtype string, fields map[string]any, out any) error {
	answer := make(chan *controlResponse, 1)
	id := c.nextID()
	c.asks.Lock()
	c.answers[id] = answer
	c.asks.Unlock()
	defer func() {
		c.asks.Lock()
		delete(c.answers, id)
		c.asks.Unlock()
	}()
	if err := c.ask(id, subtype, fields); err != nil {
		return err
	}
	select {
	case c.wanted <- struct{}{}: // the reader may wait for a turn
	default:
	}
	select {
	case r := <-answer:
		if r.Subtype != "success" {
			return thole.Errorf(thole.CodeUnsupported, "claude: %s: %.200s", subtype, r.Error)
		}
		if out == nil {
			return nil
		}
		return strictjson.Unmarshal(r.Response, out)
	case <-c.Read:
		return thole.Errorf(thole.CodeUnavailable, "claude ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// asked reports whether a query waits.
func (c *conn) asked() bool {
	c.asks.Lock()
	defer c.asks.Unlock()
	return len(c.answers) > 0
}

// answered gives a query its answer, and reports whether it was one's.
func (c *conn) answered(m *message) bool {
	if m.Type != "control_response" || m.Response == nil {
		return false
	}
	c.asks.Lock()
	defer c.asks.Unlock()
	answer, ok := c.answers[m.Response.RequestID]
	if ok {
		delete(c.answers, m.Response.RequestID)
		answer <- m.Response
	}
	return ok
}

// greeted and initiated keep what the CLI said of itself.
func (c *conn) greeted(hello *controlResponse) {
	c.asks.Lock()
	defer c.asks.Unlock()
	c.hello = hello
}

func (c *conn) initiated(skills []string) {
	c.asks.Lock()
	defer c.asks.Unlock()
	c.named = skills
}
