package preview_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/preview"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/unguarded"
)

const thread = thole.ThreadID("01900000-0000-7000-8000-000000000001")

// rig is an agent's web server, the ports that lead to it, and a browser.
type rig struct {
	*preview.Previews
	t        *testing.T
	site     *httptest.Server
	executor atomic.Value // thole.ExecutorID that runs, "" for none
	now      atomic.Int64
}

func newRig(t *testing.T, agent http.HandlerFunc) *rig {
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	g := &rig{t: t}
	g.executor.Store(thole.ExecutorID("x1"))
	g.now.Store(time.Now().UnixNano())
	g.Previews = preview.New(preview.Config{
		Page: &url.URL{Scheme: "http", Host: "127.0.0.1:7433"}, Now: func() time.Time { return time.Unix(0, g.now.Load()) },
		Running: func(context.Context, thole.ThreadID) (thole.ExecutorID, error) {
			if x := g.executor.Load().(thole.ExecutorID); x != "" {
				return x, nil
			}
			return "", thole.Errorf(thole.CodeConflict, "no running executor")
		},
		Dial: func(ctx context.Context, _ thole.ThreadID, x thole.ExecutorID, port uint16) (net.Conn, error) {
			if x != g.executor.Load() {
				return nil, thole.Errorf(thole.CodeGone, "ended")
			}
			if port != 80 && port != 81 {
				return nil, thole.Errorf(thole.CodeConflict, "nothing listens on port %d of the agent", port)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	})
	t.Cleanup(g.CloseAll)
	g.site = httptest.NewServer(g.Previews)
	t.Cleanup(g.site.Close)
	return g
}

func (g *rig) open(port uint16) preview.Port {
	g.t.Helper()
	p, err := g.Open(g.t.Context(), thread, port, preview.By{})
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

// request goes to the site as a browser's would to address.
func (g *rig) request(address, cookie string, header ...string) *http.Response {
	g.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := http.NewRequest("GET", g.site.URL+u.RequestURI(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Host = u.Host
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// enter uses an address, and returns the cookie that it gives.
func (g *rig) enter(p preview.Port) string {
	g.t.Helper()
	resp := g.request(p.URL, "")
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		g.t.Fatalf("%s: %s %v", p.URL, resp.Status, resp.Cookies())
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.Domain != "" || c.SameSite != http.SameSiteLaxMode {
		g.t.Errorf("cookie %+v", c)
	}
	return c.Name + "=" + c.Value
}

func (g *rig) refused(what string, resp *http.Response, status int, says string) {
	g.t.Helper()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != status || !strings.Contains(string(text), says) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		g.t.Errorf("%s: %s %q, want %d with %q", what, resp.Status, text, status, says)
	}
}

// Only who was given an address is let in, with it, once.
func TestOnlyWhoWasLetIn(t *testing.T) {
	var visits atomic.Int32
	g := newRig(t, func(w http.ResponseWriter, _ *http.Request) { visits.Add(1); fmt.Fprint(w, "of the agent") })
	p, other := g.open(80), g.open(81)
	g.refused("a stranger", g.request(p.Origin+"/", ""), 403, "thole thread port "+string(thread)+" 80")
	g.refused("a guessed ticket", g.request(p.Origin+"/.thole/enter?ticket=guessed", ""), 403, "make another")
	g.refused("a ticket of another port", g.request(p.Origin+strings.TrimPrefix(other.URL, other.Origin), ""), 403, "make another")
	if !unguarded.Build {
		g.refused("a port that nobody opened", g.request("http://aaaaaaaaaaaaaaaaaaaaaaaaaa.localhost:7433/", ""), 403, "nothing is shown here")
	}
	cookie := g.enter(p)
	g.refused("a used ticket", g.request(p.URL, ""), 403, "opened before")
	g.refused("a cookie of another port", g.request(p.Origin+"/", g.enter(other)), 403, "not let in")
	g.refused("a cookie and a planted one", g.request(p.Origin+"/", cookie+"; thole_preview=planted"), 403, "not let in")
	if n := visits.Load(); n != 0 {
		t.Errorf("the agent's server was reached %d times", n)
	}
	resp := g.request(p.Origin+"/", cookie)
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(text) != "of the agent" {
		t.Errorf("%s %q", resp.Status, text)
	}
	late := g.open(80)
	g.now.Add(int64(10 * time.Minute))
	g.refused("a late ticket", g.request(late.URL, ""), 403, "older than")
}

// Nothing that proves to thole who a person is reaches the agent, and its cookies stay on
// its own host. A build without the guard passes both on.
func TestNothingOfOursReachesTheAgent(t *testing.T) {
	heard := make(chan http.Header, 1)
	g := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.Header().Set("Set-Cookie", "hint=1; Domain=localhost")
		w.WriteHeader(http.StatusEarlyHints)
		heard <- r.Header.Clone()
		w.Header()["Set-Cookie"] = []string{"own=1; Domain=localhost; Path=/x", "thole_12345678=planted", "__Host-thole_12345678=planted; Secure; Path=/", "plain=2"}
		w.Header().Set("Strict-Transport-Security", "max-age=1; includeSubDomains")
	})
	p := g.open(80)
	cookie := g.enter(p)
	resp := g.request(p.Origin+"/a?b=%zz;c", "thole_12345678=secret; own=1; __Host-thole_12345678=secret; "+cookie+"; Thole_x=secret", "Thole-Proof", "secret", "Authorization", "Bearer thole_secret")
	got := <-heard
	leaks := strings.Contains(fmt.Sprint(got), "secret") || strings.Contains(got.Get("Cookie"), "thole_")
	if leaks != unguarded.Build {
		t.Errorf("the agent heard %v", got)
	}
	planted := strings.Join(resp.Header.Values("Set-Cookie"), "|")
	if want := "own=1; Path=/x|plain=2"; (planted == want) == unguarded.Build || !unguarded.Build && resp.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("the browser was given %q", planted)
	}
	if !strings.Contains(got.Get("Cookie"), "own=1") {
		t.Errorf("the agent's own cookie is lost: %q", got.Get("Cookie"))
	}
	g.request(p.Origin+"/", cookie, "Authorization", "Bearer of-the-agent")
	if got := <-heard; got.Get("Authorization") != "Bearer of-the-agent" {
		t.Errorf("the agent's own token is lost: %q", got.Get("Authorization"))
	}
}

// Streams arrive as they are written, upgrades go both ways, and all of it ends with the port.
func TestStreamsUpgradesAndTheEnd(t *testing.T) {
	g := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprint(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Host: "+r.Host+"\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	})
	p := g.open(80)
	cookie := g.enter(p)
	stream := g.request(p.Origin+"/", cookie)
	first := make([]byte, 5)
	if _, err := io.ReadFull(stream.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("%q %v", first, err)
	}
	line := g.request(p.Origin+"/", cookie, "Connection", "Upgrade", "Upgrade", "websocket")
	if want := strings.TrimPrefix(p.Origin, "http://"); line.StatusCode != 101 || !unguarded.Build && line.Header.Get("X-Host") != want {
		t.Fatalf("%s %v, want host %s", line.Status, line.Header, want)
	}
	both := line.Body.(io.ReadWriter)
	if _, err := fmt.Fprintln(both, "hello"); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(both).ReadString('\n'); err != nil || got != "hello\n" {
		t.Fatalf("%q %v", got, err)
	}
	if err := g.Close(thread, 80); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(stream.Body); err == nil {
		t.Error("a stream ended as if it were whole")
	}
	if _, err := io.ReadAll(both); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Logf("the upgrade ended with %v", err)
	}
	g.refused("after the end", g.request(p.Origin+"/", cookie), 403, "nothing is shown here")
	if err := g.Close(thread, 80); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("closed again: %v", err)
	}
}

// A port ends with its executor, its login and its time.
func TestAPortEndsWithWhatItCameFrom(t *testing.T) {
	g := newRig(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	p := g.open(80)
	cookie := g.enter(p)
	g.executor.Store(thole.ExecutorID("x2"))
	g.refused("with another executor", g.request(p.Origin+"/", cookie), 403, "its executor ended")
	g.refused("and then", g.request(p.Origin+"/", cookie), 403, "nothing is shown here")

	held, logOut := context.WithCancel(t.Context())
	released := make(chan struct{})
	by := preview.By{ID: "login", Ends: time.Unix(0, g.now.Load()).Add(time.Hour), Hold: func() (context.Context, context.CancelFunc) { return held, func() { close(released) } }}
	mine, err := g.Open(t.Context(), thread, 80, by)
	if err != nil || !mine.ExpiresAt.Equal(by.Ends) {
		t.Fatalf("%+v %v", mine, err)
	}
	socket := g.open(80)
	if mine.ID == socket.ID {
		t.Error("a port of a login is that of the home's socket")
	}
	logOut()
	<-released
	if list := g.List(t.Context(), thread); len(list) != 1 || list[0].ID != socket.ID || list[0].URL != "" {
		t.Errorf("after the logout %+v", list)
	}
	g.now.Add(int64(preview.Life))
	if list := g.List(t.Context(), thread); len(list) != 0 {
		t.Errorf("too old %+v", list)
	}
	g.open(80)
	g.executor.Store(thole.ExecutorID(""))
	if list := g.List(t.Context(), thread); len(list) != 0 {
		t.Errorf("without an executor %+v", list)
	}
}

func TestOpenRefuses(t *testing.T) {
	g := newRig(t, func(http.ResponseWriter, *http.Request) {})
	for port, code := range map[uint16]thole.Code{0: thole.CodeInvalid, 82: thole.CodeConflict} {
		if _, err := g.Open(t.Context(), thread, port, preview.By{}); thole.CodeOf(err) != code {
			t.Errorf("port %d: %v", port, err)
		}
	}
	for i := range 8 {
		if _, err := g.Open(t.Context(), thread, 80, preview.By{ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Open(t.Context(), thread, 80, preview.By{ID: "one more"}); thole.CodeOf(err) != thole.CodeOverloaded {
		t.Errorf("a ninth port: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Open(gone, "other", 80, preview.By{}); err == nil || len(g.List(t.Context(), "other")) != 0 {
		t.Errorf("for nobody: %v", err)
	}
}

// Requests beyond the bound are refused, and those that end make room.
func TestRequestsAreBounded(t *testing.T) {
	release, inside := make(chan struct{}), make(chan struct{}, 1000)
	g := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		inside <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	p := g.open(80)
	cookie := g.enter(p)
	done := make(chan struct{}, 1000)
	for range 128 {
		go func() { g.request(p.Origin+"/", cookie); done <- struct{}{} }()
	}
	for range 128 {
		<-inside
	}
	g.refused("one more", g.request(p.Origin+"/", cookie), 503, "as many as may be")
	close(release)
	for range 128 {
		<-done
	}
	poll.Until(t, "room for a request", func() bool { return g.request(p.Origin+"/", cookie).StatusCode == 200 })
}
