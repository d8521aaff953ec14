package config

import (
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/tholehq/thole/internal/gateway/upstream"
)

// Gateway is how agents reach models.
type Gateway struct {
	Record    bool      `toml:"record"` // keep what agents and models say to each other
	Tools     bool      `toml:"tools"`  // let models search, fetch and run code at their service
	Upstreams Upstreams `toml:"upstreams"`
}

// Upstreams are model services, in the order in which they are tried.
type Upstreams []Upstream

// Upstream is one, as upstream.Entry says.
type Upstream struct {
	Name      string            `toml:"name"`
	Dialect   string            `toml:"dialect"`
	BaseURL   string            `toml:"base_url"`
	Models    []string          `toml:"models"`
	Rename    map[string]string `toml:"rename"`
	Key       string            `toml:"key"`
	Auth      string            `toml:"auth"`
	FirstByte time.Duration     `toml:"first_byte"`
	Parallel  int               `toml:"parallel"`
	Routes    []string          `toml:"routes"`
}

// Entries are the upstreams as the gateway takes them.
func (u Upstreams) Entries() []upstream.Entry {
	var out []upstream.Entry
	for _, one := range u {
		out = append(out, upstream.Entry(one))
	}
	return out
}

// names is how they are shown in one line.
func (u Upstreams) names() string {
	var out []string
	for _, one := range u {
		out = append(out, one.Name)
	}
	return strings.Join(out, ",")
}

// parseUpstreams reads what a file has after "upstreams =".
func parseUpstreams(text string) (Upstreams, error) {
	var in struct{ Upstreams Upstreams }
	meta, err := toml.Decode("upstreams = "+text, &in)
	if unknown := meta.Undecoded(); err == nil && len(unknown) > 0 {
		return nil, errUnknown(unknown[0].String())
	}
	return in.Upstreams, err
}

type errUnknown string

func (e errUnknown) Error() string { return "unknown key " + string(e) }

func (c *Config) checkUpstreams() error {
	if _, err := upstream.New(upstream.Config{Entries: c.Gateway.Upstreams.Entries()}); err != nil {
		return c.bad("gateway.upstreams", "%s", err)
	}
	return nil
}
