// Package appserver serves the thread contract (protocol/app) to connections of
// any transport: gates, then the request's serialization key, then the processor.
// It translates between the wire and thread.Service and holds no durable truth:
// what it knows beyond a connection's life it asks the service.
//
// Entry points: New, Server.Serve (one connection) and Server.Close. It never
// opens a store, starts a turn's process or decides who may see a thread.
package appserver

//go:generate go run github.com/tholehq/thole/scripts/gen/members ../../docs/protocol/members.md

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/version"
)

// Config makes a Server. Threads is needed.
type Config struct {
	Threads thread.Service
	// Providers returns what the agent CLIs here can do. It is asked often and must
	// be cheap; nil means that none is known.
	Providers func() []provider.Info
	// Settle waits, not for long, until the providers can be listed; nil does not.
	Settle func()
	// DefaultProvider runs threads that name none; "" lets the server choose.
	DefaultProvider string
	// DefaultProfile is what new threads may do by default; ask if empty.
	DefaultProfile thole.Profile
	// Defaults keep what new threads start with; nil: config writes are refused.
	Defaults Defaults
	// Sources makes threads' sources; nil: threads have no files but the app's.
	Sources source.Resolver
	// Executors reaches threads' executors; nil: there are no commands and no files.
	Executors Executors
	// Inventory says what agents have; nil: nobody knows.
	Inventory Inventory
	// Account says what pays for a provider's models of a user's turns: AccountKey,
	// AccountChatGPT, or "" for nothing; nil: nobody knows.
	Account func(ctx context.Context, who thole.Owner, providerName string) (string, error)
	// Audit records who changes files, opens terminals, and is refused; nil: nobody does.
	Audit *audit.Log
	// Home is sent to clients; Version too.
	Home    string
	Version string
	Now     func() time.Time
	Log     *slog.Logger
}

// Bounds of the contract.
const (
	// maxInFlight is how many requests of one connection may be unanswered; the
	// next one is answered -32001 and has no effect.
	maxInFlight = 128
	// backlog is how many bytes wait for a slow reader before its notifications
	// stay with the thread, which merges deltas and then gives the reader up.
	backlog = 32 << 10
	// maxOutbound bounds what answers to a peer that asks without reading may cost.
	maxOutbound = 16 << 20
	// goodbye bounds how long a connection's last messages may take.
	goodbye = 2 * time.Second
	// farewell is how long a client that was given up because it does not read may take
	// to read why. Its subscriptions are gone then; it costs its socket.
	farewell = 30 * time.Second
)

// Reasons for which the server ends a connection.
const (
	ReasonSlow     = "too slow: the client does not read its notifications"
	ReasonShutdown = "the server is shutting down"
	ReasonGone     = "the server lost its threads"
)

// Server serves any number of connections.
type Server struct {
	cfg     Config
	methods map[string]*method
	names   string // of all methods, for the error that lists them
	lanes   *serial.Queues[lane]
	catalog *catalog
	unnamed atomic.Uint64 // commands without an id of the client's

	mu     sync.Mutex // guards what follows
	conns  map[*conn]struct{}
	nextID uint64
	closed bool
	// bridges answer the calls of threads' tools for their clients.
	bridges map[thole.ThreadID]*bridge
	wg      sync.WaitGroup // Serve calls
}

// lane is what a request is serialized with.
type lane struct {
	kind laneKind
	id   string
}

// laneKind is what a lane's id names.
type laneKind string

const (
	laneThread  laneKind = "thread"
	laneConn    laneKind = "conn"
	lanePath    laneKind = "path"
	laneProcess laneKind = "process"
	laneConfig  laneKind = "config"
	laneAccount laneKind = "account"
	laneRest    laneKind = "rest" // what remains of a request after its own lane
)

// New makes a server.
func New(cfg Config) (*Server, error) {
	if cfg.Threads == nil {
		return nil, thole.Errorf(thole.CodeInternal, "app server: no threads")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Version == "" {
		cfg.Version = version.Version
	}
	if cfg.DefaultProfile == "" {
		cfg.DefaultProfile = thole.ProfileAsk
	}
	if cfg.Providers == nil {
		cfg.Providers = func() []provider.Info { return nil }
	}
	if cfg.Settle == nil {
		cfg.Settle = func() {}
	}
	s := &Server{
		cfg: cfg, conns: map[*conn]struct{}{}, bridges: map[thole.ThreadID]*bridge{}, catalog: &catalog{cfg: &cfg},
		lanes: serial.New[lane](serial.Options{PerKey: 1024}),
	}
	s.register()
	return s, s.undecided()
}

// Serve speaks the contract on one connection until it ends. actor was proven by
// the edge that accepted the stream. When ctx ends, what was published to the
// connection's threads so far is still delivered before it is closed.
func (s *Server) Serve(ctx context.Context, stream jsonrpc.Stream, actor thole.Actor) error {
	if !actor.Valid() {
		_ = stream.Close("no actor")
		return thole.Errorf(thole.CodeUnauthorized, "no actor")
	}
	c, err := s.admit(stream, actor)
	if err != nil {
		_ = stream.Close(ReasonShutdown)
		return err
	}
	defer s.wg.Done()
	stop := context.AfterFunc(ctx, func() { c.finish(ReasonShutdown) })
	defer stop()
	freed := make(chan struct{})
	context.AfterFunc(c.rpc.Context(), func() {
		defer close(freed)
		c.end()
	})
	c.from = audit.SourceOf(ctx)
	err = c.rpc.Run(context.Background())
	<-freed
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	return err
}

func (s *Server) admit(stream jsonrpc.Stream, actor thole.Actor) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, thole.Errorf(thole.CodeUnavailable, "%s", ReasonShutdown)
	}
	s.nextID++
	c := newConn(s, stream, actor, s.nextID)
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	return c, nil
}

// Connections counts the present connections, without those that were given up and may
// still read why.
func (s *Server) Connections() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.rpc.Err() == nil {
			n++
		}
	}
	return n
}

// Close refuses new connections, delivers to the present ones what their threads
// have published, and closes them. Called after the thread machine was closed it
// delivers everything, the last turn/completed included. It may be repeated.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	var bye sync.WaitGroup
	for _, c := range conns {
		bye.Go(func() { c.finish(ReasonShutdown) })
	}
	bye.Wait()
	s.wg.Wait()
	return s.lanes.Close(ctx)
}
