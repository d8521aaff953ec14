package preview

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

const (
	suffix     = ".localhost"
	enterPath  = "/.thole/enter" // the one path that is ours
	cookieName = "thole_preview"
	// unguardedPath is where the build that attacks are shown to succeed on puts ports:
	// below the page's own origin.
	unguardedPath = "/.preview/"

	maxHead = 256 << 10 // of an agent's answer
)

var errClosed = errors.New("the port was closed")

// idOf is the id of the port that a request is for, "" for none. An id is 26 letters
// and digits: no other name below localhost is taken for one.
func idOf(r *http.Request) string {
	if unguarded.Build {
		id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, unguardedPath), "/")
		if strings.HasPrefix(r.URL.Path, unguardedPath) {
			return id
		}
	}
	host := strings.ToLower(r.Host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	id, ok := strings.CutSuffix(host, suffix)
	if !ok || len(id) != 26 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return ""
	}
	return id
}

// Owns reports whether a request is for a port, open or not, and so for nothing else.
func (p *Previews) Owns(r *http.Request) bool { return p != nil && idOf(r) != "" }

// ServeHTTP answers on the origin of a port.
func (p *Previews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := idOf(r)
	if unguarded.Build {
		r.URL.Path, r.URL.RawPath = "/"+strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, unguardedPath+id), "/"), ""
	}
	p.mu.Lock()
	p.sweep()
	o := p.by[id]
	p.mu.Unlock()
	if o == nil {
		say(w, http.StatusForbidden, "nothing is shown here: the port was closed, its executor or thole ended, or there never was one\nopen it again: thole thread port THREAD PORT, or the page's Agent panel")
		return
	}
	if r.URL.Path == enterPath {
		p.enter(w, r, o)
		return
	}
	if cookies := r.CookiesNamed(cookieName); len(cookies) != 1 || subtle.ConstantTimeCompare([]byte(cookies[0].Value), []byte(o.secret)) != 1 {
		say(w, http.StatusForbidden, "this browser was not let in to port %d of the agent\nmake an address for it: thole thread port %s %d, or the page's Agent panel", o.Port.Port, o.Thread, o.Port.Port)
		return
	}
	select {
	case o.slots <- struct{}{}:
		defer func() { <-o.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		say(w, http.StatusServiceUnavailable, "%d requests to port %d are under way, as many as may be", maxRequests, o.Port.Port)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(o.ctx, func() { cancel(errClosed) })()
	o.proxy.ServeHTTP(final{w}, r.WithContext(ctx))
}

// enter lets a browser in that came with a ticket, and makes it forget the address.
func (p *Previews) enter(w http.ResponseWriter, r *http.Request, o *open) {
	p.mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	_, ok := o.tickets[ticket]
	ok = ok && r.Method == http.MethodGet
	if ok {
		delete(o.tickets, ticket)
	}
	p.mu.Unlock()
	if !ok {
		say(w, http.StatusForbidden, "this address was opened before, or is older than %s\nmake another: thole thread port %s %d, or the page's Agent panel", ticketLife, o.Thread, o.Port.Port)
		return
	}
	// Not Strict: such a cookie is not sent when a link of another site leads here, as ours does.
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: o.secret, Path: "/", MaxAge: int(o.ExpiresAt.Sub(p.cfg.Now()) / time.Second), HttpOnly: true,
		Secure: p.cfg.Page.Scheme == "https", SameSite: http.SameSiteLaxMode})
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	to := "/"
	if unguarded.Build {
		to = unguardedPath + o.ID + "/"
	}
	h.Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// say answers in plain words.
func say(w http.ResponseWriter, status int, format string, args ...any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	http.Error(w, thole.Errorf(thole.CodeForbidden, format, args...).Error(), status)
}

// proxy passes requests on to the agent's server and its answers back.
func (p *Previews) proxy(o *open) *httputil.ReverseProxy {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := p.cfg.Dial(ctx, o.Thread, o.executor, o.Port.Port)
			if thole.CodeOf(err) == thole.CodeGone || thole.CodeOf(err) == thole.CodeNotFound {
				p.close(o)
			}
			return conn, err
		},
		MaxConnsPerHost: maxRequests, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		MaxResponseHeaderBytes: maxHead, ForceAttemptHTTP2: false,
	}
	context.AfterFunc(o.ctx, transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // as it comes
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			// The agent's server sees the name that its page has: origins compare, redirects lead back.
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = "http", "agent", pr.In.Host
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
			withoutOurs(pr.Out.Header)
		},
		ModifyResponse: func(resp *http.Response) error { ownCookies(resp.Header); return nil },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			switch code := thole.CodeOf(err); {
			case errors.Is(context.Cause(r.Context()), errClosed), code == thole.CodeGone, code == thole.CodeNotFound:
				say(w, http.StatusForbidden, "the port was closed, or its executor ended\nopen it again: thole thread port %s %d", o.Thread, o.Port.Port)
			case code == thole.CodeConflict:
				say(w, http.StatusBadGateway, "nothing listens on port %d of the agent any more\nlet it start its server again, and reload", o.Port.Port)
			default:
				say(w, http.StatusBadGateway, "the agent's server on port %d did not answer as one: %v", o.Port.Port, err)
			}
		},
	}
}

// withoutOurs removes what proves to thole who a person is. The agent's own cookies and
// tokens stay.
func withoutOurs(h http.Header) {
	if unguarded.Build {
		return
	}
	h.Del("Thole-Proof")
	if strings.Contains(h.Get("Authorization"), "thole_") {
		h.Del("Authorization")
	}
	var keep []string
	for _, line := range h.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			if pair = strings.TrimSpace(pair); pair != "" && !ours(pair) {
				keep = append(keep, pair)
			}
		}
	}
	h.Del("Cookie")
	if len(keep) > 0 {
		h.Set("Cookie", strings.Join(keep, "; "))
	}
}

// ours reports whether a cookie, as NAME=VALUE, has a name of thole's.
func ours(pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	return strings.HasPrefix(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "__host-"), "thole_")
}

// ownCookies keeps an agent's cookies on its own host, and what binds a browser for
// longer than the port lives away from it.
func ownCookies(h http.Header) {
	if unguarded.Build {
		return
	}
	h.Del("Strict-Transport-Security")
	h.Del("Alt-Svc")
	lines := h.Values("Set-Cookie")
	h.Del("Set-Cookie")
	for _, line := range lines {
		if ours(line) {
			continue
		}
		var keep []string
		for part := range strings.SplitSeq(line, ";") {
			if name, _, _ := strings.Cut(part, "="); len(keep) > 0 && strings.EqualFold(strings.TrimSpace(name), "domain") {
				continue
			}
			keep = append(keep, part)
		}
		h.Add("Set-Cookie", strings.Join(keep, ";"))
	}
}

// final passes on no answer but the last one: hints that come before it have headers
// that nobody looked at.
type final struct{ http.ResponseWriter }

func (f final) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		f.ResponseWriter.WriteHeader(status)
	}
}

func (f final) Unwrap() http.ResponseWriter { return f.ResponseWriter }
