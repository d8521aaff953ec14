package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// Config is what an editor's connection needs.
type Config struct {
	// Dial connects to the owner of the home, with the contract's extensions, and starts
	// it when there is none.
	Dial func(context.Context, appclient.Options) (*appclient.Client, error)
	// Keys gives the owner the keys that this process has for a thread's agent.
	Keys func(ctx context.Context, thread, provider string) error
	// Logins are agents that have none yet.
	Logins func(context.Context) ([]Login, error)
	// Model and Profile are those of new sessions, "" for the user's defaults.
	Model, Profile string
	// Away says that the server is on another machine, which does not see the editor's
	// directory: sessions begin without files.
	Away bool
	// WithoutMCP opens sessions without the MCP servers that the editor names.
	WithoutMCP bool
}

// Login is an agent without credentials, and the command line that helps.
type Login struct {
	Provider, Title string
	Args            []string
}

// server is one editor's connection.
type server struct {
	cfg   Config
	rpc   *jsonrpc.Conn
	owner *owner
	ctx   context.Context
	work  sync.WaitGroup
	can   abilities

	mu       sync.Mutex // guards what follows
	greeted  bool
	sessions map[string]*session
}

// abilities are the editor's. They are set before it can open a session.
type abilities struct{ notices, compaction, forms, terminals, loginTerminal bool }

// backlog bounds what waits for an editor that does not read; then its sessions wait.
const backlog = 256 << 10

// Serve answers an editor until it leaves or ctx ends. Turns that run go on.
func Serve(ctx context.Context, stream jsonrpc.Stream, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{cfg: cfg, owner: &owner{dial: cfg.Dial}, ctx: ctx, sessions: map[string]*session{}}
	s.rpc = jsonrpc.NewConn(marked{stream}, jsonrpc.Options{
		Handler: s, Overflow: jsonrpc.OverflowBlock, OutboundBytes: backlog,
		Limits: jsonrpc.Limits{Values: -1, LastKeyWins: true},
		OnMalformed: func(e *jsonrpc.DecodeError) jsonrpc.Reaction {
			return jsonrpc.Answer(jsonrpc.Errorf(jsonrpc.CodeParse, "unreadable message: %v", e))
		},
	})
	ended := make(chan error, 1)
	go func() { ended <- s.rpc.Run(ctx) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done(): // nothing wakes a reader of standard input: it is not waited for
		s.rpc.Close("stopped")
	}
	cancel()
	s.work.Wait()
	s.owner.close()
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// marked is a stream with the member that says which JSON-RPC it is.
type marked struct{ jsonrpc.Stream }

func (m marked) Write(ctx context.Context, msg []byte) error {
	return m.Stream.Write(ctx, append([]byte(`{"jsonrpc":"2.0",`), bytes.TrimPrefix(msg, []byte("{"))...))
}

// put makes a session known and returns the one of the same thread before it.
func (s *server) put(n *session) (before *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.sessions[n.id]
	s.sessions[n.id] = n
	return before
}

func (s *server) drop(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[n.id] == n {
		delete(s.sessions, n.id)
	}
}

func (s *server) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// Request implements jsonrpc.Handler. What waits for anything runs elsewhere: in its
// session, in the order of arrival, or in a goroutine of its own.
func (s *server) Request(r *jsonrpc.Request) {
	s.mu.Lock()
	greeted := s.greeted
	if r.Method == "initialize" {
		s.greeted = true
	}
	s.mu.Unlock()
	if greeted == (r.Method == "initialize") {
		_ = r.Error(jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s: initialize comes first, and once", r.Method))
		return
	}
	var p sessionParams
	if r.Method != "initialize" && r.Method != "session/list" && r.Method != "authenticate" {
		if err := strictjson.Unmarshal(r.Params, &p); err != nil {
			_ = r.Error(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unreadable params of %s: %v", r.Method, err))
			return
		}
	}
	switch r.Method {
	case "initialize":
		s.initialize(r)
	case "authenticate":
		s.alone(r, s.authenticate)
	case "session/new":
		s.alone(r, func(ctx context.Context, r *jsonrpc.Request) error { return s.newSession(ctx, r, p) })
	case "session/load":
		s.alone(r, func(ctx context.Context, r *jsonrpc.Request) error { return s.join(ctx, r, p, true) })
	case "session/resume":
		s.alone(r, func(ctx context.Context, r *jsonrpc.Request) error { return s.join(ctx, r, p, false) })
	case "session/list":
		s.alone(r, s.list)
	case "session/delete":
		s.alone(r, func(ctx context.Context, r *jsonrpc.Request) error { return s.remove(ctx, r, p.SessionID) })
	case "session/close":
		s.in(r, p.SessionID, func(n *session) { n.close(r) })
	case "session/prompt":
		s.in(r, p.SessionID, func(n *session) { n.prompt(r, p.Prompt) })
	case "session/set_mode":
		s.in(r, p.SessionID, func(n *session) { n.setMode(r, p.ModeID) })
	case "session/set_config_option":
		s.in(r, p.SessionID, func(n *session) { n.setOption(r, p) })
	default:
		_ = r.Error(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "unknown method %s", r.Method))
	}
}

// Notification implements jsonrpc.Handler.
func (s *server) Notification(n *jsonrpc.Notification) {
	switch n.Method {
	case "session/cancel":
		var p sessionParams
		if strictjson.Unmarshal(n.Params, &p) == nil {
			if one := s.session(p.SessionID); one != nil {
				one.later(one.cancelAll)
			}
		}
	case "$/cancel_request":
		var p struct {
			ID jsonrpc.ID `json:"requestId"`
		}
		if strictjson.Unmarshal(n.Params, &p) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, one := range s.sessions {
			one.later(func() { one.cancelRequest(p.ID) })
		}
	}
}

// alone runs a request next to others.
func (s *server) alone(r *jsonrpc.Request, f func(context.Context, *jsonrpc.Request) error) {
	s.work.Go(func() {
		if err := f(s.ctx, r); err != nil {
			_ = r.Error(toWire(err))
		}
	})
}

// in runs a request in its session.
func (s *server) in(r *jsonrpc.Request, id string, f func(*session)) {
	n := s.session(id)
	if n == nil {
		_ = r.Error(jsonrpc.Errorf(codeNotFound, "session %q is not open. Open it with session/load or session/resume", id))
		return
	}
	if err := n.do(func() { f(n) }); err != nil {
		_ = r.Error(toWire(err))
	}
}

func (s *server) initialize(r *jsonrpc.Request) {
	var p initializeParams
	if err := strictjson.Unmarshal(r.Params, &p); err != nil {
		_ = r.Error(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unreadable params of initialize: %v", err))
		return
	}
	there := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	c := p.Capabilities
	s.can = abilities{there(c.Session.Notices), there(c.Session.Compaction), there(c.Elicitation.Form), c.Meta.TerminalOutput, c.Auth.Terminal}
	s.alone(r, func(ctx context.Context, r *jsonrpc.Request) error {
		missing, err := s.cfg.Logins(ctx)
		if err != nil {
			return err
		}
		none := object{}
		return r.Reply(object{
			"protocolVersion": protocolVersion,
			"agentInfo":       object{"name": "thole", "title": "thole", "version": version.Version},
			"agentCapabilities": object{
				"loadSession":         true,
				"promptCapabilities":  object{"image": true, "audio": false, "embeddedContext": true},
				"mcpCapabilities":     object{"http": false, "sse": false},
				"sessionCapabilities": object{"list": none, "resume": none, "close": none, "delete": none},
			},
			"authMethods": s.authMethods(missing),
		})
	})
}

// authMethods name agents that have no login. thole does not log in on the editor's pipe:
// the user runs the command, or the editor in a terminal of its own.
func (s *server) authMethods(missing []Login) []object {
	out := make([]object, 0, len(missing))
	for _, l := range missing {
		line := "thole"
		for _, a := range l.Args {
			line += " " + a
		}
		m := object{"id": l.Provider, "name": "Log in to " + l.Title, "description": "Run: " + line}
		if s.can.loginTerminal {
			m["type"], m["args"] = "terminal", l.Args
		}
		out = append(out, m)
	}
	return out
}

// authenticate says whether an agent has its login now.
func (s *server) authenticate(ctx context.Context, r *jsonrpc.Request) error {
	var p struct {
		Method string `json:"methodId"`
	}
	if err := strictjson.Unmarshal(r.Params, &p); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unreadable params of authenticate: %v", err)
	}
	missing, err := s.cfg.Logins(ctx)
	if err != nil {
		return err
	}
	for _, m := range s.authMethods(missing) {
		if m["id"] == p.Method {
			return withData(codeAuth, m["name"].(string), m["description"].(string), string(thole.CodeUnauthorized))
		}
	}
	return r.Reply(object{})
}

// fits refuses what a session cannot have: a member that changes what an agent can reach
// is honoured or refused, never dropped.
func (s *server) fits(p sessionParams) error {
	if !filepath.IsAbs(p.Cwd) {
		return thole.Errorf(thole.CodeInvalid, "cwd %q is not an absolute path", p.Cwd)
	}
	for _, dir := range p.Directories {
		if !sameDir(dir, p.Cwd) {
			return thole.Errorf(thole.CodeUnsupported, "additionalDirectories: a session works in its cwd alone; %s is another directory", dir).
				WithHint("open a session of its own for it, or one in a directory above both")
		}
	}
	return nil
}

func sameDir(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// newSession makes a thread that works in the editor's directory. Its id is chosen here,
// so that a repeated call makes no second one.
func (s *server) newSession(ctx context.Context, r *jsonrpc.Request, p sessionParams) error {
	if err := s.fits(p); err != nil {
		return err
	}
	servers, err := s.start(ctx, p.Cwd, p.Servers)
	if err != nil {
		return err
	}
	if err := s.begin(ctx, r, p, servers); err != nil {
		servers.close()
		return err
	}
	return nil
}

func (s *server) begin(ctx context.Context, r *jsonrpc.Request, p sessionParams, servers *servers) error {
	id := thole.NewID[string](time.Now())
	start := app.ThreadStartParams{ThreadID: &id, Source: &app.SourceChoice{Kind: string(thole.SourceHere), Dir: p.Cwd}}
	if servers != nil {
		start.Config = servers.config(servers.programs)
	}
	if s.cfg.Away {
		start.Source = &app.SourceChoice{Kind: string(thole.SourceEmpty)}
	}
	if s.cfg.Model != "" {
		start.Model = &s.cfg.Model
	}
	if s.cfg.Profile != "" {
		approval, sandbox, err := words(s.cfg.Profile)
		if err != nil {
			return err
		}
		word := map[string]string{"readOnly": "read-only", "workspaceWrite": "workspace-write", "dangerFullAccess": "danger-full-access"}[sandbox]
		start.ApprovalPolicy, start.Sandbox = encode(approval), &word
	}
	view, err := call[app.ThreadView](ctx, s.owner, "thread/start", start)
	if class(err) == thole.CodeConflict { // of the call before, whose answer was lost
		var got app.ThreadResult
		got, err = call[app.ThreadResult](ctx, s.owner, "thread/read", app.ThreadReadParams{ThreadID: id})
		view.Thread = got.Thread
	}
	if err != nil {
		return err
	}
	_, _ = call[app.UnsubscribeResult](ctx, s.owner, "thread/unsubscribe", app.ThreadParams{ThreadID: id})
	if err := s.cfg.Keys(ctx, id, view.Thread.ModelProvider); err != nil {
		return err
	}
	s.answerOpen(r, id, false, object{"sessionId": id}, p, servers)
	return nil
}

// answerOpen opens a session and answers when it is.
func (s *server) answerOpen(r *jsonrpc.Request, id string, replay bool, out object, p sessionParams, servers *servers) {
	s.open(id, replay, servers, func(n *session, err error) {
		if err != nil {
			_ = r.Error(toWire(err))
			return
		}
		out["modes"], out["configOptions"] = n.modes(), n.options()
		_ = r.Reply(out)
		switch {
		case servers != nil:
			for _, text := range servers.problems {
				n.warn(text)
			}
		case len(p.Servers) > 0:
			n.warn("The agent does not get the editor's MCP servers (--without-mcp).")
		}
	})
}

// join opens a thread that is there, with its history or without.
func (s *server) join(ctx context.Context, r *jsonrpc.Request, p sessionParams, replay bool) error {
	if err := s.fits(p); err != nil {
		return err
	}
	got, err := call[app.ThreadResult](ctx, s.owner, "thread/read", app.ThreadReadParams{ThreadID: p.SessionID})
	if err != nil {
		return err
	}
	if t := got.Thread; !s.cfg.Away && !sameDir(p.Cwd, t.Cwd) {
		return thole.Errorf(thole.CodeInvalid, "session %s works in %s, not in %s", t.ID, t.Cwd, p.Cwd).WithHint("open it from there")
	}
	if err := s.cfg.Keys(ctx, p.SessionID, got.Thread.ModelProvider); err != nil {
		return err
	}
	servers, err := s.start(ctx, p.Cwd, p.Servers)
	if err == nil {
		err = servers.known(ctx, p.SessionID)
	}
	if err != nil {
		servers.close()
		return err
	}
	s.answerOpen(r, p.SessionID, replay, object{}, p, servers)
	return nil
}

func (s *server) list(ctx context.Context, r *jsonrpc.Request) error {
	var p listParams
	if len(r.Params) > 0 {
		if err := strictjson.Unmarshal(r.Params, &p); err != nil {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unreadable params of session/list: %v", err)
		}
	}
	newest := "updated_at"
	q := app.ThreadListParams{PageParams: app.PageParams{Cursor: p.Cursor}, SortKey: &newest}
	if p.Cwd != nil {
		q.Cwd = encode(*p.Cwd)
	}
	got, err := call[app.ThreadListResult](ctx, s.owner, "thread/list", q)
	if err != nil {
		return err
	}
	list := make([]sessionInfo, 0, len(got.Data))
	for _, t := range got.Data {
		list = append(list, sessionInfo{t.ID, t.Cwd, title(t), stamp(t.UpdatedAt)})
	}
	out := object{"sessions": list}
	if got.NextCursor != nil {
		out["nextCursor"] = *got.NextCursor
	}
	return r.Reply(out)
}

func (s *server) remove(ctx context.Context, r *jsonrpc.Request, id string) error {
	if _, err := call[app.Empty](ctx, s.owner, "thread/delete", app.ThreadParams{ThreadID: id}); err != nil {
		return err
	}
	if n := s.session(id); n != nil {
		n.stop()
	}
	return r.Reply(object{})
}
