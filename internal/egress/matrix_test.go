package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tholehq/thole/internal/unguarded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the network around a proxy: names, and one real server on loopback that stands
// at every address. It records which addresses were dialled and which names were looked up.
type world struct {
	t      *testing.T
	names  map[string][]string
	server *httptest.Server
	log    []Connection

	mu              sync.Mutex
	dialled, looked []string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, names: map[string][]string{
		"public.example.com": {"93.184.216.34"},
		"other.example.com":  {"93.184.216.35", "2606:2800:220:1::1"},
		"loop.evil.com":      {"127.0.0.1"},
		"private.evil.com":   {"10.1.2.3"},
		"mixed.evil.com":     {"93.184.216.34", "10.1.2.3"},
		"mapped.evil.com":    {"::ffff:192.168.1.1"},
		"meta.evil.com":      {"169.254.169.254"},
		"nat64.evil.com":     {"64:ff9b::a9fe:a9fe"},
		"me.evil.com":        {"93.184.216.99"},
		"localhost":          {"127.0.0.1", "::1"},
		"db.company":         {"10.9.9.9"},
		"gitmeta.company":    {"169.254.169.254"},
		"mapmeta.company":    {"::ffff:169.254.169.254"},
	}}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/to/"):
			http.Redirect(rw, r, "http://"+strings.TrimPrefix(r.URL.Path, "/to/")+"/", http.StatusFound)
		default:
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(rw, "hello %s %s", r.Host, body)
		}
	}))
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	w.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
}

func (w *world) resolve(_ context.Context, host string) (out []netip.Addr, err error) {
	w.mu.Lock()
	w.looked = append(w.looked, host)
	w.mu.Unlock()
	for _, s := range w.names[host] {
		out = append(out, netip.MustParseAddr(s))
	}
	if out == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return out, nil
}

func (w *world) record(c Connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, c)
}

func (w *world) took() (dialled []string, log []Connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dialled, log = w.dialled, w.log
	w.dialled, w.log, w.looked = nil, nil, nil
	return dialled, log
}

// proxy serves c on loopback in this world and returns its address.
func (w *world) proxy(c Config) (*Proxy, string) {
	w.t.Helper()
	c.Resolve, c.Log = w.resolve, w.record
	if c.Dial == nil {
		c.Dial = w.dial
	}
	c.Own = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("93.184.216.99")} }
	p, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	w.t.Cleanup(func() {
		_ = p.Close()
		if err := <-served; err != nil {
			w.t.Errorf("serve: %v", err)
		}
	})
	return p, l.Addr().String()
}

// protocols are the ways to ask the proxy for a GET of a target. Each returns the answer's text, or
// how it was refused: "403 …" or "socks 2".
var protocols = map[string]func(t *testing.T, proxy, host, port string) string{
	"connect": func(t *testing.T, proxy, host, port string) string {
		c := dialTest(t, proxy)
		fmt.Fprintf(c, "CONNECT %s:%s HTTP/1.1\r\nHost: x\r\n\r\n", bracket(host), port)
		r := bufio.NewReader(c)
		answer, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
		if err != nil {
			return "error " + err.Error()
		}
		if answer.StatusCode != 200 {
			text, _ := io.ReadAll(io.LimitReader(r, answer.ContentLength))
			return answer.Status[:3] + " " + string(text)
		}
		return get(t, c, r, host)
	},
	"http": func(t *testing.T, proxy, host, port string) string {
		c := dialTest(t, proxy)
		fmt.Fprintf(c, "GET http://%s:%s/ HTTP/1.1\r\nHost: decoy.example.com\r\nConnection: close\r\n\r\n", strings.ReplaceAll(bracket(host), "%", "%25"), port)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return "error " + err.Error()
		}
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != 200 {
			return answer.Status[:3] + " " + string(text)
		}
		return string(text)
	},
	"socks name": func(t *testing.T, proxy, host, port string) string {
		if len(host) > 255 {
			return "" // cannot be said
		}
		return socks(t, proxy, append([]byte{3, byte(len(host))}, host...), host, port)
	},
	"socks address": func(t *testing.T, proxy, host, port string) string {
		a, err := netip.ParseAddr(host)
		if err != nil || a.Zone() != "" {
			return "" // cannot be said
		}
		kind := byte(4)
		if a.Is4() {
			kind = 1
		}
		return socks(t, proxy, append([]byte{kind}, a.AsSlice()...), host, port)
	},
}

func socks(t *testing.T, proxy string, address []byte, host, port string) string {
	c := dialTest(t, proxy)
	var n uint16
	fmt.Sscan(port, &n)
	c.Write([]byte{5, 2, 0, 2})
	c.Write(append(append([]byte{5, 1, 0}, address...), byte(n>>8), byte(n)))
	var b [12]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return "error " + err.Error()
	}
	if b[3] != 0 {
		return fmt.Sprintf("socks %d", b[3])
	}
	return get(t, c, bufio.NewReader(c), host)
}

func get(t *testing.T, c net.Conn, r *bufio.Reader, host string) string {
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", bracket(host))
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return "error " + err.Error()
	}
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func dialTest(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// forbidden are the targets that an agent must not reach, by what they are.
var forbidden = map[string][]string{
	"loopback":     {"127.0.0.1", "127.8.9.1", "127.0.0.1.", "::1", "0.0.0.0", "0.1.2.3", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "2002:7f00:1::1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "localhost", "LOCALHOST.", "loop.evil.com"},
	"private":      {"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "fc00::1", "fd12:3456::1", "fec0::1", "::ffff:10.0.0.1", "2002:a00:1::1", "64:ff9b::a00:1", "private.evil.com", "mixed.evil.com", "mapped.evil.com"},
	"reserved":     {"192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.0.0.8", "240.0.0.1", "255.255.255.255", "192.88.99.1", "2001:db8::1", "2001::1", "100::1", "4000::1", "5f00::1", "2002:808:808::1", "3fff::1"},
	"multicast":    {"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"},
	"metadata":     {"169.254.169.254", "169.254.170.2", "169.254.0.23", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "2002:a9fe:a9fe::1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "fe80::1", "fe80::a9fe:a9fe", "meta.evil.com", "nat64.evil.com"},
	"this machine": {"93.184.216.99", "::ffff:93.184.216.99", "me.evil.com"},
	"form": {"2130706433", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.01", "0", "127.0.0.1.0", "1.2.3.256", "169.254.43518", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
		"fe80::1%eth0", "::1%lo", "fe80::1%25eth0", "１２７.０.０.１", "127。0。0。1", "loc alhost", "a@127.0.0.1", "127.0.0.1#.example.com", "", ".", "..", "a..b", "-\x00.com", strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 130) + "com", strings.Repeat("a.", 126) + "co"},
}

func TestForbiddenTargets(t *testing.T) {
	w := newWorld(t)
	_, proxy := w.proxy(Config{Policy: Open, Names: []string{"*.evil.com", "10.1.2.3"}})
	for kind, hosts := range forbidden {
		for _, host := range hosts {
			for protocol, ask := range protocols {
				w.took()
				got := ask(t, proxy, host, "80")
				if got == "" {
					continue
				}
				// net/http itself answers 400 to a request line that is not one.
				if !strings.HasPrefix(got, "403 ") && got != "socks 2" && (kind != "form" || !strings.HasPrefix(got, "400 ")) {
					t.Errorf("%s %q by %s: got %q", kind, host, protocol, got)
				}
				dialled, log := w.took()
				if len(dialled) > 0 {
					t.Errorf("%s %q by %s: dialled %v", kind, host, protocol, dialled)
				}
				if !strings.HasPrefix(got, "400 ") && (len(log) != 1 || log[0].Verdict != Refused || log[0].Why == "") {
					t.Errorf("%s %q by %s: logged %+v", kind, host, protocol, log)
				}
			}
		}
	}
}

func TestAllowedTargets(t *testing.T) {
	all := []string{"public.example.com", "other.example.com", "93.184.216.34", "2606:2800:220:1::1", "64:ff9b::808:808", "10.9.9.9", "db.company", "10.5.5.5", "model.company", "127.0.0.1"}
	const private, model = "8080", "9090"
	base := Config{
		Names:   []string{"public.example.com", "*.other.com", "OTHER.example.com.:80"},
		Private: []string{"db.company:8080", "10.9.9.9:8080", "127.0.0.1:8080"},
		Models:  []string{"10.5.5.5:9090", "model.company:9090", "127.0.0.1:9090"},
	}
	models := []string{"10.5.5.5:9090", "model.company:9090", "127.0.0.1:9090"}
	named := append([]string{"db.company:8080", "10.9.9.9:8080", "127.0.0.1:8080"}, models...)
	list := append([]string{"public.example.com:80", "public.example.com:8080", "public.example.com:9090", "other.example.com:80"}, named...)
	open := slices.Clone(named)
	for _, host := range all[:5] {
		for _, port := range []string{"80", private, model} {
			open = append(open, net.JoinHostPort(host, port))
		}
	}
	for policy, want := range map[Policy][]string{None: nil, Gateway: models, List: list, Open: open} {
		w := newWorld(t)
		w.names["model.company"] = []string{"10.5.5.6"}
		c := base
		c.Policy = policy
		_, proxy := w.proxy(c)
		for _, host := range all {
			for _, port := range []string{"80", private, model} {
				for protocol, ask := range protocols {
					w.took()
					got := ask(t, proxy, host, port)
					if got == "" {
						continue
					}
					if slices.Contains(want, net.JoinHostPort(host, port)) != strings.HasPrefix(got, "hello "+bracket(host)) {
						t.Errorf("policy %s, %s port %s by %s: got %q", policy, host, port, protocol, got)
					}
				}
			}
		}
	}
}

// A refused name is not looked up: the lookup itself would carry it out.
func TestRefusedNameIsNotResolved(t *testing.T) {
	w := newWorld(t)
	for _, policy := range []Policy{None, Gateway, List} {
		_, proxy := w.proxy(Config{Policy: policy})
		for protocol, ask := range protocols {
			ask(t, proxy, "secret.evil.com", "53")
			if len(w.looked) > 0 {
				t.Errorf("policy %s by %s: looked up %v", policy, protocol, w.looked)
			}
		}
	}
}

// Metadata stays out of reach when a person named it by mistake, by name or through a name.
func TestMetadataNeverReachable(t *testing.T) {
	w := newWorld(t)
	hosts := append(slices.Clone(forbidden["metadata"]), "gitmeta.company", "mapmeta.company")
	var named []string
	for _, h := range hosts {
		named = append(named, net.JoinHostPort(h, "80"))
	}
	_, proxy := w.proxy(Config{Policy: Open, Private: named, Models: named})
	for _, host := range hosts {
		for protocol, ask := range protocols {
			if got := ask(t, proxy, host, "80"); got != "" && got != "socks 2" && !strings.HasPrefix(got, "403 ") {
				t.Errorf("%s by %s: got %q", host, protocol, got)
			}
		}
	}
	if dialled, _ := w.took(); len(dialled) > 0 {
		t.Errorf("dialled %v", dialled)
	}
}

// A name that answers first with a public and then with a private address: the checked address is dialled.
func TestRebinding(t *testing.T) {
	for protocol, ask := range protocols {
		w := newWorld(t)
		p, proxy := w.proxy(Config{Policy: Open})
		lookups := 0
		p.c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			lookups++
			if lookups == 1 {
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		if got := ask(t, proxy, "rebind.evil.com", "80"); got == "" {
			continue
		}
		if dialled, _ := w.took(); !slices.Equal(dialled, []string{"93.184.216.34:80"}) || lookups != 1 {
			t.Errorf("%s: dialled %v after %d lookups", protocol, dialled, lookups)
		}
		if got := ask(t, proxy, "rebind.evil.com", "80"); got != "socks 2" && !strings.HasPrefix(got, "403 ") {
			t.Errorf("%s: the second answer was not refused: %q", protocol, got)
		}
	}
}

// A redirect is answered to the client; following it is a new request, decided again.
func TestRedirect(t *testing.T) {
	w := newWorld(t)
	_, proxy := w.proxy(Config{Policy: Open})
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}), DisableKeepAlives: true}}
	for _, to := range []string{"127.0.0.1", "169.254.169.254", "private.evil.com", "[::1]", "0x7f.1"} {
		w.took()
		answer, err := client.Get("http://public.example.com/to/" + to)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		dialled, _ := w.took()
		if answer.StatusCode != http.StatusForbidden || !slices.Equal(dialled, []string{"93.184.216.34:80"}) {
			t.Errorf("redirect to %s: %s, dialled %v", to, answer.Status, dialled)
		}
	}
	answer, err := client.Get("http://public.example.com/to/other.example.com")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if string(text) != "hello other.example.com " {
		t.Errorf("allowed redirect: %s %q", answer.Status, text)
	}
}

func TestRefusalTexts(t *testing.T) {
	for _, c := range []struct {
		c          Config
		host, want string
	}{
		{Config{Policy: None}, "public.example.com", `connection to public.example.com:80 refused: egress.policy "none" allows no connection; a person can set egress.policy to "gateway", "list" or "open"`},
		{Config{Policy: Gateway}, "public.example.com", `connection to public.example.com:80 refused: egress.policy "gateway" allows the configured models only; a person can set egress.policy to "list" or "open"`},
		{Config{Policy: List}, "public.example.com", `connection to public.example.com:80 refused: egress.policy "list" allows only what egress.names has; a person can add "public.example.com" to egress.names, or set egress.policy to "open"`},
		{Config{Policy: Open}, "private.evil.com", `connection to private.evil.com:80 refused: it resolves to 10.1.2.3, a private address; a person can add "private.evil.com:80" to egress.private`},
		{Config{Policy: Open}, "10.1.2.3", `connection to 10.1.2.3:80 refused: it is a private address; a person can add "10.1.2.3:80" to egress.private`},
		{Config{Policy: Open}, "169.254.169.254", `connection to 169.254.169.254:80 refused: it is a metadata address, which no setting allows`},
		{Config{Policy: Open}, "0x7f.1", `invalid target "0x7f.1": addresses are accepted in their usual form only`},
	} {
		w := newWorld(t)
		_, proxy := w.proxy(c.c)
		for _, protocol := range []string{"connect", "http"} {
			if got := protocols[protocol](t, proxy, c.host, "80"); got != "403 "+c.want+"\n" {
				t.Errorf("%s of %s:\n got %q\nwant %q", protocol, c.host, got, c.want)
			}
		}
	}
}

// A public name or address that leads to a service of this machine, of its network or
// of its cloud is refused: the build without the guards goes there.
func TestAgentsReachNoServiceOfThisMachine(t *testing.T) {
	w := newWorld(t)
	_, proxy := w.proxy(Config{Policy: Open})
	for _, host := range []string{"me.evil.com", "93.184.216.99", "loop.evil.com", "10.1.2.3", "meta.evil.com"} {
		for protocol, get := range protocols {
			answer := get(t, proxy, host, "80")
			if answer == "" { // it has no way to say so
				continue
			}
			if dialled, _ := w.took(); (len(dialled) > 0) != unguarded.Build {
				t.Errorf("%s by %s: dialled %v, answered %q", host, protocol, dialled, answer)
			}
		}
	}
}

// Where the machine's own addresses cannot be listed, none is taken for a public one.
func TestOwnAddressesThatAreNotKnown(t *testing.T) {
	w := newWorld(t)
	p, proxy := w.proxy(Config{Policy: Open})
	p.c.Own = func() []netip.Addr { return nil }
	for name, get := range protocols {
		answer := get(t, proxy, "me.evil.com", "80")
		if dialled, _ := w.took(); len(dialled) > 0 {
			t.Errorf("%s: dialled %v, answered %q", name, dialled, answer)
		}
	}
}
