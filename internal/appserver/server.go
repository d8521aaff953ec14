// Package appserver serves the thread contract (protocol/app) to connections of
// any transport: gates, then the request's serialization key, then the processor.
// It translates between the wire and thread.Service and holds no durable truth:
// what it knows beyond a connection's life it asks the service.
//
// Entry points: New, Server.Serve (one connection) and Server.Close. It never
// opens a store, starts a turn's process or decides who may see a thread.
package appserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
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

	mu     sync.Mutex // guards what follows
	conns  map[*conn]struct{}
	nextID uint64
	closed bool
	wg     sync.WaitGroup // Serve calls
}

// lane is what a request is serialized with.
type lane struct {
	kind string // "thread", "conn", "global"
	id   string
}

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
		cfg: cfg, conns: map[*conn]struct{}{}, catalog: &catalog{cfg: &cfg},
		lanes: serial.New[lane](serial.Options{PerKey: 1024}),
	}
	s.register()
	return s, nil
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
	err = c.rpc.Run(context.Background())
	c.end()
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

// Connections counts the present connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
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
