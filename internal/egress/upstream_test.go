package egress

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// upstream is a user's own proxy. It tunnels to the world's server whatever it is asked for and
// answers whole requests itself.
type upstream struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newUpstream(t *testing.T, w *world, start func(*httptest.Server)) *upstream {
	u := &upstream{}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, _, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		u.mu.Lock()
		u.asked = append(u.asked, r.Method+" "+r.RequestURI+" by "+user)
		u.mu.Unlock()
		if r.Method != http.MethodConnect {
			_, _ = rw.Write([]byte("hello " + r.URL.Hostname() + " from upstream"))
			return
		}
		if strings.HasPrefix(r.URL.Host, "no.") {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		target, err := net.Dial("tcp", w.server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		conn, buffered, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		go func() { _, _ = io.Copy(target, buffered); _ = target.Close() }()
		go func() { _, _ = io.Copy(conn, target); _ = conn.Close() }()
	}))
	start(u.Server)
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) took() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	asked := u.asked
	u.asked = nil
	return asked
}

func TestUpstream(t *testing.T) {
	for scheme, start := range map[string]func(*httptest.Server){"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS} {
		t.Run(scheme, func(t *testing.T) {
			w := newWorld(t)
			u := newUpstream(t, w, start)
			at, _ := url.Parse(u.URL)
			address := "me:secret@example.com:" + at.Port() // the name in httptest's certificate
			env := map[string]string{"HTTP_PROXY": scheme + "://" + address, "https_proxy": scheme + "://" + address, "NO_PROXY": "direct.example.com,10.0.0.0/8"}
			w.names["direct.example.com"] = []string{"93.184.216.40"}
			var direct []string
			p, proxy := w.proxy(Config{
				Policy: Open, Private: []string{"db.company:80", "hidden.corp:80"}, Upstream: Environment(func(k string) string { return env[k] }),
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					if strings.HasPrefix(address, "example.com:") {
						return (&net.Dialer{}).DialContext(ctx, network, at.Host)
					}
					direct = append(direct, address)
					return w.dial(ctx, network, address)
				}})
			if scheme == "https" {
				p.roots = x509.NewCertPool()
				p.roots.AddCert(u.Certificate())
			}
			for _, c := range []struct{ host, upstream, direct, want string }{
				{"public.example.com", "public.example.com", "", "hello"},
				{"only-upstream-knows.org", "only-upstream-knows.org", "", "hello"},
				{"93.184.216.34", "93.184.216.34", "", "hello"},
				{"direct.example.com", "", "93.184.216.40", "hello"},
				{"db.company", "db.company", "", "hello"},
				{"hidden.corp", "hidden.corp", "", "hello"},
				{"private.evil.com", "", "", "refused"},
				{"127.0.0.1", "", "", "refused"},
				{"169.254.169.254", "", "", "refused"},
				{"meta.evil.com", "", "", "refused"},
				{"intranet", "", "", "unknown"},
				{"secret.corp", "", "", "unknown"},
				{"metadata.google.internal", "", "", "unknown"},
				{"x.localhost", "", "", "unknown"},
			} {
				for protocol, ask := range protocols {
					direct = nil
					u.took()
					got := ask(t, proxy, c.host, "80")
					if got == "" {
						continue
					}
					ok := map[string]bool{"hello": strings.HasPrefix(got, "hello "+c.host), "refused": strings.HasPrefix(got, "403 ") || got == "socks 2",
						"unknown": strings.HasPrefix(got, "502 resolve") || got == "socks 4"}[c.want]
					if !ok {
						t.Errorf("%s by %s: got %q", c.host, protocol, got)
					}
					var want []string
					if c.upstream != "" {
						want = []string{"CONNECT " + c.upstream + ":80 by me"}
						if protocol == "http" {
							want = []string{"GET http://" + c.upstream + ":80/ by me"}
						}
					}
					if asked := u.took(); !slices.Equal(asked, want) {
						t.Errorf("%s by %s: upstream was asked %q", c.host, protocol, asked)
					}
					if (c.direct != "") != slices.Equal(direct, []string{c.direct + ":80"}) {
						t.Errorf("%s by %s: dialled %v", c.host, protocol, direct)
					}
				}
			}
			if got := protocols["connect"](t, proxy, "no.example.org", "80"); !strings.Contains(got, "it answered 403") || !strings.HasPrefix(got, "502 ") {
				t.Errorf("refused by upstream: %q", got)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	if Environment(func(string) string { return "" }) != nil {
		t.Error("an upstream without variables")
	}
	for _, value := range []string{"socks5://me:secret@127.0.0.1:1", "http://me:secret@pro xy", "http://me:secret@proxy:port", "http://me:secret@:80", "http://me:secret@proxy:", "http://me:secret@[::1%lo]:80", "\x01secret"} {
		w := newWorld(t)
		_, proxy := w.proxy(Config{Policy: Open, Upstream: Environment(func(k string) string { return map[string]string{"HTTPS_PROXY": value}[k] })})
		if got := protocols["connect"](t, proxy, "public.example.com", "443"); !strings.HasPrefix(got, "502 unsupported HTTP_PROXY") || strings.Contains(got, "secret") {
			t.Errorf("%q: got %q", value, got)
		}
		if dialled, _ := w.took(); len(dialled) > 0 {
			t.Errorf("%q: dialled %v", value, dialled)
		}
	}
}
