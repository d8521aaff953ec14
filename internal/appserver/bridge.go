package appserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/mcp/mcpclient"
	"github.com/tholehq/thole/internal/strictjson"
)

// A client may name tool servers of its own process in the config of a thread, as SDKs do
// for the tools of a program. A box reaches no loopback but its own, so the server calls
// them: their tools are tools of the thread's client, and their calls are answered here
// instead of being sent to it.

// How long a server of a client's may take, unless its config says otherwise.
const (
	bridgeStart   = 10 * time.Second
	bridgeCall    = time.Minute
	maxBridgeWait = time.Hour
	maxBridges    = 32
)

// toolMark stands between the name of a server and that of its tool.
const toolMark = "__"

// toolServer is a client's tool server as its config has it.
type toolServer struct {
	url            string
	headers        map[string]string
	off            bool
	only, without  []string
	starts, answer time.Duration
}

// has reports whether a tool of the server's is wanted.
func (s *toolServer) has(tool string) bool {
	return (s.only == nil || slices.Contains(s.only, tool)) && !slices.Contains(s.without, tool)
}

// server takes one key of a tool server, NAME.KEY, into the wish.
func (w *wish) server(name string, raw json.RawMessage) error {
	of, key, _ := strings.Cut(name, ".")
	full := "config.mcp_servers." + name
	if w.servers == nil {
		w.servers = map[string]*toolServer{}
	}
	s := w.servers[of]
	if s == nil {
		s = &toolServer{headers: map[string]string{}, starts: bridgeStart, answer: bridgeCall}
		w.servers[of] = s
	}
	var err error
	header, isHeader := strings.CutPrefix(key, "http_headers.")
	switch {
	case isHeader:
		var value string
		err = strictjson.Unmarshal(raw, &value)
		s.headers[header] = value
	case key == "url":
		err = strictjson.Unmarshal(raw, &s.url)
	case key == "bearer_token":
		var token string
		err = strictjson.Unmarshal(raw, &token)
		s.headers["Authorization"] = "Bearer " + token
	case key == "enabled":
		var on bool
		err = strictjson.Unmarshal(raw, &on)
		s.off = !on
	case key == "enabled_tools":
		err = strictjson.Unmarshal(raw, &s.only)
	case key == "disabled_tools":
		err = strictjson.Unmarshal(raw, &s.without)
	case key == "startup_timeout_sec":
		err = seconds(raw, &s.starts)
	case key == "tool_timeout_sec":
		err = seconds(raw, &s.answer)
	case key == "required" && (string(raw) == "true" || string(raw) == "false"): // a server that does not answer is always an error
	default:
		return thole.Errorf(thole.CodeUnsupported, "%s is not supported: of a thread's tool servers only those that run in the client's own process are called, by their url", full).
			WithHint("put the server into the agent's own configuration; thole provider config shows what reaches the agent")
	}
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "%s: %s is not a value for it", full, raw)
	}
	return nil
}

func seconds(raw json.RawMessage, into *time.Duration) error {
	var n float64
	if err := strictjson.Unmarshal(raw, &n); err != nil {
		return err
	}
	if n <= 0 || n > maxBridgeWait.Seconds() {
		return thole.Errorf(thole.CodeInvalid, "a time is between 0 and %s", maxBridgeWait)
	}
	*into = time.Duration(n * float64(time.Second))
	return nil
}

// bridged is a tool of a client's server.
type bridged struct {
	at   *mcpclient.Client
	tool string
	wait time.Duration
}

// bridge is a connection that has a thread's tools answered by its client's servers.
type bridge struct {
	conn  *conn
	tools map[string]bridged
}

// meet asks the tool servers of a wish for their tools. A server that cannot be called is
// an error: a thread never lacks a tool in silence.
func (c *conn) meet(ctx context.Context, servers map[string]*toolServer) (tools []event.ClientTool, links map[string]bridged, err error) {
	links = map[string]bridged{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		client, err := c.toolServer(name, servers)
		if err != nil {
			return nil, nil, err
		}
		s := servers[name]
		if s.off {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, s.starts)
		list, err := client.Tools(ctx)
		cancel()
		if err != nil {
			return nil, nil, thole.Errorf(thole.CodeUnavailable, "config.mcp_servers.%s: %w", name, err)
		}
		for _, t := range list {
			if called := name + toolMark + t.Name; s.has(t.Name) {
				tools = append(tools, event.ClientTool{Name: called, Description: t.Description, Schema: compact(t.InputSchema)})
				links[called] = bridged{client, t.Name, s.answer}
			}
		}
	}
	return tools, links, nil
}

// meetAgain is meet for a thread that exists, without a wait. It keeps the tools that it
// began with.
func (c *conn) meetAgain(servers map[string]*toolServer, has []event.ClientTool) (map[string]bridged, error) {
	links := map[string]bridged{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		client, err := c.toolServer(name, servers)
		if err != nil {
			return nil, err
		}
		known := servers[name].off
		for _, t := range has {
			tool, of := strings.CutPrefix(t.Name, name+toolMark)
			if known = known || of; of && t.Tools == nil && servers[name].has(tool) {
				links[t.Name] = bridged{client, tool, servers[name].answer}
			}
		}
		if !known {
			return nil, thole.Errorf(thole.CodeUnsupported, "config.mcp_servers.%s: the thread has no tool of that server; a thread keeps the tools that it began with", name).
				WithHint("start a new thread with it")
		}
	}
	return links, nil
}

// toolServer is the way to one of a client's servers. It is not yet called.
func (c *conn) toolServer(name string, all map[string]*toolServer) (*mcpclient.Client, error) {
	s, at := all[name], "config.mcp_servers."+name
	switch {
	case s.off:
		return nil, nil
	case !c.local():
		return nil, thole.Errorf(thole.CodeForbidden, "%s: a tool server on this machine may be named only by its user, on this machine", at).
			WithHint("connect to the home's socket or use thole app-server on stdio")
	case len(all) > maxBridges:
		return nil, thole.Errorf(thole.CodeInvalid, "config.mcp_servers: at most %d are taken", maxBridges)
	}
	client, err := mcpclient.New(s.url, s.headers, c.srv.cfg.Version)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnsupported, "%s.url: %w", at, err).
			WithHint("put a server elsewhere into the agent's own configuration; thole provider config shows what reaches the agent")
	}
	return client, nil
}

// join has the calls of a thread's tools answered by servers of this connection's client,
// until the connection ends or another one does it.
func (c *conn) join(id thole.ThreadID, links map[string]bridged) {
	if len(links) == 0 {
		return
	}
	b := &bridge{c, links}
	c.srv.mu.Lock()
	c.srv.bridges[id] = b
	c.srv.mu.Unlock()
	c.mu.Lock()
	ended := c.ended
	if !ended {
		c.pumps.Go(func() { defer c.srv.part(id, b); b.serve(id) })
	}
	c.mu.Unlock()
	if ended {
		c.srv.part(id, b)
	}
}

func (s *Server) part(id thole.ThreadID, b *bridge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bridges[id] == b {
		delete(s.bridges, id)
	}
}

func (s *Server) bridgeOf(id thole.ThreadID) *bridge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bridges[id]
}

// answers reports whether an ask is a call of one of the tools.
func (b *bridge) answers(a event.Ask) bool {
	if b == nil || a.Kind != event.AskTool || a.Tool == nil || a.Tool.Namespace != "" {
		return false
	}
	_, ok := b.tools[a.Tool.Name]
	return ok
}
