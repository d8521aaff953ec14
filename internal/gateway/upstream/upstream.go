// Package upstream decides which model services the gateway's routes lead to, and
// with whose credential calls go there. It looks in four places, and the first that has
// anything for a route is the only one that counts: the upstreams of the configuration,
// the vault, and for the user of this machine the server's environment and the user's
// own logins and settings of the agent CLIs.
//
// Entry points: New, Route for the gateway, Ways for the session of a CLI, Describe for
// people. It refuses to give one user what belongs to another, takes nothing that an
// executor wrote, and returns no value of a credential but to a call that it signs.
package upstream

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/setup"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/unguarded"
)

// Config is where credentials come from.
type Config struct {
	// Entries are the upstreams of the configuration, in the order in which they are
	// tried.
	Entries []Entry
	// Vault may be nil.
	Vault Vault
	// Shells are the keys of the shells from which threads were written to. It may be nil.
	Shells *Shells
	// Login is the logins and the environment of the user of this machine.
	Login provider.Login
	// Tools lets the model's side search, fetch and execute.
	Tools bool
	// Client reaches the services; nil is the gateway's own.
	Client *http.Client
}

// Routes implements gateway.Routes.
type Routes struct {
	cfg Config
	// renewing holds a channel for each item of the vault: who has sent to it renews
	// the login.
	renewing sync.Map
}

// New checks the entries of the configuration.
func New(cfg Config) (*Routes, error) {
	for i, e := range cfg.Entries {
		if err := e.check(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(cfg.Entries[:i], func(o Entry) bool { return o.Name == e.Name }) {
			return nil, e.bad("name is taken by an entry before it")
		}
	}
	return &Routes{cfg: cfg}, nil
}

// way is one route of a CLI for one owner.
type way struct {
	name      string // of the route
	dialect   gateway.Dialect
	upstreams []found
	info      provider.RouteInfo
}

// wayOf is a route to one service.
func wayOf(w setup.Way) way {
	return way{name: w.Route, dialect: gateway.Dialect(w.Dialect), info: w.Info,
		upstreams: []found{{origin: w.Origin, Upstream: gateway.Upstream{Name: w.Name, Base: w.Base, Sign: w.Sign}}}}
}

// found is an upstream and where its credential is from, in words that hold no value.
type found struct {
	gateway.Upstream
	origin string
	entry  *Entry // of the configuration, if it is from there
}

// Route implements gateway.Routes.
func (r *Routes) Route(ctx context.Context, c gateway.Claim, route string) (gateway.Route, error) {
	if !strings.HasPrefix(route, table.Of(c.Provider).Gateway.Route) || table.Of(c.Provider).Gateway.Route == "" {
		return gateway.Route{}, errNoRoute(c.Provider, route)
	}
	all, _, err := r.ways(ctx, c)
	if err != nil {
		return gateway.Route{}, err
	}
	for _, w := range all {
		if w.name != route {
			continue
		}
		out := gateway.Route{Dialect: w.dialect, Grants: gateway.Grants{Tools: r.cfg.Tools}}
		for _, f := range w.upstreams {
			if f.Client == nil {
				f.Client = r.cfg.Client
			}
			out.Upstreams = append(out.Upstreams, f.Upstream)
		}
		return out, nil
	}
	if cli, _ := cliOf(route); cli == c.Provider && len(all) == 0 {
		return gateway.Route{}, missing(c.Provider)
	}
	return gateway.Route{}, errNoRoute(c.Provider, route)
}

// Ways are the routes of a CLI for a thread, or all threads of an owner. A CLI that has none
// is an error with code not_found that says how to get one.
func (r *Routes) Ways(ctx context.Context, c gateway.Claim) (provider.Ways, error) {
	all, settings, err := r.ways(ctx, c)
	if err != nil {
		return provider.Ways{}, err
	}
	out := provider.Ways{Settings: settings}
	for _, w := range all {
		w.info.NoTools = !r.cfg.Tools
		out.Routes = append(out.Routes, w.info)
	}
	if len(out.Routes) == 0 {
		return provider.Ways{}, missing(c.Provider)
	}
	return out, nil
}

// Grant is what a session of a CLI gets: its routes, and a token of the gateway as the
// only secret.
func (r *Routes) Grant(ctx context.Context, c gateway.Claim, token string) (provider.Grant, error) {
	w, err := r.Ways(ctx, c)
	if err != nil {
		return provider.Grant{}, err
	}
	return provider.Through(c.Provider, w, token)
}

// ways looks in each place in turn. settings are those of the CLI besides.
func (r *Routes) ways(ctx context.Context, c gateway.Claim) (all []way, settings map[string]any, err error) {
	take := func(more []way) {
		for _, w := range more {
			if !slices.ContainsFunc(all, func(o way) bool { return o.name == w.name }) {
				all = append(all, w)
			}
		}
	}
	take(r.configured(c))
	// The environment, logins and settings of this machine belong to its user, and so do
	// keys of a shell.
	mine := c.Owner.User == thole.LocalUser || unguarded.Build
	shell := r.cfg.Shells.of(c.Thread)
	var own []setup.Way
	if mine && len(shell) > 0 {
		user := r.user()
		user.Shell = shell
		if own, settings, err = user.Ways(ctx, c.Provider, len(all) > 0); err != nil {
			return nil, nil, err
		}
		for _, w := range own {
			if w.Shell {
				take([]way{wayOf(w)})
			}
		}
	}
	if _, single := setup.OfCLI(c.Provider); !single || len(all) == 0 {
		kept, err := r.kept(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		take(kept)
	}
	if mine {
		if own, settings, err = r.user().Ways(ctx, c.Provider, len(all) > 0); err != nil {
			return nil, nil, err
		}
		for _, w := range own {
			take([]way{wayOf(w)})
		}
	}
	return all, settings, nil
}

func (r *Routes) user() setup.User { return setup.User{Own: r.cfg.Login} }

func errNoRoute(providerName, route string) error {
	return thole.Errorf(thole.CodeNotFound, "no route %.64q for %s", route, providerName)
}

// missing says what to do for a CLI without any credential.
func missing(providerName string) error {
	row := table.Of(providerName)
	how := "put a key into the vault (thole secret set), or set gateway.upstreams"
	if len(row.Login.Env) > 0 {
		how = "log in with " + providerName + " as the user who runs the server, start the server with " + row.Login.Env[0] + ", " + how
	}
	return thole.Errorf(thole.CodeNotFound, "no credential for %s", providerName).WithHint("%s", how)
}
