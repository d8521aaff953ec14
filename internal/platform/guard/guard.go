// Package guard keeps browsers honest in front of the HTTP side: which Host names
// count as ours (against DNS rebinding), which Origins may act, what a page of
// ours may load, how the session cookie is shaped, and on which addresses a server
// may listen at all. It decides
// by headers alone; who the user is belongs to the session package.
//
// It sends no CORS header, ever: no other origin may read an answer.
package guard

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

// Config says under which names a server is reached.
type Config struct {
	// Hosts are names besides the loopback ones ("thole.example.org", or with a
	// port when it is not the scheme's own). Empty: loopback only.
	Hosts []string
	// TLS: pages are https, here or at a proxy in front.
	TLS bool
}

// Guard checks requests.
type Guard struct {
	hosts  []string
	scheme string
}

// New makes a guard.
func New(c Config) *Guard {
	g := &Guard{scheme: "http"}
	if c.TLS {
		g.scheme = "https"
	}
	for _, h := range c.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	return g
}

// host reports whether the Host header names us: by a configured name, by a
// loopback one, or by the very address the connection came in on, which no name
// was made to resolve to. The port is the one the connection came in on.
func (g *Guard) host(r *http.Request) bool {
	h := strings.ToLower(r.Host)
	if slices.Contains(g.hosts, h) {
		return true
	}
	name := hostname(h)
	if name == "localhost" || name == "127.0.0.1" || name == "::1" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return err == nil && ok && local.AddrPort().Addr().Unmap() == ip.Unmap()
}

func hostname(hostport string) string {
	if n, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = n
	}
	return strings.Trim(hostport, "[]")
}

func loopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Check refuses a request that a foreign page may have caused.
func (g *Guard) Check(r *http.Request) error {
	if unguarded.Build {
		return nil
	}
	if !g.host(r) {
		return thole.Errorf(thole.CodeForbidden, "host %q is not served here", r.Host).
			WithHint("add it to http.allowed_hosts in the configuration if it is yours")
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 && (len(origins) > 1 || !g.sameOrigin(origins[0], r.Host)) {
		return thole.Errorf(thole.CodeForbidden, "requests from other origins are refused")
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin":
		return nil
	case "none": // typed, bookmarked, opened from a program
		if safe(r) {
			return nil
		}
	default: // same-site is another port of this host: not us
		if safe(r) && navigation(r) {
			return nil
		}
	}
	return thole.Errorf(thole.CodeForbidden, "requests from other sites are refused")
}

// Acts reports whether a request changes something or opens a two-way line, and
// so, with a cookie as its proof, must say where it comes from.
func Acts(r *http.Request) bool { return !safe(r) }

// Declared reports whether the browser said where the request comes from. Check
// has judged what it said.
func Declared(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

func safe(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == ""
}

// navigation is the user following a link to a page.
func navigation(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (g *Guard) sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == g.scheme && u.Host != "" && strings.EqualFold(u.Host, host) &&
		u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == ""
}

// CSP lets pages load from us and nowhere else and run no inline script. Inline
// styles are allowed: they cannot act, and diagram and code views need them.
const CSP = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self'; media-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Headers sets what every answer carries.
func (g *Guard) Headers(h http.Header) {
	if unguarded.Build {
		h.Set("Content-Security-Policy", strings.TrimSuffix(CSP, "; frame-ancestors 'none'"))
	} else {
		h.Set("Content-Security-Policy", CSP)
		h.Set("X-Frame-Options", "DENY")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	if g.scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// CheckListen refuses to listen beyond this machine for a server that only the
// login link protects: the link is printed where the server runs, and a user who
// comes over the network needs a secret that was configured for them.
func CheckListen(addr string, configured bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "listen address %q: %w", addr, err).WithHint("use host:port, for example 127.0.0.1:7700")
	}
	if !configured && !loopback(host) {
		return thole.Errorf(thole.CodeForbidden, "refusing to listen on %s: it is not a loopback address, and no API token exists for clients of the network", addr).
			WithHint("listen on 127.0.0.1, or make a token first with: thole token create NAME")
	}
	return nil
}
