package httpapi_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/audit/anchor"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/tholetest"
)

// TestOnlyTrustedProxiesSayWhere a request comes from: what a client wrote itself is not what a
// proxy saw.
func TestOnlyTrustedProxiesSayWhere(t *testing.T) {
	for _, c := range []struct {
		name, want string
		proxies    []string
		forwarded  []string
	}{
		{"nobody is trusted", "127.0.0.1", nil, []string{"192.0.2.7"}},
		{"others are", "127.0.0.1", []string{"10.0.0.0/8"}, []string{"192.0.2.7"}},
		{"the proxy says so", "192.0.2.7", []string{"127.0.0.0/8"}, []string{"192.0.2.7"}},
		{"a client wrote one before", "192.0.2.7", []string{"127.0.0.0/8"}, []string{"203.0.113.9, 192.0.2.7"}},
		{"in a header of its own", "192.0.2.7", []string{"127.0.0.0/8"}, []string{"203.0.113.9", "192.0.2.7"}},
		{"two proxies", "192.0.2.7", []string{"127.0.0.0/8", "10.0.0.0/8"}, []string{"203.0.113.9, 192.0.2.7, 10.1.1.1"}},
		{"the first of two is not trusted", "10.1.1.1", []string{"127.0.0.0/8"}, []string{"192.0.2.7, 10.1.1.1"}},
		{"nothing that is an address", "127.0.0.1", []string{"127.0.0.0/8"}, []string{"192.0.2.7, unknown"}},
		{"no header", "127.0.0.1", []string{"127.0.0.0/8"}, nil},
		{"version 6", "2001:db8::7", []string{"127.0.0.0/8"}, []string{"2001:db8::7"}},
		{"version 4 in 6", "192.0.2.7", []string{"127.0.0.0/8"}, []string{"::ffff:192.0.2.7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var trail *audit.Log
			kit := tholetest.New(t)
			g := rigOn(t, kit, func(cfg *httpapi.Config) {
				trail = audit.New(kit.Store().Audit(), anchor.Dir(t.TempDir()), nil, nil)
				cfg.Audit = trail
				for _, p := range c.proxies {
					cfg.TrustedProxies = append(cfg.TrustedProxies, netip.MustParsePrefix(p))
				}
			})
			stranger := &caller{g: g, header: http.Header{"Authorization": {"Bearer thole_none"}, "X-Forwarded-For": c.forwarded, "Thole-Address": {"203.0.113.1"}}}
			stranger.call(401, "GET", "/sessions", nil, nil)
			all, err := trail.Latest(ctx, audit.Filter{Outcome: audit.Denied})
			if err != nil || len(all) != 1 || all[0].Address != c.want {
				t.Errorf("%v: %+v, want %s", err, all, c.want)
			}
		})
	}
}
