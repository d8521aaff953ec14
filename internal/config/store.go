package config

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
)

// Store says where rows are kept.
type Store struct {
	URL          string `toml:"url"` // sqlite: or postgres://…, never with a password
	PasswordFile string `toml:"password_file"`
}

// Postgres reports whether rows are kept in PostgreSQL and not in the home.
func (s Store) Postgres() bool { return s.URL != "" && s.URL != "sqlite:" }

// DSN is the connection string of PostgreSQL. It holds the password and is never printed.
func (s Store) DSN() (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", thole.Errorf(thole.CodeInvalid, "store.url cannot be parsed") // checked before; may hold anything
	}
	if s.PasswordFile == "" {
		return u.String(), nil
	}
	text, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", thole.Errorf(thole.CodeInvalid, "store.password_file: %w", err).WithHint("it holds the password and nothing else, and the user of the server can read it")
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", thole.Errorf(thole.CodeInvalid, "store.password_file %s is empty", s.PasswordFile).WithHint("it holds the password and nothing else")
	}
	q := u.Query()
	q.Set("password", password)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

func (c *Config) checkStore() error {
	s := c.Store
	if s.PasswordFile != "" && !filepath.IsAbs(s.PasswordFile) {
		return c.bad("store.password_file", "must be an absolute path, not %q", s.PasswordFile)
	}
	if !s.Postgres() {
		if s.PasswordFile != "" {
			return c.bad("store.password_file", "is for PostgreSQL, and store.url is not set to it")
		}
		return nil
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return c.bad("store.url", "cannot be parsed") // it may hold a password
	case u.Scheme == "sqlite":
		return c.bad("store.url", "must be sqlite: alone, the store of the home, or postgres://USER@HOST/DATABASE")
	case u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Opaque != "":
		return c.bad("store.url", "must begin with postgres:// or be sqlite:")
	case strings.Trim(u.Path, "/") == "" && u.Query().Get("dbname") == "":
		return c.bad("store.url", "names no database: postgres://USER@HOST/DATABASE")
	}
	if _, set := u.User.Password(); set || u.Query().Has("password") {
		return c.bad("store.url", "has a password, which everybody who sees the configuration would read; put it into a file and name that in store.password_file, or set PGPASSFILE")
	}
	return nil
}
