package provider

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// Login is the Credentials of a laptop: the user's own login of each CLI. It
// invents none; a CLI the user is not logged in to gets an empty grant, and says so
// itself in its first turn. What a grant holds reaches an agent, so there is no refresh
// token in it: the login is renewed here, and nothing of an executor ever comes back.
type Login struct {
	// Home is the user's home directory.
	Home string
	// Getenv reads the user's environment.
	Getenv func(string) string
	// HandIn names the CLIs whose login is handed in whole, as a person typed.
	HandIn []string
	// Client asks for new tokens; nil is one of our own.
	Client *http.Client
	// Renewed receives what became of a renewal: nil, or why there was none. It may be
	// nil.
	Renewed func(providerName string, failed error)
	// Now is the time, time.Now when nil.
	Now func() time.Time
}

var _ Credentials = Login{}

// kept is the user's own login of a CLI.
func (l Login) kept(providerName string) renewal {
	row := table.Of(providerName).Login
	return renewal{l, providerName, row, loginFile{l.file(row), row.Renewal.Lock}}
}

// unreadable keeps an error that says already what failed.
func unreadable(providerName string, err error) error {
	if thole.HintOf(err) != "" {
		return err
	}
	return thole.Errorf(thole.CodeUnavailable, "read the login of %s: %w", providerName, err).WithHint("log in with %s again", providerName)
}

func (l Login) file(s table.Login) string {
	if dir := l.getenv(s.Variable); dir != "" {
		return filepath.Join(dir, s.File)
	}
	return filepath.Join(l.Home, filepath.FromSlash(s.Dir), s.File)
}

func (l Login) getenv(name string) string {
	if l.Getenv == nil || name == "" {
		return ""
	}
	return l.Getenv(name)
}

func (l Login) now() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

// For implements Credentials. A login that ends soon is renewed first, so that a turn
// begins with one that lasts.
func (l Login) For(ctx context.Context, who For) (Grant, error) {
	providerName := who.Provider
	g := Grant{Env: map[string]string{}, Files: map[string][]byte{}}
	s := table.Of(providerName).Login
	for _, name := range s.Env {
		if v := l.getenv(name); v != "" {
			g.Env[name] = v
		}
	}
	if s.File == "" {
		return g, nil
	}
	login, err := l.kept(providerName).fresh(ctx, func(m members) bool { return l.ends(s.Renewal, m, lasts) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g, nil
	case err != nil && (login == nil || l.ends(s.Renewal, login, 0)):
		return Grant{}, unreadable(providerName, err)
	}
	if !slices.Contains(l.HandIn, providerName) {
		login = handed(s, login)
	}
	if len(login) > 0 {
		if g.Files[s.File], err = encodeLogin(login); err != nil {
			return Grant{}, thole.Errorf(thole.CodeInternal, "hand in the login of %s: %w", providerName, err)
		}
	}
	return g, nil
}

// Withheld lists the entries of a CLI's login that are not handed in because it cannot
// run on them without their refresh tokens.
func (l Login) Withheld(providerName string) (out []string) {
	s := table.Of(providerName).Login
	if s.Keys == "" || slices.Contains(l.HandIn, providerName) {
		return nil
	}
	login, err := l.kept(providerName).read(context.Background())
	if err != nil {
		return nil
	}
	given := handed(s, login)
	for name := range login {
		if _, is := given[name]; !is {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// handed is what an executor gets of a login: members that are known to be no refresh
// token.
func handed(s table.Login, login members) members {
	out := members{}
	if s.Keys != "" {
		for name, entry := range login {
			if e, ok := entry.(map[string]any); ok && e["type"] == s.Keys {
				out[name] = entry
			}
		}
		return out
	}
	for _, path := range s.Hands {
		if v := login.get(path); v != nil {
			out.set(path, v)
		}
	}
	for _, path := range s.Inert {
		if parent, _, _ := strings.Cut(path, "."); out[parent] != nil {
			out.set(path, "")
		}
	}
	return out
}
