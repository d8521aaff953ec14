package system

import (
	"net"
	"testing"

	"github.com/tholehq/thole/internal/config"
)

// The address that other servers get must lead to this one, and not to themselves.
func TestAddressForOtherServers(t *testing.T) {
	for what, c := range map[string]struct {
		ln, store string
		fixed     string // "" is any address that is not unspecified
	}{
		"one address":             {"10.1.2.3:7434", "postgres://thole@db.example.org/thole", "10.1.2.3:7434"},
		"the loopback":            {"127.0.0.1:7434", "postgres://thole@127.0.0.1/thole", "127.0.0.1:7434"},
		"all, database elsewhere": {"[::]:7434", "postgres://thole@192.0.2.1:5432/thole", ""},
		"all, database here":      {"0.0.0.0:7434", "postgres://thole@127.0.0.1:5432/thole", ""},
		"all, a socket":           {"0.0.0.0:7434", "postgres:///thole?host=/run/postgresql", ""},
	} {
		ln, err := net.ResolveTCPAddr("tcp", c.ln)
		if err != nil {
			t.Fatal(err)
		}
		got, err := reachedAt(t.Context(), ln, config.Store{URL: c.store})
		host, port, split := net.SplitHostPort(got)
		if ip := net.ParseIP(host); err != nil || split != nil || port != "7434" || ip == nil || ip.IsUnspecified() || c.fixed != "" && got != c.fixed {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}
