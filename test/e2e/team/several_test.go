package team

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// proxy gives each request to the next server, as a load balancer does: one that does not
// answer is passed over.
type proxy struct {
	*httptest.Server
	mu   sync.Mutex
	to   []*url.URL
	next int
}

func newProxy(t *testing.T) *proxy {
	p := &proxy{}
	p.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(p.pick()); r.Out.Host = r.In.Host },
		FlushInterval: -1,
		Transport:     p,
	})
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) pick() *url.URL {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.to[p.next%len(p.to)]
}

func (p *proxy) set(all ...*server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = nil
	for _, s := range all {
		u, _ := url.Parse("http://" + s.listen)
		p.to = append(p.to, u)
	}
}

// RoundTrip tries the other servers where one cannot be connected to: nothing was sent then.
func (p *proxy) RoundTrip(r *http.Request) (res *http.Response, err error) {
	for range 2 * len(p.to) {
		if res, err = http.DefaultTransport.RoundTrip(r); err == nil || !strings.Contains(err.Error(), "connect: ") {
			return res, err
		}
		r = r.Clone(r.Context())
		r.URL.Host = p.pick().Host
	}
	return res, err
}

// team is several servers on one PostgreSQL and one S3, after a proxy.
type team struct {
	t       *testing.T
	dsn     string
	proxy   *proxy
	homes   []*home.Home
	files   []string
	servers []*server
}

func newTeam(t *testing.T, n int, more string, vars ...string) *team {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		all[i] = more
	}
	return newTeamOf(t, all, vars...)
}

// newTeamOf is newTeam with servers that have each further lines of [http] and what follows.
func newTeamOf(t *testing.T, more []string, vars ...string) *team {
	t.Helper()
	n := len(more)
	dsn, bucket := lab.Postgres(t), lab.S3(t)
	tm := &team{t: t, dsn: dsn, proxy: newProxy(t)}
	for _, more := range more {
		h := home.New(t)
		h.Vars = vars
		tm.homes = append(tm.homes, h)
		tm.files = append(tm.files, configured(t, h.Dir, dsn, &bucket, "", fmt.Sprintf("public_url = %q\n%s", tm.proxy.URL, more)))
		tm.servers = append(tm.servers, nil)
	}
	for i := range n {
		tm.start(i)
	}
	return tm
}

func (tm *team) start(i int) {
	tm.t.Helper()
	tm.servers[i] = serve(tm.t, tm.homes[i], "--config", tm.files[i])
	var all []*server
	for _, s := range tm.servers {
		if s != nil {
			all = append(all, s)
		}
	}
	tm.proxy.set(all...)
}

// ask calls the API of one server, or of whichever the proxy takes for -1.
func (tm *team) ask(b *browser, at int, method, path string, body, into any, header ...string) int {
	tm.t.Helper()
	base := tm.proxy.URL
	if at >= 0 {
		base = "http://" + tm.servers[at].listen
	}
	var in io.Reader
	if body != nil {
		text, _ := json.Marshal(body)
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(tm.t.Context(), method, base+path, in)
	if err != nil {
		tm.t.Fatal(err)
	}
	req.Header.Set("Thole-Proof", b.proof)
	req.Header.Set("Origin", base)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	for _, c := range b.Jar.Cookies(mustURL(tm.proxy.URL)) { // a jar keeps ports apart
		req.AddCookie(c)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tm.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		tm.t.Fatalf("%s %s: %v", method, path, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil || res.StatusCode >= 300 {
			tm.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
		}
	}
	return res.StatusCode
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

type ident struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

func (tm *team) session(b *browser, at int, profile string) string {
	tm.t.Helper()
	var made ident
	tm.ask(b, at, "POST", "/sessions", map[string]any{"execution_profile": profile, "provider": "test"}, &made)
	return made.ID
}

type turn struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Outcome string `json:"outcome"`
}

func (tm *team) send(b *browser, at int, session, text string, header ...string) turn {
	tm.t.Helper()
	var r turn
	tm.ask(b, at, "POST", "/sessions/"+session+"/runs", map[string]any{"text": text}, &r, header...)
	return r
}

// over waits for the end of a run, asked of one server.
func (tm *team) over(b *browser, at int, r turn) turn {
	tm.t.Helper()
	poll.Until(tm.t, "the end of run "+r.ID, func() bool {
		tm.ask(b, at, "GET", "/runs/"+r.ID, nil, &r)
		return r.Outcome != ""
	})
	return r
}

// stream follows a session at one server; what it says of itself and of items comes by name.
func (tm *team) stream(b *browser, at int, path string) (events <-chan string) {
	tm.t.Helper()
	req, err := http.NewRequestWithContext(tm.t.Context(), "GET", "http://"+tm.servers[at].listen+path, nil)
	if err != nil {
		tm.t.Fatal(err)
	}
	req.Header.Set("Thole-Proof", b.proof)
	for _, c := range b.Jar.Cookies(mustURL(tm.proxy.URL)) {
		req.AddCookie(c)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 200 {
		tm.t.Fatalf("%s: %v %v", path, res, err)
	}
	out := make(chan string, 10_000)
	go func() {
		defer close(out)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") || strings.HasPrefix(lines.Text(), "id: ") {
				out <- lines.Text()
			}
		}
	}()
	return out
}

// until reads a stream until it says something, and reports whether it did.
func until(events <-chan string, what string, within time.Duration) bool {
	late := time.After(within)
	for {
		select {
		case e, ok := <-events:
			if !ok || strings.Contains(e, what) {
				return ok
			}
		case <-late:
			return false
		}
	}
}

// TestThreeServers: what is begun at one server goes on at the others.
func TestThreeServers(t *testing.T) {
	tm := newTeam(t, 3, "")
	me := tm.servers[0].login() // the link of one, used through the proxy
	other := func() *browser { b := tm.servers[1].login(); return b }()

	session := tm.session(me, 0, "full")
	events := tm.stream(me, 1, "/sessions/"+session+"/events")
	all := tm.stream(me, 2, "/events")
	if r := tm.over(me, 2, tm.send(me, -1, session, "sim: write a.txt one ;; say written")); r.Outcome != "completed" {
		t.Fatalf("the first turn: %+v", r)
	}
	if !until(events, "written", time.Minute) || !until(all, session, time.Minute) {
		t.Error("the streams of other servers did not show the turn")
	}

	// A request that is repeated at another server is done once.
	first := tm.send(me, 0, session, "sim: run echo twice >> b.txt", "Idempotency-Key", "one-key")
	again := tm.send(me, 1, session, "sim: run echo twice >> b.txt", "Idempotency-Key", "one-key")
	if first.ID != again.ID {
		t.Errorf("a repeated request began run %s next to %s", again.ID, first.ID)
	}
	tm.over(me, 2, first)

	// The files of a thread are compared wherever its executor is.
	for at := range 3 {
		var changes struct {
			Files []struct {
				Path string `json:"path"`
			} `json:"files"`
		}
		if tm.ask(me, at, "GET", "/sessions/"+session+"/changes", nil, &changes); len(changes.Files) != 2 {
			t.Errorf("server %d shows the changes %+v", at, changes)
		}
	}

	// A question is answered, a message added and a run stopped at servers that do not run it.
	asking := tm.session(me, 1, "ask")
	asked := tm.send(me, 1, asking, "sim: run touch asked.txt")
	var open struct {
		Items []struct {
			ID string `json:"question_id"`
		} `json:"items"`
	}
	poll.Until(t, "the question", func() bool {
		tm.ask(me, 0, "GET", "/runs/"+asked.ID+"/human-loop", nil, &open)
		return len(open.Items) == 1
	})
	if got := tm.ask(me, 2, "POST", "/runs/"+asked.ID+"/human-loop/"+open.Items[0].ID+"/reply", map[string]any{"decision": "allow"}, nil); got != 200 {
		t.Errorf("answer a question: %d", got)
	}
	if r := tm.over(me, 0, asked); r.Outcome != "completed" {
		t.Errorf("after the answer: %+v", r)
	}
	for at := range 3 { // wherever it runs, two of these are not there
		long := tm.send(me, at, session, "sim: wait 600s")
		if status := tm.ask(me, (at+1)%3, "POST", "/runs/"+long.ID+"/cancel", nil, nil); status != 202 {
			t.Errorf("cancel: %d", status)
		}
		if r := tm.over(me, (at+2)%3, long); r.Outcome != "interrupted" {
			t.Errorf("a run that was stopped at another server: %+v", r)
		}
	}

	// A ticket of one server is taken by another, once.
	var ticket struct {
		Ticket string `json:"ticket"`
	}
	tm.ask(me, 0, "POST", "/auth/tickets", map[string]any{"path": "/sessions"}, &ticket)
	bare := &browser{Client: http.Client{Jar: me.Jar}}
	if got := tm.ask(bare, 1, "GET", "/sessions?ticket="+ticket.Ticket, nil, nil); got != 200 {
		t.Errorf("a ticket at another server: %d", got)
	}
	if got := tm.ask(bare, 2, "GET", "/sessions?ticket="+ticket.Ticket, nil, nil); got != 401 {
		t.Errorf("a ticket that was used: %d", got)
	}

	// Logged in at one, followed at the second, ended at the third.
	theirs := tm.stream(other, 1, "/sessions/"+session+"/events")
	var who ident
	tm.ask(other, 0, "GET", "/auth/session", nil, &who)
	if got := tm.ask(me, 2, "DELETE", "/auth/logins/"+who.ID, nil, nil); got != 204 {
		t.Fatalf("end a login: %d", got)
	}
	if !until(theirs, "logout", 15*time.Second) {
		t.Error("the stream of a login that ended goes on")
	}
	for at := range 3 {
		if got := tm.ask(other, at, "GET", "/sessions", nil, nil); got != 401 {
			t.Errorf("server %d still takes the login: %d", at, got)
		}
	}

	// One that ends says so to its readers, who go on at another from where they were.
	last := tm.stream(me, 0, "/sessions/"+session+"/events")
	tm.servers[0].stop()
	if !until(last, "shutdown", time.Minute) {
		t.Error("the stream of a server that ended did not say so")
	}
	tm.servers[0] = nil
	tm.proxy.set(tm.servers[1], tm.servers[2])
	elsewhere := tm.session(me, -1, "full")
	if r := tm.over(me, -1, tm.send(me, -1, elsewhere, "sim: say still here")); r.Outcome != "completed" {
		t.Errorf("without the first server: %+v", r)
	}
}

// TestServersThatDoNotShare are refused: each would have files that the others do not.
func TestServersThatDoNotShare(t *testing.T) {
	dsn, bucket := lab.Postgres(t), lab.S3(t)
	first, second := home.New(t), home.New(t)
	kept := configured(t, first.Dir, dsn, nil, "", "")
	s := serve(t, first, "--config", kept)
	if _, errs := run2(t, second, "serve", "--demo", "--config", configured(t, second.Dir, dsn, &bucket, "", "")); !strings.Contains(errs, "keeps objects in a directory") {
		t.Errorf("next to one with a directory: %s", errs)
	}
	if _, errs := run2(t, second, "serve", "--demo", "--config", configured(t, second.Dir, dsn, nil, "", "")); !strings.Contains(errs, "objects.kind is dir") {
		t.Errorf("with a directory: %s", errs)
	}
	s.stop()
}

func run2(t *testing.T, h *home.Home, args ...string) (string, string) {
	t.Helper()
	out, errs, code := h.Run(args...)
	if code == 0 {
		t.Fatalf("thole %v: %s", args, out)
	}
	return out, errs
}
