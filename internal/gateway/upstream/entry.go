package upstream

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/setup"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/vault"
)

// Entry is an upstream of the configuration. It serves every owner.
type Entry struct {
	Name string
	// Dialect is anthropic, openai-responses, openai-chat, or openai for both of them.
	Dialect string
	BaseURL string
	Models  []string
	Rename  map[string]string
	// Key is vault:NAME, env:VARIABLE or file:PATH, "" for a service that wants none.
	Key string
	// Auth is how the service wants the key: bearer or x-api-key, "" for what the
	// dialect's own service wants.
	Auth      string
	FirstByte time.Duration
	Parallel  int
	// Routes are those it serves, empty for those of its dialect.
	Routes []string
}

var entryName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })

// dialects are those that an entry speaks.
var dialects = map[string][]gateway.Dialect{
	"anthropic": {gateway.Anthropic}, "openai-responses": {gateway.Responses}, "openai-chat": {gateway.Chat}, "openai": {gateway.Responses, gateway.Chat},
}

func (e Entry) bad(format string, args ...any) error {
	return thole.Errorf(thole.CodeInvalid, "gateway.upstreams %q: "+format, append([]any{e.Name}, args...)...).WithHint("see docs/operate/config.md")
}

func (e Entry) check() error {
	kind, rest, _ := strings.Cut(e.Key, ":")
	_, urlOK := setup.ParseBase(e.BaseURL)
	switch {
	case !entryName().MatchString(e.Name):
		return e.bad("name must be lower-case letters, digits and . _ - , at most 64")
	case dialects[e.Dialect] == nil:
		return e.bad("dialect must be one of anthropic, openai, openai-responses, openai-chat, not %q", e.Dialect)
	case !urlOK:
		return e.bad("base_url must be http://HOST or https://HOST with a path, without a name or password")
	case e.Key != "" && (rest == "" || !slices.Contains([]string{"vault", "env", "file"}, kind)):
		return e.bad("key must be vault:NAME, env:VARIABLE or file:PATH, never the key itself")
	case kind == "file" && !strings.HasPrefix(rest, "/"):
		return e.bad("key must name a file by its absolute path")
	case e.Auth != "" && e.Auth != string(setup.Bearer) && e.Auth != string(setup.APIKey):
		return e.bad("auth must be bearer or x-api-key, not %q", e.Auth)
	case e.Parallel < 0 || e.FirstByte < 0:
		return e.bad("parallel and first_byte must not be negative")
	}
	for _, route := range e.Routes {
		if cli, _ := cliOf(route); cli == "" {
			return e.bad("no route %q; there are %s", route, routeNames())
		}
	}
	return nil
}

// cliOf is the CLI that has a route, and the model provider that the route stands for.
func cliOf(route string) (cli, modelProvider string) {
	for _, row := range table.CLIs {
		way := row.Gateway
		switch {
		case way.Route == "":
		case way.Settings == "" && way.Route == route:
			return row.Name, ""
		case way.Settings != "" && strings.HasPrefix(route, way.Route) && entryName().MatchString(route[len(way.Route):]):
			return row.Name, route[len(way.Route):]
		}
	}
	return "", ""
}

func routeNames() string {
	var all []string
	for _, row := range table.CLIs {
		switch way := row.Gateway; {
		case way.Settings != "":
			all = append(all, way.Route+"PROVIDER")
		case way.Route != "":
			all = append(all, way.Route)
		}
	}
	return strings.Join(all, ", ")
}

// routes are those that an entry serves, with the dialect spoken there.
func (e Entry) routes() map[string]gateway.Dialect {
	speaks := dialects[e.Dialect]
	out := map[string]gateway.Dialect{}
	put := func(route string, first gateway.Dialect) {
		if slices.Contains(speaks, first) {
			out[route] = first
		} else {
			out[route] = speaks[0]
		}
	}
	if len(e.Routes) > 0 {
		for _, route := range e.Routes {
			put(route, wants(route))
		}
		return out
	}
	for _, route := range setup.Routes(setup.Dialect(speaks[0])) {
		put(route, speaks[0])
	}
	if len(out) == 0 { // a model provider of its own
		for _, row := range table.CLIs {
			if row.Gateway.Settings != "" {
				put(setup.RouteOf(row.Name, e.Name), speaks[0])
			}
		}
	}
	return out
}

// wants is the dialect that a CLI speaks on a route.
func wants(route string) gateway.Dialect { return gateway.Dialect(setup.Speaks(cliOf(route))) }

// configured are the routes that the configuration has upstreams for.
func (r *Routes) configured(c gateway.Claim) (all []way) {
	for _, e := range r.cfg.Entries {
		routes := e.routes()
		for _, name := range slices.Sorted(maps.Keys(routes)) {
			cli, modelProvider := cliOf(name)
			if cli != c.Provider || routes[name] != wants(name) {
				continue
			}
			i := slices.IndexFunc(all, func(w way) bool { return w.name == name })
			if i < 0 {
				i = len(all)
				all = append(all, way{name: name, dialect: routes[name], info: provider.RouteInfo{Provider: modelProvider}})
			}
			all[i].upstreams = append(all[i].upstreams, e.found(r, c, routes[name]))
			if modelProvider != "" && !setup.Known(modelProvider) {
				all[i].info.Settings = e.learn(all[i].info.Settings, routes[name])
			}
		}
	}
	return all
}

// learn adds what opencode cannot know of a model provider: how to speak to it, and the
// models that are listed by their names.
func (e Entry) learn(settings map[string]any, d gateway.Dialect) map[string]any {
	if settings == nil {
		settings = map[string]any{"name": e.Name, "npm": setup.SDK(setup.Dialect(d)), "models": map[string]any{}}
	}
	models, _ := settings["models"].(map[string]any)
	for _, name := range e.Models {
		if !strings.Contains(name, "*") {
			models[name] = map[string]any{"tool_call": true}
		}
	}
	return settings
}

func (e Entry) found(r *Routes, c gateway.Claim, d gateway.Dialect) found {
	base, _ := setup.ParseBase(e.BaseURL)
	f := found{origin: "gateway.upstreams " + e.Name, entry: &e, Upstream: gateway.Upstream{
		Name: e.Name, Base: base, Models: e.Models, Rename: e.Rename, FirstByte: e.FirstByte, Parallel: e.Parallel,
		Sign: func(context.Context, http.Header, bool) error { return nil },
	}}
	if e.Key == "" {
		return f
	}
	how := setup.Header(e.Auth)
	if how == "" {
		how = setup.HeaderOf(setup.Dialect(d))
	}
	f.origin += ", " + e.Key
	f.Sign = setup.SignKey(how, e.Key, func(ctx context.Context) (string, error) { return r.secret(ctx, c, e.Key) })
	return f
}

// secret resolves a reference of the configuration. What is not there is CodeForbidden:
// only a person can help, and an agent that asked again would ask for minutes.
func (r *Routes) secret(ctx context.Context, c gateway.Claim, ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		if v := r.getenv(name); v != "" {
			return v, nil
		}
		return "", thole.Errorf(thole.CodeForbidden, "the server has no variable %s", name).WithHint("start it with %s set", name)
	case "file":
		data, err := setup.Read(name, setup.MaxKey)
		if err != nil {
			return "", thole.Errorf(thole.CodeForbidden, "read the key of an upstream: %w", err).WithHint("put the key there, readable by the user who runs the server")
		}
		return string(data), nil
	}
	if r.cfg.Vault == nil {
		return "", thole.Errorf(thole.CodeUnavailable, "there is no vault for the key %s", ref)
	}
	items, err := r.cfg.Vault.Candidates(ctx, c.Owner, vault.ProviderAuth, "")
	if err != nil {
		return "", err
	}
	for _, i := range items {
		if i.Name == name {
			return r.key(ctx, c, i)
		}
	}
	return "", thole.Errorf(thole.CodeForbidden, "no secret %s of kind provider_auth in the vault", name).WithHint("set it with: thole secret set %s --provider SERVICE, for example anthropic", name)
}

func (r *Routes) getenv(name string) string {
	if r.cfg.Login.Getenv == nil {
		return ""
	}
	return r.cfg.Login.Getenv(name)
}
