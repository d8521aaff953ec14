package upstream

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
)

// own are the routes that the user of this machine has by environment, login and
// settings of a CLI, in the order in which that CLI itself takes them. have are those
// that are decided already.
func (r *Routes) own(ctx context.Context, cli string, have []way) (all []way, settings map[string]any, err error) {
	if slices.Contains(r.cfg.Login.HandIn, cli) {
		return nil, nil, nil // it goes there by itself
	}
	var find func(context.Context) (way, error)
	switch cli {
	case "codex":
		find = r.ownCodex
	case "claude":
		find = r.ownClaude
	case "opencode":
		return r.ownOpencode(ctx)
	default:
		return nil, nil, nil
	}
	if len(have) > 0 {
		return nil, nil, nil
	}
	w, err := find(ctx)
	if err != nil || len(w.upstreams) == 0 {
		return nil, nil, err
	}
	return []way{w}, nil, nil
}

// routeOf is the name of a CLI's route, "" for a CLI that has none.
func routeOf(cli, modelProvider string) string {
	way := table.Of(cli).Gateway
	if way.Settings == "" {
		return way.Route
	}
	return way.Route + modelProvider
}

// newWay is a route of a CLI to a service.
func newWay(cli string, s service, origin string, sg sign) way {
	w := way{name: routeOf(cli, s.name), dialect: s.dialect, upstreams: []found{{origin: origin, Upstream: gateway.Upstream{Name: s.name, Base: mustBase(s.base), Sign: sg}}}}
	if table.Of(cli).Gateway.Settings != "" {
		w.info.Provider = s.name
	}
	return w
}

// keyWay is a route by a key of a service.
func keyWay(cli string, s service, origin string, get func(context.Context) (string, error)) way {
	return newWay(cli, s, origin, signKey(headerOf(s.dialect), origin, get))
}

// loginWay is a route by a login of a CLI: to its service, or to base where there is one.
func (r *Routes) loginWay(ctx context.Context, cli string, at provider.Kept, origin, base string, needsLogin func(context.Context)) (way, error) {
	info, err := r.cfg.Login.Inspect(ctx, cli, at)
	if err != nil {
		return way{}, err
	}
	s := ofCLI[cli]
	if !info.Key && s.dialect == gateway.Responses {
		s = chatGPT
	}
	w := newWay(cli, s, origin, signLogin(r.cfg.Login, cli, at, needsLogin))
	if !info.Key && s.dialect == gateway.Anthropic {
		w.info.Login = info.Facts
	}
	return w, w.at(base)
}

// at puts the route's upstreams elsewhere, unless base is "".
func (w way) at(base string) error {
	if base == "" {
		return nil
	}
	u, ok := parseBase(base)
	if !ok {
		return thole.Errorf(thole.CodeInvalid, "invalid base URL of %s", w.upstreams[0].origin).WithHint("it must be http://HOST or https://HOST with a path, without a name or password")
	}
	for i := range w.upstreams {
		w.upstreams[i].Base, w.upstreams[i].Name = u, u.Host
	}
	return nil
}

// ownLogin is the route by the user's own login, none where there is no login.
func (r *Routes) ownLogin(ctx context.Context, cli, base string) (way, error) {
	w, err := r.loginWay(ctx, cli, r.cfg.Login.Own(cli), "your login of "+cli, base, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return way{}, nil
	}
	return w, err
}

// dir is where a CLI keeps its own settings.
func (r *Routes) dir(cli string) string {
	row := table.Of(cli).Login
	if dir := r.getenv(row.Variable); row.Variable != "" && dir != "" {
		return dir
	}
	return filepath.Join(r.cfg.Login.Home, filepath.FromSlash(row.Dir))
}

// maxSettings bounds a file of settings.
const maxSettings = 4 << 20

// settings reads a file of a CLI's settings, an empty object where there is none.
func settings(path string) (map[string]any, error) {
	out := map[string]any{}
	data, err := readBounded(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		if strings.HasSuffix(path, ".toml") {
			err = toml.Unmarshal(data, &out)
		} else {
			err = strictjson.Unmarshal(data, &out)
		}
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read %s: %w", path, err).WithHint("correct that file, or set gateway.upstreams")
	}
	return out, nil
}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func object(m map[string]any, name string) map[string]any {
	sub, _ := m[name].(map[string]any)
	return sub
}

// headers are those of an object whose values are texts; value says what each means.
func headers(out http.Header, m map[string]any, value func(string) string) {
	for _, name := range sortedKeys(m) {
		if v, _ := m[name].(string); value(v) != "" {
			out.Set(name, value(v))
		}
	}
}

func same(s string) string { return s }

func query(u *url.URL, m map[string]any) {
	q := u.Query()
	for _, name := range sortedKeys(m) {
		if v, _ := m[name].(string); v != "" {
			q.Set(name, v)
		}
	}
	u.RawQuery = q.Encode()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// cannotPass is the error of a set-up that only the CLI itself can use.
func cannotPass(cli, what string) error {
	return thole.Errorf(thole.CodeUnsupported, "%s cannot go through the gateway with %s", cli, what).
		WithHint("use an API key, gateway.upstreams, or providers.hand_in_logins = [%q], with which agents read the login", cli)
}
