// Package registry is the service that brings harnesses and executors together: a
// registry of executors' keys over HTTP and a rendezvous that carries frames between
// their sockets. It is one http.Handler and keeps everything in memory: after a
// restart executors register again. It routes by stream and never reads what streams
// carry, which it could not decrypt.
//
// Every token belongs to an owner, and an owner reaches only environments that were
// registered with a token of the same owner.
package registry

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/strictjson"
	wire "github.com/tholehq/thole/protocol/relay"
)

const (
	maxBody         = 64 << 10
	maxEnvironments = 1024 // of one owner
	maxGrants       = 256  // of one registration, not yet used
	grantFor        = 60 * time.Second
	ticketFor       = 10 * time.Minute // of an executor without a socket
	sweepEvery      = time.Second
)

// The paths at which a Registry answers, below which it may be served with others.
const (
	EnvironmentPath = "/cloud/environment/"
	RendezvousPath  = "/rendezvous"
)

// Config shapes a Registry.
type Config struct {
	// Tokens are who may use it, or TokensFile when they change while it runs.
	Tokens     *Tokens
	TokensFile *Reloaded[*Tokens]
	// URL is the address at which clients reach it, http:// or https://; empty: what
	// their requests name as host.
	URL    string
	Log    *slog.Logger
	Limits Limits
	Now    func() time.Time
}

// Limits of the rendezvous. Zero fields take the defaults.
type Limits struct {
	Streams   int           // of one executor; default 128
	Queue     int           // bytes that wait for one socket; default 8 MiB
	Memory    int           // bytes that wait for all sockets, beyond a few frames of each; default 512 MiB
	Stuck     time.Duration // that a socket may keep others waiting; default 10 s
	Drain     int           // bytes that make up for Stuck: a socket that others wait for takes as much in that time; default 1 MiB
	Ping      time.Duration // default 30 s
	Pong      time.Duration // default 60 s
	Handshake int           // bytes of handshakes per second and executor; default 64 KiB
	Burst     int           // of those, at once; default 512 KiB
	Opening   time.Duration // from a harness's socket to the executor's answer to its handshake; default 30 s
	Probe     time.Duration // that an executor has to answer when another one wants its environment; default 5 s
}

func (l Limits) withDefaults() Limits {
	number := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	duration := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	number(&l.Streams, 128)
	number(&l.Queue, 8<<20)
	number(&l.Memory, 512<<20)
	number(&l.Handshake, 64<<10)
	number(&l.Burst, 512<<10)
	number(&l.Drain, 1<<20)
	duration(&l.Stuck, 10*time.Second)
	duration(&l.Ping, 30*time.Second)
	duration(&l.Pong, 60*time.Second)
	duration(&l.Opening, 30*time.Second)
	duration(&l.Probe, 5*time.Second)
	return l
}

// Registry is the service. It is safe for concurrent use.
type Registry struct {
	cfg Config
	mux *http.ServeMux
	wg  sync.WaitGroup // sockets

	queued atomic.Int64 // bytes that wait for sockets

	mu      sync.Mutex // guards the rest
	closed  bool
	swept   time.Time
	envs    map[place]*registration
	tickets map[[sha256.Size]byte]ticket
}

// place is an environment of an owner.
type place struct{ owner, id string }

// registration is one announcement of an executor. A later one replaces it, unless its
// executor is there.
type registration struct {
	place
	id      string
	key     wire.Key
	ticket  [sha256.Size]byte
	grants  map[[sha256.Size]byte]grant
	tickets int // of harnesses, not yet used
	hub     *hub
	idle    time.Time // since when it has no socket
}

// grant allows one harness key one stream.
type grant struct {
	key     string // fingerprint
	expires time.Time
}

// ticket allows a socket.
type ticket struct {
	reg     *registration
	harness bool
	expires time.Time         // of a harness's, which is used up with its socket
	grant   [sha256.Size]byte // of a harness: ends with its socket
}

// New makes a Registry.
func New(cfg Config) *Registry {
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Registry{cfg: cfg, mux: http.NewServeMux(), envs: map[place]*registration{}, tickets: map[[sha256.Size]byte]ticket{}}
	r.mux.Handle("POST "+EnvironmentPath+"{id}/register", handle(r, RoleExecutor, r.register))
	r.mux.Handle("POST "+EnvironmentPath+"{id}/connect", handle(r, RoleHarness, r.connect))
	r.mux.Handle("POST "+EnvironmentPath+"{id}/validate", handle(r, RoleExecutor, r.validate))
	r.mux.HandleFunc("GET "+RendezvousPath, r.rendezvous)
	r.mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return r
}

// ServeHTTP implements http.Handler. Browsers have no business here.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Origin") != "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	r.mux.ServeHTTP(w, req)
}

// Close ends every socket and waits for them.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	all := make([]*registration, 0, len(r.envs))
	for _, reg := range r.envs {
		all = append(all, reg)
	}
	r.mu.Unlock()
	for _, reg := range all {
		reg.hub.close()
	}
	r.wg.Wait()
}

// tokens are those of now. A token that is gone opens nothing more; a stream needs a call of
// both sides, so that its holder keeps those that are open and gets no other.
func (r *Registry) tokens() *Tokens {
	if r.cfg.TokensFile == nil {
		return r.cfg.Tokens
	}
	t, err := r.cfg.TokensFile.Get()
	if err != nil {
		r.cfg.Log.Warn("tokens could not be read again; those of before are valid", "err", err)
	}
	return t
}

// call is a request about an environment, with the proven owner of its token.
type call struct {
	place
	base string // of the rendezvous
}

// handle proves who calls, decodes strictly and writes the answer.
func handle[In, Out any](r *Registry, role Role, fn func(call, In) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		owner, err := r.tokens().owner(req.Header.Get("Authorization"), role)
		if err != nil {
			refuse(w, err)
			return
		}
		c := call{place{owner, req.PathValue("id")}, r.base(req)}
		if err := relay.CheckEnvironmentID(c.id); err != nil {
			refuse(w, err)
			return
		}
		var in In
		if err := strictjson.ReadKnown(http.MaxBytesReader(w, req.Body, maxBody), &in); err != nil {
			refuse(w, thole.Errorf(thole.CodeInvalid, "decode request: %w", err))
			return
		}
		out, err := fn(c, in)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}

// refuse writes an error in the form that clients of registries know.
func refuse(w http.ResponseWriter, err error) {
	status, code := http.StatusBadRequest, "invalid_request"
	switch thole.CodeOf(err) {
	case thole.CodeUnauthorized:
		status, code = http.StatusUnauthorized, "unauthorized"
	case thole.CodeForbidden:
		status, code = http.StatusForbidden, "forbidden"
	case thole.CodeNotFound:
		status, code = http.StatusNotFound, "not_found"
	case thole.CodeConflict:
		status, code = http.StatusConflict, wire.CodeOffline
	case thole.CodeBusy:
		status, code = http.StatusConflict, wire.CodeInUse
	case thole.CodeOverloaded:
		status, code = http.StatusTooManyRequests, "overloaded"
		w.Header().Set("Retry-After", "1")
	case thole.CodeUnavailable:
		status, code = http.StatusServiceUnavailable, "unavailable"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wire.Failure{Error: wire.FailureDetail{Code: code, Message: err.Error()}})
}

// base is the address of the rendezvous for a client.
func (r *Registry) base(req *http.Request) string {
	base := r.cfg.URL
	if base == "" {
		base = "http://" + req.Host
		if req.TLS != nil {
			base = "https://" + req.Host
		}
	}
	return "ws" + strings.TrimPrefix(strings.TrimRight(base, "/"), "http") + RendezvousPath
}

func (c call) registration(reg *registration, secret string) wire.Registration {
	return wire.Registration{EnvironmentID: c.id, URL: c.base + "?ticket=" + url.QueryEscape(secret), SecurityProfile: wire.Profile, ExecutorRegistrationID: reg.id}
}

func (r *Registry) register(c call, in wire.RegisterRequest) (wire.Registration, error) {
	if in.SecurityProfile != wire.Profile {
		return wire.Registration{}, thole.Errorf(thole.CodeInvalid, "security profile %q is unknown: it must be %s", in.SecurityProfile, wire.Profile)
	}
	if _, err := relay.ParseKey(in.ExecutorPublicKey); err != nil {
		return wire.Registration{}, thole.Errorf(thole.CodeInvalid, "executor_public_key: %w", err)
	}
	r.mu.Lock()
	before := r.envs[c.place]
	r.mu.Unlock()
	if before != nil && before.hub.alive() {
		return wire.Registration{}, inUse(c.id)
	}
	secret := rand.Text()
	reg := &registration{place: c.place, id: rand.Text(), key: in.ExecutorPublicKey, ticket: sha256.Sum256([]byte(secret)), grants: map[[sha256.Size]byte]grant{}, hub: newHub(r.cfg.Limits)}
	r.mu.Lock()
	now := r.cfg.Now()
	r.sweepLocked(now)
	old := r.envs[c.place]
	switch {
	case old != before: // another one was quicker
		r.mu.Unlock()
		return wire.Registration{}, inUse(c.id)
	case r.closed:
		r.mu.Unlock()
		return wire.Registration{}, thole.Errorf(thole.CodeUnavailable, "the relay is closing")
	case old == nil && r.ownedLocked(c.owner) >= maxEnvironments:
		r.mu.Unlock()
		return wire.Registration{}, thole.Errorf(thole.CodeOverloaded, "this owner has %d environments already", maxEnvironments)
	}
	reg.idle = now
	r.envs[c.place] = reg
	r.tickets[reg.ticket] = ticket{reg: reg}
	if old != nil {
		r.forgetLocked(old)
	}
	r.mu.Unlock()
	if old != nil {
		old.hub.close()
	}
	r.cfg.Log.Info("executor registered", "executor", c.id, "from", c.owner)
	return c.registration(reg, secret), nil
}

// inUse refuses a second executor: two that replaced each other would end each other's
// streams for ever.
func inUse(id string) error {
	return thole.Errorf(thole.CodeBusy, "environment %q is served by another executor", id)
}

func (r *Registry) ownedLocked(owner string) (n int) {
	for p := range r.envs {
		if p.owner == owner {
			n++
		}
	}
	return n
}

func (r *Registry) connect(c call, in wire.ConnectRequest) (wire.Bundle, error) {
	key, err := relay.ParseKey(in.HarnessPublicKey)
	if err != nil {
		return wire.Bundle{}, thole.Errorf(thole.CodeInvalid, "harness_public_key: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	r.sweepLocked(now)
	reg := r.envs[c.place]
	if reg == nil || !reg.hub.online() {
		return wire.Bundle{}, thole.Errorf(thole.CodeConflict, "no executor of environment %q is connected", c.id)
	}
	if len(reg.grants) >= maxGrants || reg.tickets >= maxGrants {
		return wire.Bundle{}, thole.Errorf(thole.CodeOverloaded, "%d connections to environment %q are being made already", maxGrants, c.id)
	}
	secret, authorization := rand.Text(), rand.Text()
	name := sha256.Sum256([]byte(authorization))
	r.tickets[sha256.Sum256([]byte(secret))] = ticket{reg: reg, harness: true, expires: now.Add(grantFor), grant: name}
	reg.tickets++
	reg.grants[name] = grant{key.Fingerprint(), now.Add(grantFor)}
	return wire.Bundle{Registration: c.registration(reg, secret), ExecutorPublicKey: reg.key, HarnessKeyAuthorization: authorization}, nil
}

// validate uses an authorization up, whatever the answer.
func (r *Registry) validate(c call, in wire.ValidateRequest) (wire.ValidateResult, error) {
	key, err := relay.ParseKey(in.HarnessPublicKey)
	if err != nil {
		return wire.ValidateResult{}, thole.Errorf(thole.CodeInvalid, "harness_public_key: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	reg := r.envs[c.place]
	if reg == nil || reg.id != in.ExecutorRegistrationID {
		return wire.ValidateResult{}, nil
	}
	name := sha256.Sum256([]byte(in.HarnessKeyAuthorization))
	g, ok := reg.grants[name]
	delete(reg.grants, name)
	return wire.ValidateResult{Valid: ok && g.key == key.Fingerprint() && r.cfg.Now().Before(g.expires)}, nil
}

// sweepLocked forgets what has expired. Many calls at once pay for one look at everything.
func (r *Registry) sweepLocked(now time.Time) {
	if now.Sub(r.swept) < sweepEvery {
		return
	}
	r.swept = now
	for name, t := range r.tickets {
		if t.harness && !now.Before(t.expires) {
			delete(r.tickets, name)
			t.reg.tickets--
		}
	}
	for _, reg := range r.envs {
		if !reg.idle.IsZero() && now.Sub(reg.idle) > ticketFor {
			delete(r.envs, reg.place)
			r.forgetLocked(reg)
			continue
		}
		for name, g := range reg.grants {
			if !now.Before(g.expires) {
				delete(reg.grants, name)
			}
		}
	}
}

// forgetLocked makes the tickets of a registration worthless.
func (r *Registry) forgetLocked(reg *registration) {
	for name, t := range r.tickets {
		if t.reg == reg {
			delete(r.tickets, name)
		}
	}
}

// redeem finds what a socket may be used for; its caller is counted in wg. A harness's
// ticket is used up.
func (r *Registry) redeem(secret string) (ticket, bool) {
	name := sha256.Sum256([]byte(secret))
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tickets[name]
	if !ok || r.closed {
		return ticket{}, false
	}
	if t.harness {
		delete(r.tickets, name)
		t.reg.tickets--
		if !r.cfg.Now().Before(t.expires) {
			return ticket{}, false
		}
	}
	r.wg.Add(1)
	return t, true
}

// revoke ends the authorization that came with a ticket. Harnesses that were refused at
// once, as a hundred are after a lost socket, would otherwise use all of them up.
func (r *Registry) revoke(t ticket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(t.reg.grants, t.grant)
}

// idleNow notes that an executor has a socket or has none.
func (r *Registry) idleNow(reg *registration, online bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reg.idle = r.cfg.Now(); online {
		reg.idle = time.Time{}
	}
}
