// Package setup knows the model services of the agent CLIs, and how the user of this
// machine has set each CLI up: by variables, logins and settings. It returns services
// together with what signs a call to them; values of credentials leave it only in the
// headers of a call.
//
// Entry points: User.Ways, and Key and User.Login for a credential that is kept elsewhere.
// It reads what the user wrote and nothing that an executor wrote, and it runs no program
// that settings name.
package setup

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

// Way leads from a route of the gateway to a model service.
type Way struct {
	Route   string
	Dialect Dialect
	Name    string // of the service
	Base    *url.URL
	// Sign sets the credential of one call. refused: the last one was answered with
	// 401, renew it.
	Sign   func(ctx context.Context, h http.Header, refused bool) error
	Origin string // where the credential is from, in words that hold no value
	Shell  bool   // it is from User.Shell
	Info   provider.RouteInfo
}

// none reports whether nothing was found.
func (w Way) none() bool { return w.Base == nil }

// User is the user of this machine.
type User struct {
	Own provider.Login
	// Shell are variables of the shell from which a thread was written to. They count
	// before those of Own, but for variables that say where files are.
	Shell map[string]string
}

// ofShell ends the origin of a credential that a variable of the shell holds.
const ofShell = " of your shell"

// variable is the origin of a credential in a variable.
func (u User) variable(name string) string {
	if u.Shell[name] != "" {
		return "variable " + name + ofShell
	}
	return "variable " + name
}

// Variables are those that a CLI would take credentials from and that a shell has: what a
// person hands over for a thread.
func Variables(ctx context.Context, own provider.Login, cli string) map[string]string {
	out := map[string]string{}
	env := own.Getenv
	own.Getenv = func(name string) string {
		v := env(name)
		if v != "" && !slices.Contains(files, name) {
			out[name] = v
		}
		return v
	}
	_, _, _ = User{Own: own}.Ways(ctx, cli, false) // what cannot be used is said by the turn
	for _, row := range table.CLIs {
		delete(out, row.Login.Variable)
	}
	return out
}

// files are variables that name files or hold settings, and no credential.
var files = []string{"XDG_CONFIG_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"}

// Ways are the routes that the user has by environment, login and settings of a CLI, in
// the order in which that CLI itself takes them, and the settings that its sessions learn
// of besides. have says that the route of a CLI with one only is decided already.
func (u User) Ways(ctx context.Context, cli string, have bool) (all []Way, settings map[string]any, err error) {
	if slices.Contains(u.Own.HandIn, cli) {
		return nil, nil, nil // it goes there by itself
	}
	var find func(context.Context) (Way, error)
	switch cli {
	case "codex":
		find = u.codex
	case "claude":
		find = u.claude
	case opencode:
		all, settings, err = u.opencode(ctx)
		for i, w := range all {
			all[i].Shell = strings.HasSuffix(w.Origin, ofShell)
		}
		return all, settings, err
	default:
		return nil, nil, nil
	}
	if have {
		return nil, nil, nil
	}
	w, err := find(ctx)
	if err != nil || w.none() {
		return nil, nil, err
	}
	w.Shell = strings.HasSuffix(w.Origin, ofShell)
	return []Way{w}, nil, nil
}

// RouteOf is the name of a CLI's route, "" for a CLI that has none.
func RouteOf(cli, modelProvider string) string {
	way := table.Of(cli).Gateway
	if way.Settings == "" {
		return way.Route
	}
	return way.Route + modelProvider
}

// newWay is a route of a CLI to a service.
func newWay(cli string, s Service, origin string, sg sign) Way {
	w := Way{Route: RouteOf(cli, s.Name), Dialect: s.Dialect, Name: s.Name, Base: mustBase(s.base), Sign: sg, Origin: origin}
	if table.Of(cli).Gateway.Settings != "" {
		w.Info.Provider = s.Name
	}
	return w
}

// Key is a route by a key of a service.
func Key(cli string, s Service, origin string, get func(context.Context) (string, error)) Way {
	return newWay(cli, s, origin, SignKey(HeaderOf(s.Dialect), origin, get))
}

// Login is a route by a login of a CLI: to its service, or to base where there is one.
// needsLogin is called when only a person can help; it may be nil.
func (u User) Login(ctx context.Context, cli string, at provider.Kept, origin, base string, needsLogin func(context.Context)) (Way, error) {
	info, err := u.Own.Inspect(ctx, cli, at)
	if err != nil {
		return Way{}, err
	}
	s := ofCLI[cli]
	if !info.Key && s.Dialect == Responses {
		s = chatGPT
	}
	w := newWay(cli, s, origin, signLogin(u.Own, cli, at, needsLogin))
	if !info.Key && s.Dialect == Anthropic {
		w.Info.Login = info.Facts
	}
	return w.at(base)
}

// at is the route with its service elsewhere, unless base is "".
func (w Way) at(base string) (Way, error) {
	if base == "" {
		return w, nil
	}
	to, ok := ParseBase(base)
	if !ok {
		return Way{}, thole.Errorf(thole.CodeInvalid, "invalid base URL of %s", w.Origin).WithHint("it must be http://HOST or https://HOST with a path, without a name or password")
	}
	w.Base, w.Name = to, to.Host
	return w, nil
}

// login is the route by the user's own login, none where there is no login.
func (u User) login(ctx context.Context, cli, base string) (Way, error) {
	w, err := u.Login(ctx, cli, u.Own.Own(cli), "your login of "+cli, base, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return Way{}, nil
	}
	return w, err
}

func (u User) getenv(name string) string {
	if v := u.Shell[name]; v != "" {
		return v
	}
	return u.owns(name)
}

// owns is a variable where the program runs.
func (u User) owns(name string) string {
	if u.Own.Getenv == nil || name == "" {
		return ""
	}
	return u.Own.Getenv(name)
}

// dir is where a CLI keeps its own settings.
func (u User) dir(cli string) string {
	row := table.Of(cli).Login
	if dir := u.owns(row.Variable); dir != "" {
		return dir
	}
	return filepath.Join(u.Own.Home, filepath.FromSlash(row.Dir))
}

// cannotPass is the error of a set-up that only the CLI itself can use.
func cannotPass(cli, what string) error {
	return thole.Errorf(thole.CodeUnsupported, "%s cannot go through the gateway with %s", cli, what).
		WithHint("use an API key, gateway.upstreams, or providers.hand_in_logins = [%q], with which agents read the login", cli)
}
