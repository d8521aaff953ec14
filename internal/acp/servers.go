package acp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// servers are the MCP servers that an editor names for a session: programs, which run where
// the editor runs and as its user, as if it had started them itself. No agent and no box
// starts them. The owner of the home lists and calls their tools over the loopback, with a
// token that only it is given; the thread has them as tools of its client.
type servers struct {
	srv      *server
	programs []*program
	problems []string // for the user to read
	listener net.Listener
	http     *http.Server
	token    string
	again    chan struct{} // asks keep to name the servers once more

	mu   sync.Mutex // guards what follows
	open *session   // nil until the session is open
}

// Bounds of an editor's servers.
const (
	maxServers    = 32
	maxToolResult = 16 << 20
	// personWaits is how long a call may take: a person may be asked first. What the agent
	// waits is set by the owner (asks.tool).
	personWaits = 3600
)

// wantedServer is a server as an editor names it.
type wantedServer struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

// start starts the servers that an editor names. One that does not start or answer is a
// problem to be shown, and the session does without it. Nil for none.
func (s *server) start(ctx context.Context, cwd string, named []json.RawMessage) (*servers, error) {
	if len(named) == 0 || s.cfg.WithoutMCP {
		return nil, nil
	}
	if s.cfg.Away {
		return nil, thole.Errorf(thole.CodeUnsupported, "mcpServers: a server on another machine does not reach the MCP servers of the editor; it names %d", len(named)).
			WithHint("turn them off in the editor, or start thole acp --without-mcp")
	}
	if len(named) > maxServers {
		return nil, thole.Errorf(thole.CodeInvalid, "mcpServers: at most %d are taken", maxServers)
	}
	m := &servers{srv: s, token: rand.Text(), again: make(chan struct{}, 1)}
	wanted := make([]wantedServer, len(named))
	taken := map[string]bool{}
	for i, raw := range named {
		w := &wanted[i]
		if err := strictjson.Unmarshal(raw, w); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "mcpServers[%d]: %w", i, err)
		}
		switch {
		case w.Type != "" && w.Type != "stdio":
			return nil, thole.Errorf(thole.CodeUnsupported, "mcpServers: %s is a server of type %s; those that are programs are started", w.Name, w.Type).
				WithHint("turn it off in the editor, or start thole acp --without-mcp")
		case w.Name == "" || w.Command == "":
			return nil, thole.Errorf(thole.CodeInvalid, "mcpServers[%d]: a server has a name and a command", i)
		}
		w.Name = free(identifier(w.Name), taken)
	}
	m.programs = make([]*program, len(wanted))
	problems := make([]string, len(wanted))
	var all sync.WaitGroup
	for i, w := range wanted {
		all.Go(func() {
			p, err := startProgram(ctx, w, cwd)
			if err != nil {
				problems[i] = "The MCP server " + w.Name + " cannot be used: " + err.Error()
				return
			}
			m.programs[i] = p
		})
	}
	all.Wait()
	m.programs = slices.DeleteFunc(m.programs, func(p *program) bool { return p == nil })
	m.problems = slices.DeleteFunc(problems, func(text string) bool { return text == "" })
	if err := m.serve(); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// identifier is a name as models take it.
func identifier(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
	if clean == "mcp" || strings.HasPrefix(clean, "mcp__") { // which models read as something else
		clean = "editor_" + clean
	}
	return clean
}

// free is the name, or another one that is not taken.
func free(name string, taken map[string]bool) string {
	for taken[name] {
		name += "_"
	}
	taken[name] = true
	return name
}

// serve begins to answer the owner.
func (m *servers) serve() (err error) {
	if m.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "mcpServers: %w", err)
	}
	m.http = &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	m.srv.work.Go(func() { _ = m.http.Serve(m.listener) })
	return nil
}

// close ends the programs. Calls that run end with them.
func (m *servers) close() {
	if m == nil {
		return
	}
	if m.http != nil {
		_ = m.http.Close()
	}
	var all sync.WaitGroup
	for _, p := range m.programs {
		all.Go(p.stop)
	}
	all.Wait()
}

// config names servers of the session in the words of the contract; nil for none.
func (m *servers) config(some []*program) json.RawMessage {
	if m == nil || len(some) == 0 {
		return nil
	}
	all := object{}
	for _, p := range some {
		all[p.name] = object{"url": "http://" + m.listener.Addr().String() + "/" + p.name, "bearer_token": m.token, "tool_timeout_sec": personWaits}
	}
	return encode(object{"mcp_servers": all})
}

// known drops the servers of which a thread that is there has no tool: it keeps those that
// it began with.
func (m *servers) known(ctx context.Context, thread string) error {
	if m == nil {
		return nil
	}
	var kept []*program
	for _, p := range m.programs {
		if len(p.tools) == 0 {
			p.stop()
			continue
		}
		switch err := m.name(ctx, m.srv.owner, thread, []*program{p}); {
		case err == nil:
			kept = append(kept, p)
		case class(err) == thole.CodeUnsupported:
			m.problems = append(m.problems, "The agent of this session has no tools of the MCP server "+p.name+": a session keeps the tools that it began with.")
			p.stop()
		default:
			return err
		}
	}
	m.programs = kept
	return nil
}

// name gives the owner the addresses of servers for a thread. It uses them while that
// connection lasts, unless another editor names its own.
func (m *servers) name(ctx context.Context, o *owner, thread string, some []*program) error {
	_, err := call[app.ThreadResumeResult](ctx, o, "thread/resume", app.ThreadResumeParams{ThreadID: thread, ExcludeTurns: true, Config: m.config(some)})
	if err == nil {
		_, err = call[app.UnsubscribeResult](ctx, o, "thread/unsubscribe", app.ThreadParams{ThreadID: thread})
	}
	return err
}

// keep names the servers to whichever owner the home has, until ctx ends.
func (m *servers) keep(ctx context.Context, thread string) {
	if m == nil || len(m.programs) == 0 {
		return
	}
	o := &owner{dial: func(ctx context.Context, opt appclient.Options) (*appclient.Client, error) {
		opt.OptOut = append(slices.Clone(unwanted), "item/agentMessage/delta", "item/reasoning/textDelta", "item/reasoning/summaryTextDelta", "item/commandExecution/outputDelta", "item/plan/delta")
		return m.srv.cfg.Dial(ctx, opt)
	}}
	defer o.close()
	for pause := redial.Begin(); ctx.Err() == nil; {
		if err := m.name(ctx, o, thread, m.programs); err != nil {
			if pause.Wait(ctx) != nil {
				return
			}
			continue
		}
		pause.Reset()
		c, err := o.client(ctx)
		if err != nil {
			continue
		}
		select {
		case <-c.Done():
		case <-m.again:
		case <-ctx.Done():
		}
	}
}

// renew names the servers once more: a call went to clients, so nobody's servers are known.
func (m *servers) renew() {
	if m == nil {
		return
	}
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// belongs says which session the calls are of.
func (m *servers) belongs(n *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = n
}

func (m *servers) session() *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// ServeHTTP answers the owner: one message of the Model Context Protocol, and its answer.
func (m *servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+m.token)) != 1 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	i := slices.IndexFunc(m.programs, func(p *program) bool { return "/"+p.name == r.URL.Path })
	var in struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if i < 0 || r.Method != http.MethodPost || strictjson.Read(http.MaxBytesReader(w, r.Body, maxToolResult), &in) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if len(in.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	out := object{"jsonrpc": "2.0", "id": in.ID}
	result, err := m.answer(r.Context(), m.programs[i], in.Method, in.Params)
	if err != nil {
		out["error"] = object{"code": -32603, "message": err.Error()}
	} else {
		out["result"] = result
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (m *servers) answer(ctx context.Context, p *program, method string, params json.RawMessage) (any, error) {
	switch method {
	case "initialize":
		return object{"protocolVersion": mcpVersion, "capabilities": object{"tools": object{}}, "serverInfo": object{"name": p.name, "version": "1"}}, nil
	case "tools/list":
		return object{"tools": p.tools}, nil
	case "tools/call":
		var call struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := strictjson.Unmarshal(params, &call); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "unreadable call: %w", err)
		}
		if n := m.session(); n == nil || !n.consents(ctx, p.name+"__"+call.Name, call.Arguments) {
			return object{"isError": true, "content": []object{{"type": "text", "text": "The user did not allow this call."}}}, nil
		}
		return p.call(ctx, call.Name, call.Arguments)
	}
	return nil, thole.Errorf(thole.CodeUnsupported, "unknown method %s", method)
}
