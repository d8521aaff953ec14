package system

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/daemon/executors"
	listed "github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/internal/doctor"
	people "github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/preview"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/provider/registry"
	relays "github.com/tholehq/thole/internal/relay/registry"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/version"
)

// Page is where the browser goes: URL logs it in once. Listen is the address a
// proxy in front connects to.
type Page struct {
	URL    string `json:"url"`
	Base   string `json:"base"`
	Listen string `json:"listen"`
	// Relay is the address at which exec-servers and their clients meet, "" without one.
	Relay string `json:"relay,omitempty"`
	// Setup makes the first administrator of a server, once; "": it was set up, or is no server.
	Setup string `json:"setup,omitempty"`
	// Warning is what the user who started it must know.
	Warning string `json:"warning,omitempty"`
}

// web serves the page and the REST interface.
type web struct {
	api      *httpapi.Server
	relay    *relays.Registry // nil without one
	ports    *preview.Previews
	threads  *thread.Machine
	srv      *http.Server
	ln       net.Listener
	at       address
	sessions *session.Manager
	accounts *people.Machine
	server   bool   // of a team, not the program of one user
	note     string // a warning
	log      *slog.Logger
	page     Page // the first
	done     chan struct{}
}

// openWeb binds the address and builds what answers there.
func (s *System) openWeb(ctx context.Context, o Options, db *store.DB, self identity, near *peers, sessions *session.Manager, accounts *people.Machine, threads *thread.Machine, contract *appserver.Server, agents *registry.Registry, d *deliveries, methods map[string]daemon.Method, asked *executors.Service, changed *changes.Service, spending *spend.Service, m *meter, secrets *vault.Vault, trail *audit.Log, connections httpapi.Connections, sources httpapi.Sources, alive func() error) (*web, error) {
	m.watch(db)
	ln, err := listenWeb(ctx, o.Config.HTTP, o.Role == "serve", sessions)
	if err != nil {
		return nil, err
	}
	s.closes(func() error { _ = ln.Close(); return nil }) // again, where it was served
	at := addressOf(o.Config.HTTP, ln.Addr())
	proxies, err := o.Config.HTTP.Proxies()
	if err != nil {
		return nil, err
	}
	page := &url.URL{Scheme: "http", Host: ln.Addr().String()} // browsers of this machine come here, whatever stands in front
	if o.Config.HTTP.TLSCert != "" {
		page.Scheme = "https"
	}
	ports := preview.New(preview.Config{Page: page, Running: asked.Running, Dial: asked.DialPort, Audit: trail})
	s.closes(func() error { ports.CloseAll(); return nil })
	base := func() string { return at.base }
	managed := maps.Clone(methods)
	for _, more := range []map[string]daemon.Method{daemon.IdentityMethods(accounts, base), daemon.AuditMethods(trail, accounts.Require), daemon.TokenMethods(sessions, accounts), daemon.ShareMethods(sessions, threads, base), daemon.SpendMethods(spending), listed.Service{Threads: threads}.Methods()} {
		maps.Copy(managed, more)
	}
	api, err := httpapi.New(httpapi.Config{
		Identity: accounts, SSO: singleSignOn(o, at.base), Contract: contract.Serve, Methods: func(name string) httpapi.Method { return httpapi.Method(managed[name]) },
		Threads: threads, Providers: offered(agents, o.Demo), Settle: agents.Settle, Index: db.Index(), Keys: db.Idempotency(),
		Sessions: sessions, Cookies: guard.NewCookies(self.cookies(o.Config.Home), at.tls), Guard: guard.New(guard.Config{Hosts: at.hosts, TLS: at.tls}), Metrics: m.set.Handler(),
		Deliveries: func(name string) httpapi.Method { return httpapi.Method(methods[name]) }, JobsChanged: d.jobsChanged,
		Tickets: tickets(db, self), Elsewhere: near.elsewhere, LiveNetwork: asked.LiveNetwork, Files: asked, Changes: changed, Network: asked, Previews: ports, Spend: spending, Vault: secrets, Audit: trail, Connections: connections, Ready: readyParts(db, o.Config.Server, alive, offered(agents, o.Demo), connections), OwnConfig: ownConfig(o), Sources: sources, TrustedProxies: proxies, Private: privatePaths(o.Config.Home), Local: at.local, UI: o.UI, Version: version.Version, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	relay, err := openRelay(o, at, ln.Addr())
	if err != nil {
		return nil, err
	}
	handler := withRelay(api, relay)
	if !o.Config.Server.Has(roster.API) {
		handler = withoutAPI(api)
	}
	return &web{
		api: api, relay: relay, ports: ports, threads: threads, srv: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}, ln: ln, at: at, sessions: sessions, accounts: accounts, server: o.Role == "serve",
		note: joinWarnings(doctor.Unwalled(o.Config.Executor), at.warning), log: o.Log, done: make(chan struct{}),
	}, nil
}

func (p *web) start(ctx context.Context) (err error) {
	ctx = audit.With(ctx, audit.Source{Actor: thole.SystemActor})
	if p.page, err = p.link(ctx); err != nil {
		return err
	}
	if p.server {
		code, err := p.accounts.SetupLink(ctx)
		if err != nil {
			return err
		}
		if code != "" {
			p.page.Setup = people.LinkURL(p.at.base, code)
		}
	}
	go func() {
		defer close(p.done)
		if err := p.srv.Serve(p.ln); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("the page is served no longer", "err", err)
		}
	}()
	return nil
}

// socketsClose is how long requests in progress may go on when the server ends.
const socketsClose = 10 * time.Second

func (p *web) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, socketsClose)
	defer cancel()
	p.ports.CloseAll()
	if p.relay != nil {
		p.relay.Close()
	}
	err := p.api.Shutdown(ctx)
	if e := p.srv.Shutdown(ctx); e != nil {
		err = errors.Join(err, p.srv.Close())
	}
	<-p.done
	return err
}

// link makes a page that logs a browser in once. The code is in the fragment, which
// browsers send to nobody: only the page's script reads and posts it.
func (p *web) link(ctx context.Context) (Page, error) {
	code, err := p.sessions.NewLogin(ctx, thole.LocalUser)
	page := Page{URL: p.at.base + "/auth/login#code=" + code, Base: p.at.base, Listen: p.ln.Addr().String(), Warning: p.note}
	if p.relay != nil {
		page.Relay = p.at.base
	}
	return page, err
}

// methods are served on the home's socket where there is a page.
func (p *web) methods() map[string]daemon.Method {
	if p == nil {
		return map[string]daemon.Method{MethodPort: func(context.Context, thole.Actor, json.RawMessage) (any, error) { return nil, errNoPage() }}
	}
	return map[string]daemon.Method{
		MethodLogin: func(ctx context.Context, _ thole.Actor, _ json.RawMessage) (any, error) { return p.link(ctx) },
		MethodPort: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var in PortParams
			if err := strictjson.Unmarshal(params, &in); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "thread port: %w", err)
			}
			return p.port(ctx, actor, in)
		},
	}
}

// base is the address of the page, "" where there is none.
func (p *web) base() string {
	if p == nil {
		return ""
	}
	return p.at.base
}

// announce reports where the page is, if there is one.
func (p *web) announce(to func(Page)) {
	if p != nil {
		to(p.page)
	}
}

// MethodLogin asks the home's owner for a page that logs a browser in.
const MethodLogin = "thole/login"

func joinWarnings(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// sweepLogins removes expired logins and tokens, at the start and every hour.
func sweepLogins(ctx context.Context, m *session.Manager, log *slog.Logger) {
	t := time.NewTicker(time.Hour)
	defer t.Stop()
	for {
		if err := m.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Error("sweep of logins failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// privatePaths are those that readers of a share link do not see: the home's and the user's.
func privatePaths(home string) []string {
	out := []string{home}
	if dir, err := os.UserHomeDir(); err == nil {
		out = append(out, dir)
	}
	return out
}
