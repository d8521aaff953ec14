package provider

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Login is the Credentials of a laptop: the user's own login of each CLI. It
// reads and never invents; a CLI the user is not logged in to gets an empty
// grant, and says so itself in its first turn.
type Login struct {
	// Home is the user's home directory.
	Home string
	// Getenv reads the user's environment.
	Getenv func(string) string
	// Kept receives what became of a login that an executor left and that differs: nil
	// when its tokens were taken, or why not. It may be nil.
	Kept func(providerName string, refused error)
}

var _ Credentials = Login{}

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

// For implements Credentials.
func (l Login) For(_ context.Context, providerName string) (Grant, error) {
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
	data, err := os.ReadFile(l.file(s))
	switch {
	case err == nil:
		g.Files[s.File] = data
	case !errors.Is(err, fs.ErrNotExist):
		return Grant{}, thole.Errorf(thole.CodeUnavailable, "read the login of %s: %w", providerName, err)
	}
	return g, nil
}

// Keep gives a login that a CLI refreshed in auth, its SessionConfig.Auth, back
// to the user: services invalidate the old one, so the user's own CLI would be
// logged out otherwise. given is the grant the session began with; a login that
// changed on both sides is left alone. Agents can write in auth, so of what is there
// only new tokens are taken, and anything else that changed is refused with the
// reason.
func (l Login) Keep(providerName, auth string, given Grant) error {
	s := table.Of(providerName).Login
	before, had := given.Files[s.File]
	if !had {
		return nil
	}
	left, err := readLeft(auth, s.File)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (bytes.Equal(before, left) || len(left) == 0) {
		return nil // a CLI that logged out has none
	}
	var after []byte
	if err == nil {
		after, err = refreshed(providerName, before, left)
	}
	if err != nil {
		err = thole.Errorf(thole.CodeForbidden, "the login of %s that an executor left was not taken: %w", providerName, err).
			WithHint("an agent may have tampered with it; if your own %s is logged out now, log in again", providerName)
		l.report(providerName, err)
		return err
	}
	path := l.file(s)
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		return nil //nolint:nilerr // the user logged out, or in again
	}
	if err := atomicfile.Write(path, after, 0o600); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "keep the refreshed login of %s: %w", providerName, err)
	}
	l.report(providerName, nil)
	return nil
}

func (l Login) report(providerName string, refused error) {
	if l.Kept != nil {
		l.Kept(providerName, refused)
	}
}

// Place writes a grant's files into dir, a SessionConfig.Auth, whatever an agent put
// in its place.
func (g Grant) Place(dir string) error {
	at, err := claimed(dir)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "place credentials: %w", err)
	}
	defer at.Close()
	for name, data := range g.Files {
		if name != filepath.Base(name) || name == "." || name == ".." {
			return thole.Errorf(thole.CodeInvalid, "credential file name %q is not a plain name", name)
		}
		if err := put(at, name, data); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "place credentials: %w", err)
		}
	}
	return nil
}

// claimed makes and opens a directory below one that agents cannot replace.
func claimed(dir string) (*beneath.Dir, error) {
	above, name := filepath.Split(filepath.Clean(dir))
	if err := os.MkdirAll(above, 0o700); err != nil {
		return nil, err
	}
	parent, err := beneath.Trusted(above)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if _, err := parent.Claim(name, 0o700); err != nil {
		return nil, err
	}
	return parent.Sub(name)
}
