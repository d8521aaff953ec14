// Package mcp is the tool server that every agent has: job_run, job_status, ask_user,
// thread_start, thread_send and goal_update, and at a path of its own the server of the tools that the
// thread's client runs itself, over the Model Context Protocol as JSON over HTTP. It is
// reached through the gateway, which has proven which thread and which open turn asks,
// and it gives that turn no more than its thread may do.
//
// It keeps no session and no durable truth: each request is judged by itself, what it asks for is
// a job, an ask or a thread like any other. Everything that arrives is hostile: bodies,
// texts and rates are bounded, members are known by their exact names.
package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/internal/version"
)

// Name is what agents know the server by.
const Name = "thole"

// Bounds.
const (
	maxBody     = 256 << 10
	maxCalls    = 16 // of one thread at a time
	maxThreads  = 4096
	perSecond   = 10
	burst       = 40
	keepAlive   = 10 * time.Second
	maxQuestion = 8 << 10
	maxOptions  = 20
	maxOption   = 500
	maxCommand  = 32 << 10
	maxMessage  = 96 << 10
	maxChildren = 8
	maxTimeout  = 24 * time.Hour
)

// Threads is what is asked of threads.
type Threads interface {
	Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error)
	Turn(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error)
	Create(ctx context.Context, actor thole.Actor, p thread.Create) (fold.Thread, error)
	StartTurn(ctx context.Context, actor thole.Actor, p thread.StartTurn) (fold.Turn, error)
	Enqueue(ctx context.Context, actor thole.Actor, p thread.Enqueue) (event.Message, error)
	ReportGoal(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn thole.TurnID, status event.GoalStatus, note string) (event.Goal, error)
}

// Jobs is what is asked of jobs.
type Jobs interface {
	Submit(ctx context.Context, actor thole.Actor, p delivery.Submit) (delivery.Job, bool, error)
	Job(ctx context.Context, actor thole.Actor, id thole.JobID) (delivery.Job, *delivery.Batch, error)
	Jobs(ctx context.Context, actor thole.Actor, f delivery.JobFilter) ([]delivery.Job, error)
}

// Config makes a Server.
type Config struct {
	Threads Threads
	Jobs    Jobs
	// Ask puts a question of a running turn to its thread and waits for the answer.
	Ask func(ctx context.Context, turn thole.TurnID, ask event.Ask) (event.Answer, error)
	// Children counts the threads that the agents of a thread started.
	Children func(ctx context.Context, id thole.ThreadID) (int, error)
	// Providers are those that can run here.
	Providers func() []provider.Info
	// Inside says that commands can run in the box of a thread.
	Inside bool
	Now    func() time.Time
	Log    *slog.Logger
}

// Server answers agents. It is safe for concurrent use.
type Server struct {
	cfg Config

	mu sync.Mutex // guards what follows
	by map[thole.ThreadID]*caller
}

// caller is what one thread uses of the server.
type caller struct {
	rate *rate.Limiter
	open int
	last time.Time
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, by: map[thole.ThreadID]*caller{}}
}

var _ gateway.Tools = (*Server)(nil)

// enter lets a call of a thread in; leave is called when it is over.
func (s *Server) enter(id thole.ThreadID) (leave func(), ok bool) {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.by[id]
	if c == nil {
		if len(s.by) >= maxThreads { // those that rest need no memory
			for other, o := range s.by {
				if o.open == 0 && now.Sub(o.last) > time.Minute {
					delete(s.by, other)
				}
			}
		}
		c = &caller{rate: rate.NewLimiter(perSecond, burst)}
		s.by[id] = c
	}
	c.last = now
	if (c.open >= maxCalls || !c.rate.AllowN(now, 1)) && !unguarded.Build {
		return nil, false
	}
	c.open++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.open--
	}, true
}

// message is a request or a notification of the protocol.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// Error codes of JSON-RPC.
const (
	badJSON    = -32700
	badMessage = -32600
	noMethod   = -32601
	badParams  = -32602
)

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

var null = json.RawMessage("null")

// ServeTools implements gateway.Tools.
func (s *Server) ServeTools(w http.ResponseWriter, r *http.Request, c gateway.Claim) {
	if r.Method != http.MethodPost { // it has no stream of its own
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	leave, ok := s.enter(c.Thread)
	if !ok {
		w.Header().Set("Retry-After", "1")
		write(w, http.StatusTooManyRequests, reply{ID: null, Error: &failure{badMessage, "this thread calls its tools too often"}})
		return
	}
	defer leave()
	var m message
	if err := strictjson.Read(http.MaxBytesReader(w, r.Body, maxBody), &m); err != nil {
		write(w, http.StatusBadRequest, reply{ID: null, Error: &failure{badJSON, "the body is not one message of at most 256 KiB"}})
		return
	}
	if m.Version != "2.0" || len(m.ID) > 256 || len(m.ID) > 0 && (m.ID[0] == '{' || m.ID[0] == '[') {
		write(w, http.StatusBadRequest, reply{ID: null, Error: &failure{badMessage, "the body is not a message of JSON-RPC 2.0"}})
		return
	}
	if len(m.ID) == 0 { // a notification, or an answer to what was never asked
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.answer(w, r, c, m)
}

// versions of the protocol that this server speaks, the newest last.
var versions = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, "2025-11-25": true}

const newest = "2025-06-18"

func (s *Server) answer(w http.ResponseWriter, r *http.Request, c gateway.Claim, m message) {
	if r.RequestURI == gateway.ClientToolsPath {
		s.answerClient(w, r, c, m)
		return
	}
	out := reply{ID: m.ID}
	switch m.Method {
	case "initialize":
		out.Result, out.Error = hello(m.Params, Name, instructions)
	case "ping":
		out.Result = struct{}{}
	case "tools/list":
		out.Result = map[string]any{"tools": list}
	case "tools/call":
		s.call(w, r, c, m)
		return
	default:
		out.Error = &failure{noMethod, "this server has no such method"}
	}
	write(w, http.StatusOK, out)
}

// hello answers initialize.
func hello(params json.RawMessage, name, instructions string) (any, *failure) {
	var p struct {
		Version string `json:"protocolVersion"`
	}
	if err := strictjson.Unmarshal(params, &p); err != nil {
		return nil, &failure{badParams, "initialize: the parameters are not valid"}
	}
	if !versions[p.Version] {
		p.Version = newest
	}
	return map[string]any{
		"protocolVersion": p.Version, "capabilities": map[string]any{"tools": map[string]any{}},
		"serverInfo": map[string]string{"name": name, "version": version.Version}, "instructions": instructions,
	}, nil
}

// write answers with one message.
func write(w http.ResponseWriter, status int, out reply) {
	out.Version = "2.0"
	body, err := json.Marshal(out)
	if err != nil {
		http.Error(w, "encode answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
