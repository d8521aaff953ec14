package provider

import (
	"cmp"
	"encoding/json"
	"maps"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// Ways are a CLI's routes through the gateway, as a session learns of them. Nothing in
// them is secret.
type Ways struct {
	Routes []RouteInfo
	// Settings are the CLI's own besides those of its model providers, where it takes
	// them from a variable.
	Settings map[string]any
}

// RouteInfo is one route.
type RouteInfo struct {
	// Provider is the CLI's name of the model provider that the route stands for, ""
	// where the CLI has one only.
	Provider string
	// Settings are what the CLI knows of that model provider: its SDK, its models.
	Settings map[string]any
	// Login is the user's login without its tokens: a CLI decides by it which model is
	// the default and how long caches last.
	Login map[string]any
	// Env are settings by variables.
	Env map[string]string
	// Token is another variable for the token than the CLI's usual one.
	Token string
	// NoTools says that the model's side may run no tools of its own, so that a CLI must
	// not offer them.
	NoTools bool
	// Keyless says that the user has no key for the model provider, which the CLI
	// must notice: it then shows only the models that need none.
	Keyless bool
}

// never is when a token ends for a CLI that wants to know, in milliseconds: the gateway
// alone decides about it.
const never = json.Number("4102444800000") // 2100

// Through is the grant of a session whose models are reached through the gateway. The token is
// the only secret in it, and one of the gateway's.
func Through(providerName string, w Ways, token string) (Grant, error) {
	row := table.Of(providerName)
	g := Grant{Gateway: true, Env: map[string]string{}, Files: map[string][]byte{}}
	fail := func(err error) (Grant, error) {
		return Grant{}, thole.Errorf(thole.CodeInternal, "lead %s to the gateway: %w", providerName, err)
	}
	if row.Gateway.Settings != "" {
		settings, login, err := w.settings(row, token)
		if err != nil {
			return fail(err)
		}
		g.Env[row.Gateway.Settings], g.Env[row.Gateway.Token], g.Files[row.Login.File] = string(settings), token, login
		return g, nil
	}
	var r RouteInfo
	if len(w.Routes) > 0 {
		r = w.Routes[0]
	}
	maps.Copy(g.Env, r.Env)
	g.Env[row.Gateway.URL] = gatewayURL(row.Gateway, "")
	if r.NoTools && row.Gateway.NoTools != "" {
		g.Env[row.Gateway.NoTools] = "1"
	}
	login := copied(r.Login)
	switch {
	case r.Login != nil:
		login.set(row.Login.Renewal.Access, token)
		login.set(row.Login.Renewal.Expires, never)
	case row.Login.Key != "":
		// Threads of codex that began with a key or a login go on with a login only.
		login.set(row.Login.Key, token)
		login.set(row.Login.Mode, row.Login.KeyMode)
		fallthrough
	default:
		g.Env[cmp.Or(r.Token, row.Gateway.Token)] = token
	}
	if len(login) == 0 {
		return g, nil
	}
	body, err := encodeLogin(login)
	if err != nil {
		return fail(err)
	}
	g.Files[row.Login.File] = body
	return g, nil
}

func gatewayURL(way table.Gateway, name string) string {
	return "http://" + GatewayPlace + "/" + way.Route + name + way.Path
}

// settings lead each model provider to its route. The token is its key in a login, not
// in the settings: a CLI prefers model providers that the user has a key for when it
// looks for a default model.
func (w Ways) settings(row table.CLI, token string) (settings, login []byte, err error) {
	all := maps.Clone(w.Settings)
	if all == nil {
		all = map[string]any{}
	}
	providers, keys := map[string]any{}, members{}
	for _, r := range w.Routes {
		entry := copied(r.Settings)
		entry.set("options.baseURL", gatewayURL(row.Gateway, r.Provider))
		if r.Keyless {
			entry.set("options.headers.Authorization", "Bearer {env:"+row.Gateway.Token+"}")
		} else {
			keys[r.Provider] = map[string]any{"type": row.Login.Keys, "key": token}
		}
		providers[r.Provider] = entry
	}
	all["provider"] = providers
	if login, err = encodeLogin(keys); err == nil {
		settings, err = json.Marshal(all)
	}
	return settings, login, err
}

// copied is a copy as far as set writes.
func copied(m map[string]any) members {
	out := members{}
	for name, v := range m {
		if sub, ok := v.(map[string]any); ok {
			v = map[string]any(copied(sub))
		}
		out[name] = v
	}
	return out
}
