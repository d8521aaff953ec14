package appserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// Inventory says what agents have: skills, hooks and MCP servers.
type Inventory interface {
	// Running asks a thread's agent. CodeConflict: none runs, and none is started for it.
	Running(ctx context.Context, id thole.ThreadID) (provider.Inventory, error)
	// Laid is what a new session of a provider finds in the configuration of the user of
	// this machine. here is a directory that the session writes in place.
	Laid(providerName, here string) provider.Inventory
	// Call calls an MCP server of a thread's agent. CodeConflict: none runs, and none is
	// started for it; CodeUnsupported: the agent lets nobody call its servers.
	Call(ctx context.Context, id thole.ThreadID, call provider.ServerCall) (json.RawMessage, error)
}

// maxCwds bounds the directories of one request.
const maxCwds = 64

// registerInventory serves what agents have. It asks an agent that runs, and otherwise
// reads the configuration that the next session gets. Nothing here waits in a lane.
func (s *Server) registerInventory() {
	on(s, "skills/list", s.skillsList)
	on(s, "hooks/list", s.hooksList)
	on(s, "mcpServerStatus/list", s.serversList)
	on(s, "mcpServer/tool/call", s.serverTool)
	on(s, "mcpServer/resource/read", s.serverResource)
}

// site is a directory with the agent that works there.
type site struct {
	cwd    string
	thread *fold.Thread // nil: no thread of the connection's
	has    provider.Inventory
}

// places are the directories of a request. One in which a thread works that the
// connection follows is that thread's; of others it is said what a new thread there has. A
// TUI asks for its own directory and then looks for that of its thread in the answer.
func (s *Server) places(ctx context.Context, c *conn, cwds []string) ([]site, error) {
	if len(cwds) > maxCwds {
		return nil, thole.Errorf(thole.CodeInvalid, "more than %d directories", maxCwds)
	}
	followed, err := s.near(ctx, c)
	if err != nil {
		return nil, err
	}
	cwds = slices.Clone(cwds)
	if c.isTerminal() {
		for _, t := range followed {
			if dir := t.WorkDir(); !slices.Contains(cwds, dir) && len(cwds) < maxCwds {
				cwds = append(cwds, dir)
			}
		}
	} else if len(cwds) == 0 && len(followed) > 0 {
		cwds = append(cwds, followed[0].WorkDir())
	}
	if len(cwds) == 0 {
		cwds = append(cwds, s.cfg.Home)
	}
	asked := map[thole.ThreadID]provider.Inventory{}
	out := make([]site, 0, len(cwds))
	for _, cwd := range cwds {
		p := site{cwd: cwd}
		for i := range followed {
			if followed[i].WorkDir() == cwd {
				p.thread = &followed[i]
				break
			}
		}
		if p.thread == nil {
			if p.has, err = s.wouldHave(ctx, c); err != nil {
				return nil, err
			}
		} else {
			has, known := asked[p.thread.ID]
			if !known {
				has = s.threadHas(ctx, *p.thread)
				asked[p.thread.ID] = has
			}
			p.has = has
		}
		out = append(out, p)
	}
	return out, nil
}

// followed are the threads that the connection is subscribed to, the newest first.
func (s *Server) followed(ctx context.Context, c *conn) ([]fold.Thread, error) {
	c.mu.Lock()
	ids := make([]thole.ThreadID, 0, len(c.subs))
	for id := range c.subs {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	slices.SortFunc(ids, func(a, b thole.ThreadID) int { return cmp.Compare(b, a) }) // ids grow with time
	out := make([]fold.Thread, 0, len(ids))
	for _, id := range ids {
		t, err := s.cfg.Threads.Get(ctx, c.who(), id)
		switch thole.CodeOf(err) {
		case "":
			out = append(out, t)
		case thole.CodeNotFound, thole.CodeGone: // deleted meanwhile
		default:
			return nil, err
		}
	}
	return out, nil
}

// near are the threads that the connection follows, the newest first, else the one that it
// looked at last and is about to open.
func (s *Server) near(ctx context.Context, c *conn) ([]fold.Thread, error) {
	threads, err := s.followed(ctx, c)
	c.mu.Lock()
	opens := c.looked
	c.mu.Unlock()
	if err != nil || len(threads) > 0 || opens == "" {
		return threads, err
	}
	if t, err := s.cfg.Threads.Get(ctx, c.who(), opens); err == nil {
		threads = append(threads, t)
	}
	return threads, nil
}

// threadHas is what a thread's agent has: by its own word, or by its configuration.
func (s *Server) threadHas(ctx context.Context, t fold.Thread) provider.Inventory {
	if s.cfg.Inventory == nil {
		return provider.Inventory{}
	}
	has, err := s.cfg.Inventory.Running(ctx, t.ID)
	if err == nil {
		return has.Bounded()
	}
	laid := provider.Inventory{}
	if t.Owner.User == thole.LocalUser {
		here := ""
		if t.Files.InPlace() {
			here = t.Files.Dir
		}
		laid = s.cfg.Inventory.Laid(cmp.Or(t.Settings.Provider, s.catalog.provider()), here)
	}
	if code := thole.CodeOf(err); code != thole.CodeConflict && code != thole.CodeNotFound {
		s.cfg.Log.Warn("an agent did not say what it has", "thread", t.ID, "err", err)
		laid.Warnings = append(laid.Warnings, "The running agent did not answer; this is what its configuration says.")
	}
	return laid.Bounded()
}

// wouldHave is what a new thread of the connection's user starts with.
func (s *Server) wouldHave(ctx context.Context, c *conn) (provider.Inventory, error) {
	if s.cfg.Inventory == nil || c.actor.User != thole.LocalUser {
		return provider.Inventory{}, nil
	}
	def, err := s.defaults(ctx, c)
	return s.cfg.Inventory.Laid(cmp.Or(def.Provider, s.catalog.provider()), "").Bounded(), err
}

// named finds the thread that a request names.
func (s *Server) named(ctx context.Context, c *conn, name string) (fold.Thread, error) {
	id, err := threadID(name)
	if err != nil {
		return fold.Thread{}, err
	}
	return s.cfg.Threads.Get(ctx, c.who(), id)
}

func (s *Server) skillsList(ctx context.Context, c *conn, p *app.SkillsListParams) (answer, error) {
	places, err := s.places(ctx, c, p.Cwds)
	out := app.SkillsListResult{Data: []app.SkillsEntry{}}
	for _, at := range places {
		e := app.SkillsEntry{Cwd: at.cwd, Skills: []app.Skill{}, Errors: []app.FileError{}}
		for _, k := range at.has.Skills {
			e.Skills = append(e.Skills, app.Skill{Name: k.Name, Description: k.Description, ShortDescription: ptr(k.Short), Path: skillPath(k), Scope: k.Scope, Enabled: !k.Off})
		}
		out.Data = append(out.Data, e)
	}
	return result(out, err)
}

// skillPath is where a skill lies. Clients want a path, also of one that an agent brings
// along.
func skillPath(k provider.Skill) string {
	if filepath.IsAbs(k.Path) {
		return k.Path
	}
	return "/<built-in>/" + k.Name + "/SKILL.md"
}

func (s *Server) hooksList(ctx context.Context, c *conn, p *app.HooksListParams) (answer, error) {
	var places []site
	var err error
	switch {
	case p.ThreadID == nil:
		places, err = s.places(ctx, c, p.Cwds)
	case len(p.Cwds) > 0:
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "specify either threadId or cwds")
	default:
		var t fold.Thread
		if t, err = s.named(ctx, c, *p.ThreadID); err == nil {
			places = []site{{cwd: t.WorkDir(), has: s.threadHas(ctx, t)}}
		}
	}
	out := app.HooksListResult{Data: []app.HooksEntry{}}
	for _, at := range places {
		e := app.HooksEntry{Cwd: at.cwd, Hooks: []app.Hook{}, Warnings: append([]string{}, at.has.Warnings...), Errors: []app.FileError{}}
		for i, h := range at.has.Hooks {
			e.Hooks = append(e.Hooks, wireHook(i, h))
		}
		out.Data = append(out.Data, e)
	}
	return result(out, err)
}

func wireHook(i int, h provider.Hook) app.Hook {
	out := app.Hook{
		Key: h.Key, EventName: h.Event, HandlerType: h.Kind, Matcher: ptr(h.Matcher), TimeoutSec: h.Timeout, StatusMessage: ptr(h.Status),
		SourcePath: cmp.Or(h.Path, "/"), Source: h.Source, DisplayOrder: int64(i), Enabled: !h.Off, IsManaged: h.Trust == "managed", CurrentHash: h.Hash, TrustStatus: h.Trust,
	}
	switch h.Kind {
	case "command":
		out.Command, out.Async = h.Command, &h.Async
	case "mcpTool":
		out.Server, out.Tool = h.Server, h.Tool
	}
	if out.CurrentHash == "" {
		sum := sha256.Sum256([]byte(h.Key + "\n" + h.Matcher + "\n" + h.Command))
		out.CurrentHash = "sha256:" + hex.EncodeToString(sum[:])
	}
	return out
}

func (s *Server) serversList(ctx context.Context, c *conn, p *app.McpServerStatusListParams) (answer, error) {
	switch str(p.Detail) {
	case "", "full", "toolsAndAuthOnly":
	default:
		return answer{}, invalid("unknown variant `%s`, expected `full` or `toolsAndAuthOnly`", *p.Detail)
	}
	var has provider.Inventory
	var err error
	if p.ThreadID == nil {
		has, err = s.wouldHave(ctx, c)
	} else {
		var t fold.Thread
		if t, err = s.named(ctx, c, *p.ThreadID); err == nil {
			has = s.threadHas(ctx, t)
		}
	}
	if err != nil {
		return answer{}, err
	}
	all := []app.McpServerStatus{}
	for _, m := range has.Servers {
		if p.ServerName == nil || *p.ServerName == m.Name {
			all = append(all, wireServer(m, str(p.Detail) != "toolsAndAuthOnly"))
		}
	}
	data, next, err := paged(all, p.ListParams)
	return result(app.McpServerStatusListResult{Data: data, NextCursor: next}, err)
}

func wireServer(m provider.MCPServer, full bool) app.McpServerStatus {
	out := app.McpServerStatus{
		Name: m.Name, RuntimeStatus: ptr(m.State), HTTPOrigin: ptr(m.Origin), ToolsError: ptr(m.Problem), AuthStatus: m.Auth,
		Tools: map[string]app.McpTool{}, Resources: []app.McpResource{}, ResourceTemplates: []app.McpResource{},
	}
	if m.Title != "" {
		out.ServerInfo = &app.McpServerInfo{Name: m.Title, Version: m.Version}
	}
	for _, t := range m.Tools {
		in := t.Input
		if len(in) == 0 {
			in = json.RawMessage(`{"type":"object"}`) // the agent does not say it
		}
		out.Tools[t.Name] = app.McpTool{Name: t.Name, Title: ptr(t.Title), Description: ptr(t.Description), InputSchema: in}
	}
	if !full {
		return out
	}
	for _, r := range m.Resources {
		out.Resources = append(out.Resources, app.McpResource{Name: r.Name, URI: r.URI, Title: ptr(r.Title), Description: ptr(r.Description), MimeType: ptr(r.MimeType)})
	}
	for _, r := range m.Templates {
		out.ResourceTemplates = append(out.ResourceTemplates, app.McpResource{Name: r.Name, URITemplate: r.URI, Title: ptr(r.Title), Description: ptr(r.Description), MimeType: ptr(r.MimeType)})
	}
	return out
}

// serverTool calls a tool of a server of a thread's agent. It runs as one that the agent
// calls, in the thread's box; as with Codex nobody is asked, since a person wants it.
func (s *Server) serverTool(ctx context.Context, c *conn, p *app.McpServerToolCallParams) (answer, error) {
	if p.Tool == "" {
		return answer{}, invalid("a call names its tool")
	}
	return callServer[app.McpServerToolCallResult](ctx, s, c, p.ThreadID, provider.ServerCall{Server: p.Server, Tool: p.Tool, Arguments: compact(p.Arguments), Meta: compact(p.Meta)})
}

func (s *Server) serverResource(ctx context.Context, c *conn, p *app.McpResourceReadParams) (answer, error) {
	if p.ThreadID == nil {
		return answer{}, thole.Errorf(thole.CodeUnsupported, "mcpServer/resource/read needs a threadId: no server runs without a thread's agent")
	}
	return callServer[app.McpResourceReadResult](ctx, s, c, *p.ThreadID, provider.ServerCall{Server: p.Server, URI: p.URI})
}

func callServer[R any](ctx context.Context, s *Server, c *conn, name string, call provider.ServerCall) (answer, error) {
	t, err := s.named(ctx, c, name)
	switch {
	case err != nil:
		return answer{}, err
	case s.cfg.Inventory == nil:
		return answer{}, thole.Errorf(thole.CodeUnsupported, "agents here have no servers")
	}
	return answer{rest: func(ctx context.Context) (any, []jsonrpc.Frame, error) {
		raw, err := s.cfg.Inventory.Call(ctx, t.ID, call)
		if err != nil {
			return nil, nil, err
		}
		var out R
		if err := strictjson.Unmarshal(raw, &out); err != nil {
			return nil, nil, thole.Errorf(thole.CodeUnavailable, "the answer of server %s cannot be read: %w", call.Server, err)
		}
		return out, nil, nil
	}}, nil
}
