package guard_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/platform/guard"
)

func TestCheck(t *testing.T) {
	local := guard.New(guard.Config{})
	public := guard.New(guard.Config{Hosts: []string{"Agents.example.org"}, TLS: true})
	nav := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	for _, tc := range []struct {
		name   string
		g      *guard.Guard
		method string
		host   string
		header map[string]string
		ok     bool
	}{
		{"loopback", local, "GET", "127.0.0.1:7700", nil, true},
		{"localhost", local, "POST", "localhost:7700", nil, true},
		{"ipv6", local, "GET", "[::1]:7700", nil, true},
		{"rebinding", local, "GET", "evil.example:7700", nil, false},
		{"looks like loopback", local, "GET", "127.0.0.1.evil.example", nil, false},
		{"ends like localhost", local, "GET", "evil-localhost", nil, false},
		{"no host", local, "GET", "", nil, false},
		{"other address", local, "GET", "192.168.0.7:7700", nil, false},
		{"public name", public, "GET", "agents.example.org", nil, true},
		{"public name with a port", public, "GET", "agents.example.org:8443", nil, false},
		{"own origin", local, "POST", "localhost:7700", map[string]string{"Origin": "http://localhost:7700"}, true},
		{"other port", local, "POST", "localhost:7700", map[string]string{"Origin": "http://localhost:3000"}, false},
		{"other port reads", local, "GET", "localhost:7700", map[string]string{"Origin": "http://localhost:3000"}, false},
		{"other loopback name", local, "POST", "localhost:7700", map[string]string{"Origin": "http://127.0.0.1:7700"}, false},
		{"opaque origin", local, "POST", "localhost:7700", map[string]string{"Origin": "null"}, false},
		{"https page on http", local, "POST", "localhost:7700", map[string]string{"Origin": "https://localhost:7700"}, false},
		{"http page on https", public, "POST", "agents.example.org", map[string]string{"Origin": "http://agents.example.org"}, false},
		{"origin with user", local, "POST", "localhost:7700", map[string]string{"Origin": "http://a@localhost:7700"}, false},
		{"empty origin", local, "POST", "localhost:7700", map[string]string{"Origin": ""}, false},
		{"same-origin fetch", local, "POST", "localhost:7700", map[string]string{"Sec-Fetch-Site": "same-origin"}, true},
		{"same-site fetch", local, "GET", "localhost:7700", map[string]string{"Sec-Fetch-Site": "same-site"}, false},
		{"cross-site fetch", local, "GET", "localhost:7700", map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		{"followed link", local, "GET", "localhost:7700", nav, true},
		{"foreign form", local, "POST", "localhost:7700", nav, false},
		{"typed", local, "GET", "localhost:7700", map[string]string{"Sec-Fetch-Site": "none"}, true},
		{"typed post", local, "POST", "localhost:7700", map[string]string{"Sec-Fetch-Site": "none"}, false},
		{"foreign upgrade", local, "GET", "localhost:7700", map[string]string{"Upgrade": "websocket", "Origin": "http://evil.example"}, false},
		{"navigated upgrade", local, "GET", "localhost:7700", map[string]string{"Upgrade": "websocket", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, false},
		{"unknown word", local, "GET", "localhost:7700", map[string]string{"Sec-Fetch-Site": "whatever"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, "/x", nil)
			r.Host = tc.host
			for k, v := range tc.header {
				r.Header.Set(k, v)
			}
			if err := tc.g.Check(r); (err == nil) != tc.ok {
				t.Fatalf("Check = %v, want ok=%v", err, tc.ok)
			}
		})
	}
	r := httptest.NewRequest("POST", "/x", nil)
	r.Host = "localhost"
	r.Header["Origin"] = []string{"http://localhost", "http://evil.example"}
	if local.Check(r) == nil {
		t.Fatal("two origins passed")
	}
}

func TestHeaders(t *testing.T) {
	h := http.Header{}
	guard.New(guard.Config{}).Headers(h)
	csp := h.Get("Content-Security-Policy")
	for _, d := range strings.Split(csp, ";") {
		if f := strings.Fields(d); strings.HasPrefix(f[0], "script-src") && (len(f) != 2 || f[1] != "'self'") {
			t.Errorf("scripts may come from %v", f[1:])
		}
	}
	for _, want := range []string{"script-src 'self'", "frame-ancestors 'none'", "default-src 'none'", "base-uri 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("CSP lacks %q", want)
		}
	}
	if h.Get("Access-Control-Allow-Origin") != "" {
		t.Error("CORS header")
	}
}

func TestCheckListen(t *testing.T) {
	for addr, want := range map[string][2]bool{ // without and with a configured secret
		"127.0.0.1:7700": {true, true}, "localhost:0": {true, true}, "[::1]:1": {true, true}, "127.8.8.8:1": {true, true},
		"0.0.0.0:7700": {false, true}, ":7700": {false, true}, "[::]:1": {false, true}, "192.168.1.2:1": {false, true},
		"agents.example.org:1": {false, true}, "7700": {false, false},
	} {
		for i, configured := range []bool{false, true} {
			if err := guard.CheckListen(addr, configured); (err == nil) != want[i] {
				t.Errorf("CheckListen(%q, %v) = %v", addr, configured, err)
			}
		}
	}
}

// By its own address a server may be called: no name was made to resolve to it.
func TestHostIsTheAddressCalled(t *testing.T) {
	g := guard.New(guard.Config{})
	for host, want := range map[string]bool{"192.0.2.7:7433": true, "192.0.2.7": true, "192.0.2.8:7433": false, "agents.example.org": false, "0.0.0.0:7433": false} {
		r := httptest.NewRequest("GET", "http://"+host+"/", nil)
		local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7433}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		if err := g.Check(r); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}
