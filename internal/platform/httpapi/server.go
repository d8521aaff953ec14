// Package httpapi is the HTTP face of threads: REST with a generated OpenAPI
// document, server-sent events, the AI SDK chat endpoint, the login, and the
// embedded web UI. It owns routes, statuses and wire shapes, and no truth: every
// answer comes from a service it was given, every request carries an actor.
//
// It refuses foreign hosts and origins (guard), the unproven (session), bodies
// without bound, and readers that do not keep up.
package httpapi

//go:generate go run github.com/tholehq/thole/scripts/gen/openapi ../../../docs/protocol/openapi.json
//go:generate go run github.com/tholehq/thole/scripts/gen/reference ../../../docs http

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/preview"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/platform/sso"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/vault"
	"golang.org/x/time/rate"
)

// Method answers one of the delivery methods of internal/daemon/wire.
type Method = func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error)

// Config makes a Server.
type Config struct {
	Threads   thread.Service
	Providers func() []provider.Info
	// Settle waits, not for long, until the providers can be listed; nil does not.
	Settle func()
	// DefaultProvider is the provider of sessions that name none; empty takes the
	// first one that works.
	DefaultProvider string
	// Index finds things across threads. It says where something is; whether the
	// actor may see it is asked of Threads.
	Index *store.Index
	// Keys remembers what requests with an Idempotency-Key made, where the made
	// thing itself cannot carry the key.
	Keys     *store.Idempotency
	Sessions *session.Manager
	// Tickets are shared with the other servers of the store; nil: there is none.
	Tickets Tickets
	Cookies guard.Cookies
	Guard   *guard.Guard
	// Deliveries finds a delivery method by its wire name; nil: there are none.
	Deliveries func(method string) Method
	// JobsChanged gives a word after each change of a job that the actor may read, or of several at
	// once, until it is cancelled; nil: there are no jobs.
	JobsChanged func(ctx context.Context, actor thole.Actor) (changed <-chan struct{}, cancel func())
	// Files says how far threads' files are saved; nil: no files are.
	Files Files
	// Changes compares threads' files and brings changes out; nil: nobody does.
	Changes Changes
	// LiveNetwork returns what a thread's executor counted since its last run ended; nil: nothing is known.
	LiveNetwork func(context.Context, thole.ThreadID) wire.Network
	// Elsewhere finds the server that has a thread's executor; nil: there is no other server.
	Elsewhere Elsewhere
	// Network decides what sessions may reach; nil: they cannot be given a policy.
	Network NetworkControl
	// Previews show web servers of agents, on origins of their own; nil: none.
	Previews *preview.Previews
	// Vault keeps secrets; nil: none are kept.
	Vault *vault.Vault
	// Sources gives sessions their files; nil: they have none but the app's.
	Sources Sources
	// TrustedProxies say truly where requests come from (X-Forwarded-For).
	TrustedProxies []netip.Prefix
	// Private are paths of this machine that readers of shared sessions do not see.
	Private []string
	// Local says that only programs of this machine reach the server.
	Local bool
	// Ready are the parts that /readyz asks.
	Ready []Part
	// Connections says how agents reach their models; nil: nobody knows.
	Connections Connections
	// OwnConfig reads the configuration that the user of this machine wrote for agent CLIs;
	// nil: sessions get none of it.
	OwnConfig OwnConfig
	// Identity knows users and their passwords; nil: nobody logs in with one.
	Identity *identity.Machine
	// Contract serves the app-server protocol to clients of the network; nil: nobody does.
	Contract Contract
	// SSO is the provider at which users log in; nil: there is none.
	SSO *sso.Client
	// Methods finds a method of the home's socket that a login or token may call, by its name;
	// nil: there are none.
	Methods func(method string) Method
	// Audit records refusals; nil: nobody does.
	Audit *audit.Log
	// Spend answers what was used, and manages budgets.
	Spend *spend.Service
	// Metrics answers /metrics; nil: nothing.
	Metrics http.Handler
	// UI is the built web UI; nil: a page that says there is none.
	UI      fs.FS
	Version string
	// KeepAlive is the longest time that a stream writes nothing, and that it goes
	// on for a user who may not read it any more; default 15 s.
	KeepAlive time.Duration
	Now       func() time.Time
	Log       *slog.Logger
}

// Server answers HTTP. Shutdown ends its streams; the listener is the caller's.
type Server struct {
	cfg Config
	mux *router
	api huma.API
	ui  http.Handler

	tickets  tickets
	logouts  *rate.Limiter // of the provider of logins
	devices  *rate.Limiter // of logins of programs
	stopping chan struct{}
	stop     sync.Once
	streams  sync.WaitGroup
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	if cfg.Threads == nil || cfg.Sessions == nil || cfg.Guard == nil || cfg.Providers == nil || cfg.Index == nil || cfg.Keys == nil || cfg.Spend == nil {
		return nil, thole.Errorf(thole.CodeInternal, "http: threads, sessions, guard, providers, index, keys and spend are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.KeepAlive == 0 {
		cfg.KeepAlive = 15 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, mux: newRouter(), logouts: rate.NewLimiter(logoutsPerSecond, 5*logoutsPerSecond), devices: rate.NewLimiter(devicesPerSecond, 10*devicesPerSecond), stopping: make(chan struct{})}
	s.ui = &ui{cfg.UI, s}
	s.api = newAPI(s.mux, cfg.Version)
	s.authRoutes()
	s.sessionRoutes()
	s.sourceRoutes()
	s.runRoutes()
	s.queueRoutes()
	s.humanLoopRoutes()
	s.searchRoutes()
	s.deliveryRoutes()
	s.machineRoutes()
	s.vaultRoutes()
	s.connectionRoutes()
	s.ownConfigRoutes()
	s.spendRoutes()
	s.eventRoutes()
	s.chatRoutes()
	s.exportRoutes()
	s.shareRoutes()
	if err := s.mux.undecided(); err != nil {
		return nil, thole.Errorf(thole.CodeInternal, "http: %w", err)
	}
	return s, nil
}

// Shutdown ends the event streams with a word and cuts the chat streams, so that
// clients reconnect, and waits for them until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop.Do(func() { close(s.stopping) })
	done := make(chan struct{})
	go func() { s.streams.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type contextKey int

const (
	whoKey contextKey = iota
	traceKey
	shareKey
	shownKey // whether a proof was sent
	peerKey  // whether another server passed the request on
)

// who is an authenticated caller.
type who struct {
	actor   thole.Actor
	user    session.User
	by      session.Maker // the login or token
	expires time.Time
	login   session.Secrets // zero for a token
	token   string          // its secret, "" for a login
	issuer  string          // the provider that proved the user, "": none did
	local   bool            // a browser of this machine
}

func callerOf(ctx context.Context) who {
	w, _ := ctx.Value(whoKey).(who)
	return w
}

func actorOf(ctx context.Context) thole.Actor { return callerOf(ctx).actor }

func traceOf(ctx context.Context) string {
	t, _ := ctx.Value(traceKey).(string)
	return t
}

const traceHeader = "X-Trace-Id"

// traceFor takes the caller's trace id if it is one, else makes one.
func traceFor(r *http.Request) string {
	if t := r.Header.Get(traceHeader); plainKey(t, 64) {
		return t
	}
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b[:])
}

func plainKey(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Previews.Owns(r) { // an agent's origin: nothing of the API answers there
		s.cfg.Previews.ServeHTTP(w, r)
		return
	}
	trace := traceFor(r)
	ctx := context.WithValue(r.Context(), traceKey, trace)
	ctx = audit.With(ctx, audit.Source{Address: s.address(r)})
	if r.Header.Get("Authorization") != "" || r.Header.Get(ShareHeader) != "" || r.Method == http.MethodPost && (r.URL.Path == "/auth/login" || r.URL.Path == "/auth/account" || strings.HasPrefix(r.URL.Path, "/auth/oidc/")) {
		ctx = context.WithValue(ctx, shownKey, true)
	}
	r = r.WithContext(ctx)
	s.cfg.Guard.Headers(w.Header())
	w.Header().Set(traceHeader, trace)
	defer s.recover(w, r)
	if err := s.cfg.Guard.Check(r); err != nil && !fromPeer(ctx) { // that server has checked it
		s.refuse(w, r, err)
		return
	}
	route, pattern := s.mux.find(r)
	limit := s.mux.routes[pattern].maxBody()
	if r.ContentLength > limit { // before a byte of it is read
		s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "%w", &http.MaxBytesError{Limit: limit}))
		return
	}
	if route == nil && !owned(r.URL.Path) || wantsPage(r) {
		s.ui.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if s.mux.routes[pattern].Shared {
		share, err := s.sharedWith(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		ctx, done := s.cfg.Sessions.Hold(ctx, share.ID)
		defer done()
		r = r.WithContext(context.WithValue(ctx, shareKey, share))
	} else if s.mux.routes[pattern].Public == "" {
		caller, err := s.authenticate(r)
		if err == nil && route != nil {
			err = may(caller, s.mux.routes[pattern].Action)
		}
		ctx = audit.With(ctx, audit.Source{Actor: caller.actor, Login: caller.by.ID, Address: s.address(r)})
		if err != nil {
			s.refuse(w, r.WithContext(ctx), err)
			return
		}
		caller.local = s.local(r, caller)
		ctx, done := s.cfg.Sessions.Hold(ctx, caller.by.ID)
		defer done()
		r = r.WithContext(context.WithValue(ctx, whoKey, caller))
	}
	if route == nil {
		s.unknown(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if s.passed(w, r, s.mux.routes[pattern]) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

// recover answers for a handler that panicked; http.ErrAbortHandler is how a
// stream is cut on purpose.
func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	s.cfg.Log.Error("request panicked", "path", r.URL.Path, "trace", traceOf(r.Context()), "err", v)
	s.refuse(w, r, thole.Errorf(thole.CodeInternal, "the server made a mistake"))
}
