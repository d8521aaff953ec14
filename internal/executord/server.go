// Package executord is the resident service inside an executor, and the only
// place that runs providers. It serves HTTP to the dispatcher with one bearer
// token: turns, their event logs, asks, the workspace, terminals, and an exec-server
// on the same listener. It holds no truth beyond its event logs: the dispatcher reads
// them by cursor and stores what they say. It never sees object-store
// credentials, and it never decides which turn runs.
package executord

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executord/terminal/shell"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// Dirs are an executor's directories. Workspace is the same path for the
// thread's life, because providers tie resume to it.
type Dirs struct {
	Workspace string // synced; what the agent sees as its own
	Data      string // conversations of the CLIs; synced with the workspace, and no part of it
	State     string // event logs; survives executord, never synced
	Auth      string // credentials; never synced
	Home      string // the CLIs' HOME
	// Work is where agents, shells and terminals begin, "" for the workspace.
	Work string
	Tmp  string
}

func (d Dirs) work() string { return cmp.Or(d.Work, d.Workspace) }

// Config makes a Server.
type Config struct {
	Dirs      Dirs
	Token     string
	Providers []provider.Provider
	Version   string
	// Note is said at the beginning of every agent's turn, "" is nothing.
	Note   string
	Logger *slog.Logger
	Now    func() time.Time
	// Exec serves the exec-server protocol on /exec and /, nil leaves it out.
	Exec http.Handler
	// Commands counts the programs that run there; nil: nobody does.
	Commands func() int
	// Workspace serves /workspace/*, nil leaves it out.
	Workspace http.Handler
	// Box is how to make the box in which all but executord runs; nil: no box.
	Box *wire.Box
	// Tools are what of the user's shell programs have.
	Tools wire.Tools
	// Proxy is the way of a box to the network; nil: no way.
	Proxy *egress.Proxy
	// Gateway is the socket of the model gateway, "" for none.
	Gateway string
	// Network counts what the executor's processes send over the network; nil: nobody does.
	Network Network
	// Rest is called when the start, or the last turn, is over for a moment: the process
	// gives back what it does not need to wait. Nil: it keeps it.
	Rest func()
	// Terminals bounds the terminals; zero fields have their defaults.
	Terminals shell.Config
}

// Server is executord.
type Server struct {
	cfg       Config
	logger    *slog.Logger
	now       func() time.Time
	sessions  *sessions
	runs      *runs
	jobs      *jobs
	terminals *shell.Server
	boxes     *boxes
	way       *way
	token     [32]byte
	boot      string
	ports     chan struct{} // one for each connection into the box
	started   time.Time
	release   func() // of what is prepared for the next CLI
	rest      *time.Timer
}

// restTime is how long nothing ended before it is time to rest.
const restTime = 2 * time.Second

// New opens the event logs of a former life and returns a server ready to serve.
func New(cfg Config) (*Server, error) {
	if cfg.Token == "" {
		return nil, errors.New("executord: no token")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Commands == nil {
		cfg.Commands = func() int { return 0 }
	}
	byName := map[string]provider.Provider{}
	for _, p := range cfg.Providers {
		byName[p.Name()] = p
	}
	s := &Server{
		cfg: cfg, logger: cfg.Logger, now: cfg.Now, token: sha256.Sum256([]byte(cfg.Token)),
		boot: thole.NewID[string](cfg.Now()), started: cfg.Now(), ports: make(chan struct{}, maxPorts),
	}
	set := newSettings(cfg.Dirs, cfg.Providers)
	var err error
	if s.way, err = newWay(cfg.Gateway, wire.GatewayProof(cfg.Token), cfg.Proxy); err != nil {
		return nil, err
	}
	if err := plant(cfg.Dirs.Home, cfg.Tools.Seeds); err != nil {
		s.logger.Warn("some tools of the user are not in the agent's home", "err", err)
	}
	s.boxes = newBoxes(cfg.Box, cfg.Proxy, s.way, cfg.Dirs, set)
	s.sessions = &sessions{providers: byName, dirs: cfg.Dirs, boxes: s.boxes, way: s.way, set: set, environ: s.environ, attended: s.Attended, working: s.Working, warm: map[thole.ThreadID]warmSession{}}
	if s.runs, err = openRuns(filepath.Join(cfg.Dirs.State, "runs")); err != nil {
		return nil, err
	}
	if s.jobs, err = openJobs(filepath.Join(cfg.Dirs.State, "jobs"), s.runJob); err != nil {
		return nil, err
	}
	cfg.Terminals.Dir, cfg.Terminals.Env = cfg.Dirs.work(), s.environ()
	cfg.Terminals.Box = s.boxes.shared
	s.terminals = shell.NewServer(cfg.Terminals)
	s.release = process.Prepare()
	if cfg.Rest == nil {
		cfg.Rest = func() {}
	}
	s.rest = time.AfterFunc(restTime, cfg.Rest)
	return s, nil
}

// Close stops every turn, ends the terminals and the CLIs and closes the logs.
func (s *Server) Close() error {
	s.terminals.Close()
	s.jobs.close()
	s.runs.stopAll()
	s.sessions.closeAll()
	s.boxes.close()
	s.release()
	defer s.rest.Stop() // after the last run
	return errors.Join(s.runs.closeAll(), s.way.close())
}

// Box is where programs of this executor run, nil where there are no walls.
func (s *Server) Box() (*box.Box, error) { return s.boxes.shared() }

// environ is what a program finds, without credentials of an agent.
func (s *Server) environ() map[string]string {
	return s.boxes.environ(s.cfg.Dirs.with(s.cfg.Tools.Env))
}

// Guarded are the paths of a person's repositories that boxes show read-only. A box that
// has ended is made again: its guards are what keeps files, too.
func (s *Server) Guarded() []string {
	if _, err := s.boxes.shared(); err != nil {
		return []string{"/"}
	}
	return s.boxes.guarded()
}

// Environ is what programs of this executor find.
func (s *Server) Environ() (env []string) {
	for k, v := range s.environ() {
		env = append(env, k+"="+v)
	}
	return env
}

// Attended reports whether a terminal is open.
func (s *Server) Attended() bool { return s.terminals.Open() > 0 }

// Working reports whether the command of a job runs.
func (s *Server) Working() bool {
	_, running := s.jobs.ids()
	return running > 0
}

// Handler serves the HTTP interface. Every route but /healthz wants the token.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /run", jsonhttp.Handle(maxBody, s.run))
	mux.Handle("POST /cancel", jsonhttp.Handle(maxBody, s.cancel))
	mux.Handle("POST /steer", jsonhttp.Handle(maxBody, s.steer))
	mux.Handle("POST /human-loop/reply", jsonhttp.Handle(maxBody, s.reply))
	mux.Handle("POST /ack", jsonhttp.Handle(maxBody, s.ack))
	mux.Handle("POST /jobs", jsonhttp.Handle(maxBody, s.startJob))
	mux.Handle("POST /jobs/end", jsonhttp.Handle(maxBody, s.endJob))
	mux.HandleFunc("GET /jobs/{job}", s.job)
	mux.HandleFunc("GET /jobs/{job}/output", s.output)
	mux.HandleFunc("GET /status", s.status)
	mux.Handle("POST /background", jsonhttp.Handle(maxBody, s.background))
	mux.HandleFunc("GET /network", s.network)
	mux.HandleFunc("GET /inventory", s.inventory)
	mux.Handle("POST /mcp", jsonhttp.Handle(maxBody, s.callServer))
	mux.Handle("POST /network", jsonhttp.Handle(maxBody, s.setNetwork))
	mux.HandleFunc("GET /ports/{port}", s.port)
	mux.HandleFunc("GET /runs/{run}/events", s.events)
	mux.HandleFunc("GET /human-loop/pending", s.pending)
	mux.HandleFunc("GET /runs/{run}/todos", s.todos)
	mux.HandleFunc("GET /runs/{run}/todos/events", s.todoEvents)
	mux.HandleFunc("GET /terminal", s.terminal)
	mux.HandleFunc("GET /ttyd", s.terminal)
	if s.cfg.Workspace != nil {
		mux.Handle("/workspace/", s.cfg.Workspace)
	}
	if s.cfg.Exec != nil {
		// Clients of a unix socket name no path.
		mux.Handle("GET /exec", s.cfg.Exec)
		mux.Handle("GET /{$}", s.cfg.Exec)
	}
	outer := http.NewServeMux()
	outer.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	outer.Handle("/", s.authenticated(mux))
	return outer
}

func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(given))
		if !ok || subtle.ConstantTimeCompare(sum[:], s.token[:]) != 1 {
			jsonhttp.Error(w, thole.Errorf(thole.CodeUnauthorized, "missing or wrong executor token"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// maxBody bounds a request; a prompt may carry images.
const maxBody = 64 << 20
