package provider

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tholehq/thole/internal/plain"
)

// Inventory is what an agent has besides its model: skills, hooks and MCP servers.
type Inventory struct {
	Skills  []Skill     `json:"skills,omitempty"`
	Hooks   []Hook      `json:"hooks,omitempty"`
	Servers []MCPServer `json:"servers,omitempty"`
	// Warnings say what could not be listed, and why.
	Warnings []string `json:"warnings,omitempty"`
}

// Inventoried is a Session that can say what its agent has. It may be asked while a turn
// runs, and must not disturb it.
type Inventoried interface {
	Inventory(ctx context.Context) (Inventory, error)
}

// Served is a Session whose user may call the tools of its agent's MCP servers and read
// their resources. It may be asked while a turn runs, and nobody is asked for leave.
type Served interface {
	CallServer(ctx context.Context, call ServerCall) (json.RawMessage, error)
}

// ServerCall is a call of a tool of an MCP server, or, without a tool, the reading of a
// resource. The answer is the server's own: an object in the words of the protocol.
type ServerCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
	URI       string          `json:"uri,omitempty"`
}

// MaxServerAnswer bounds what a server may answer.
const MaxServerAnswer = 4 << 20

// Skill is a text that an agent reads when a task calls for it.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Short       string `json:"short,omitempty"`
	Path        string `json:"path,omitempty"`  // as the agent sees it
	Scope       string `json:"scope,omitempty"` // user, repo, system or admin
	Off         bool   `json:"off,omitempty"`
}

// Hook is a program or a prompt that a CLI runs at an event of a session.
type Hook struct {
	Event   string `json:"event"` // in Codex's words: preToolUse
	Matcher string `json:"matcher,omitempty"`
	Kind    string `json:"kind"` // command, mcpTool, prompt or agent
	Command string `json:"command,omitempty"`
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Path    string `json:"path,omitempty"`   // the file that has it
	Source  string `json:"source,omitempty"` // system, user, project, …
	Status  string `json:"status,omitempty"` // what is shown while it runs
	Timeout int64  `json:"timeout,omitempty"`
	Async   bool   `json:"async,omitempty"`
	Off     bool   `json:"off,omitempty"`
	Trust   string `json:"trust,omitempty"` // managed, untrusted, trusted or modified
	Key     string `json:"key,omitempty"`
	Hash    string `json:"hash,omitempty"`
}

// MCPServer is a server of tools.
type MCPServer struct {
	Name      string        `json:"name"`
	State     string        `json:"state,omitempty"` // in Codex's words: connected; "" if it was not started
	Auth      string        `json:"auth,omitempty"`
	Problem   string        `json:"problem,omitempty"`
	Origin    string        `json:"origin,omitempty"` // of one that is reached by HTTP
	Title     string        `json:"title,omitempty"`  // its own name
	Version   string        `json:"version,omitempty"`
	Tools     []MCPTool     `json:"tools,omitempty"`
	Resources []MCPResource `json:"resources,omitempty"`
	Templates []MCPResource `json:"templates,omitempty"`
}

// MCPTool is a tool of a server.
type MCPTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"` // a schema
}

// MCPResource is something that a server lets read, or a pattern of such.
type MCPResource struct {
	Name        string `json:"name"`
	URI         string `json:"uri"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mime_type,omitempty"`
}

// Bounds of an inventory.
const (
	maxListed = 1000     // of each kind
	maxShown  = 4 << 10  // bytes of a text
	maxInput  = 64 << 10 // bytes of a tool's schema
)

// The words of the contract; anything else that an agent says becomes the first.
var (
	skillScopes  = []string{"user", "repo", "system", "admin"}
	hookSources  = []string{"unknown", "system", "user", "project", "mdm", "sessionFlags", "plugin", "cloudRequirements", "cloudManagedConfig", "legacyManagedConfigFile", "legacyManagedConfigMdm"}
	hookTrusts   = []string{"untrusted", "trusted", "managed", "modified"}
	serverStates = []string{"", "notStarted", "starting", "connected", "authenticationRequired", "failed", "cancelled", "disabled"}
	serverAuths  = []string{"unknown", "unsupported", "notLoggedIn", "bearerToken", "oAuth"}
	hookEvents   = []string{"", "preModelRequest", "postModelRequest", "preToolUse", "permissionRequest", "postToolUse", "preCompact", "postCompact", "sessionStart", "sessionEnd", "userPromptSubmit", "subagentStart", "subagentStop", "stop", "interrupt"}
	hookKinds    = []string{"", "command", "mcpTool", "prompt", "agent"}
)

// Bounded is the inventory as it may be passed on: what an agent says of itself is neither
// long nor in words that nobody knows.
func (i Inventory) Bounded() Inventory {
	out := Inventory{}
	for _, s := range first(i.Skills) {
		tidy(&s.Name, &s.Description, &s.Short, &s.Path)
		s.Scope = word(s.Scope, skillScopes)
		if s.Name != "" {
			out.Skills = append(out.Skills, s)
		}
	}
	for _, h := range first(i.Hooks) {
		tidy(&h.Matcher, &h.Command, &h.Server, &h.Tool, &h.Path, &h.Status, &h.Key, &h.Hash)
		h.Source, h.Trust, h.Timeout = word(h.Source, hookSources), word(h.Trust, hookTrusts), max(0, h.Timeout)
		event := h.Event
		h.Event, h.Kind = word(h.Event, hookEvents), word(h.Kind, hookKinds)
		if h.Event == "" || h.Kind == "" {
			tidy(&event)
			i.Warnings = append(i.Warnings, "a hook on "+event+" is not listed: the contract has no such event or kind")
			continue
		}
		out.Hooks = append(out.Hooks, h)
	}
	tools := 0
	for _, s := range first(i.Servers) {
		tidy(&s.Name, &s.Problem, &s.Origin, &s.Title, &s.Version)
		s.State, s.Auth = word(s.State, serverStates), word(s.Auth, serverAuths)
		s.Tools, s.Resources, s.Templates = first(s.Tools), bounded(s.Resources), bounded(s.Templates)
		s.Tools = s.Tools[:min(len(s.Tools), maxListed-tools)]
		tools += len(s.Tools)
		for j := range s.Tools {
			t := &s.Tools[j]
			tidy(&t.Name, &t.Title, &t.Description)
			if len(t.Input) > maxInput || !json.Valid(t.Input) {
				t.Input = nil
			}
		}
		if s.Name != "" {
			out.Servers = append(out.Servers, s)
		}
	}
	for _, w := range first(i.Warnings) {
		tidy(&w)
		out.Warnings = append(out.Warnings, w)
	}
	return out
}

func bounded(all []MCPResource) []MCPResource {
	all = first(all)
	for i := range all {
		r := &all[i]
		tidy(&r.Name, &r.URI, &r.Title, &r.Description, &r.MimeType)
	}
	return all
}

func first[T any](all []T) []T { return all[:min(len(all), maxListed)] }

func word(s string, known []string) string {
	for _, k := range known {
		if s == k {
			return s
		}
	}
	return known[0]
}

// tidy makes texts short enough and safe to look at.
func tidy(texts ...*string) {
	for _, t := range texts {
		s := *t
		if len(s) > maxShown {
			s = strings.ToValidUTF8(s[:maxShown], "")
		}
		*t = plain.Line(s)
	}
}
