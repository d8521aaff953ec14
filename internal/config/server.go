package config

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/roster"
)

// Server is this process among the servers of a PostgreSQL store.
type Server struct {
	Roles []string `toml:"roles"`
	// Listen is where other servers reach this one, and Address what they call that.
	Listen  string `toml:"listen"`
	Address string `toml:"address"`
}

// leaseTimeout is the default of executor.orphan_timeout on PostgreSQL, where other servers
// wait for it.
const leaseTimeout = time.Minute

func roleNames() (out []string) {
	for _, r := range roster.Roles() {
		out = append(out, string(r))
	}
	return out
}

// Has reports whether a server has a role.
func (s Server) Has(r roster.Role) bool { return slices.Contains(s.Roles, string(r)) }

// All reports whether it has every role.
func (s Server) All() bool {
	return !slices.ContainsFunc(roster.Roles(), func(r roster.Role) bool { return !s.Has(r) })
}

func (c *Config) checkServer() error {
	for _, r := range c.Server.Roles {
		if !slices.Contains(roleNames(), r) {
			return c.bad("server.roles", "must be of %s, not %q", strings.Join(roleNames(), ", "), r)
		}
	}
	for key, at := range map[string]string{"server.listen": c.Server.Listen, "server.address": c.Server.Address} {
		if _, _, err := net.SplitHostPort(at); at != "" && err != nil {
			return c.bad(key, "must be HOST:PORT, not %q", at)
		}
	}
	switch {
	case len(c.Server.Roles) == 0:
		return c.bad("server.roles", "must name at least one of %s", strings.Join(roleNames(), ", "))
	case !c.Server.All() && !c.Store.Postgres():
		return c.bad("server.roles", "must be all of %s where the store is SQLite: there is no other server", strings.Join(roleNames(), ", "))
	}
	return nil
}
