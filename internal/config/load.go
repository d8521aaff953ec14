package config

import (
	"errors"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
)

// Origin says where a key's value came from.
func (c *Config) Origin(key string) string {
	if o := c.origin[key]; o != "" {
		return o
	}
	return "default"
}

// HomeDir resolves the home: the flag, $THOLE_HOME, or ~/.thole.
func HomeDir(flag string, getenv func(string) string) (string, error) {
	for _, dir := range []string{flag, getenv("THOLE_HOME")} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	user := getenv("HOME")
	if user == "" {
		return "", thole.Errorf(thole.CodeInvalid, "no home directory: neither --home, THOLE_HOME nor HOME is set").
			WithHint("set THOLE_HOME to a directory of your own")
	}
	return filepath.Join(user, ".thole"), nil
}

// LoginRooms is the directory of a home in which agent CLIs log in.
const LoginRooms = "login-rooms"

// File is where a home's configuration file is.
func File(home string) string { return filepath.Join(home, "config.toml") }

// Load reads the layers of one home. The file is the one that the home was bound with, or
// its own.
func Load(home string, getenv func(string) string, flags map[string]string) (*Config, error) {
	bound, err := BoundTo(home)
	if err != nil {
		return nil, err
	}
	if bound != nil && bound.Config != "" {
		return LoadFile(bound.Config, home, getenv, flags)
	}
	return load("", home, getenv, flags)
}

// LoadFile reads the layers of one home with a named file in the place of its own.
func LoadFile(file, home string, getenv func(string) string, flags map[string]string) (*Config, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read config: %w", err)
	}
	return load(file, home, getenv, flags)
}

// NamedFile is the configuration file that was named, "" for the home's own.
func (c *Config) NamedFile() string { return c.file }

func load(file, home string, getenv func(string) string, flags map[string]string) (*Config, error) {
	c := Default()
	c.Home, c.file = home, file
	c.origin = map[string]string{}
	from := file
	if from == "" {
		from = File(home)
	}
	text, err := os.ReadFile(from)
	if err != nil && (file != "" || !os.IsNotExist(err)) {
		return nil, thole.Errorf(thole.CodeUnavailable, "read config: %w", err).WithHint("name a file that this user can read with --config")
	}
	if err := c.decode(from, string(text)); err != nil {
		return nil, err
	}
	if err := c.overlay(getenv, flags); err != nil {
		return nil, err
	}
	variable := Variable("executor.bubblewrap")
	if err := errors.Join(retired(from, c.Executor.Bubblewrap), retired(variable, getenv(variable))); err != nil {
		return nil, err
	}
	if c.Store.Postgres() && c.origin["executor.orphan_timeout"] == "" {
		c.Executor.OrphanTimeout = leaseTimeout
	}
	return &c, c.Validate()
}
