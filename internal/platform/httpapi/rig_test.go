package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

var ctx = context.Background()

const otherUser thole.UserID = "00000000-0000-7000-8000-0000000000aa"

// rig is a whole server on a real store, with the scripted agent.
type rig struct {
	*tholetest.Site
	t       testing.TB
	db      *store.DB
	threads *thread.Machine
	me, you *caller // two users
}

func newRig(t testing.TB, change ...func(*httpapi.Config)) *rig {
	t.Helper()
	return rigOn(t, tholetest.New(t), change...)
}

func rigOn(t testing.TB, kit *tholetest.Kit, change ...func(*httpapi.Config)) *rig {
	t.Helper()
	site := kit.Site(append([]func(*httpapi.Config){func(c *httpapi.Config) {
		c.Providers = func() []provider.Info {
			return []provider.Info{testprovider.New().Probe(ctx), {Name: "opencode", Title: "opencode", Problem: "not installed", Fix: "npm install -g opencode-ai"}}
		}
	}}, change...)...)
	answers.watch(t, site.URL, site.HTTP)
	g := &rig{Site: site, t: t, db: kit.Store(), threads: kit.Threads}
	if err := g.db.Update(ctx, "test.add_user", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into users (id, login, name, state, created_at) values ($1, 'you', 'You', 'active', 0)`, otherUser)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	g.me, g.you = g.login(thole.LocalUser), g.login(otherUser)
	return g
}

// caller is a browser of one user.
type caller struct {
	g      *rig
	cookie string
	header http.Header
}

func (g *rig) login(user thole.UserID) *caller {
	g.t.Helper()
	code, err := g.Sessions.NewLogin(ctx, user)
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := http.Get(g.URL + "/auth/login?code=" + code)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 || len(res.Cookies()) != 1 {
		g.t.Fatalf("login: %s", res.Status)
	}
	return &caller{g: g, cookie: res.Cookies()[0].Value, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}
}

func (c *caller) request(method, path string, body any) *http.Request {
	c.g.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.g.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequest(method, c.g.URL+path, in)
	if err != nil {
		c.g.t.Fatal(err)
	}
	for k, v := range c.header {
		r.Header[k] = v
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.cookie != "" {
		r.AddCookie(&http.Cookie{Name: c.g.Cookies.Name(), Value: c.cookie})
	}
	return r
}

func (c *caller) with(k, v string) *caller {
	d := *c
	d.header = c.header.Clone()
	d.header.Set(k, v)
	return &d
}

func (c *caller) do(method, path string, body any) *http.Response {
	c.g.t.Helper()
	res, err := http.DefaultClient.Do(c.request(method, path, body))
	if err != nil {
		c.g.t.Fatal(err)
	}
	return res
}

// call wants a status and decodes the answer into out.
func (c *caller) call(status int, method, path string, body, out any) *http.Response {
	c.g.t.Helper()
	res := c.do(method, path, body)
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		c.g.t.Fatal(err)
	}
	if res.StatusCode != status {
		c.g.t.Fatalf("%s %s: %s, want %d: %s", method, path, res.Status, status, b)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			c.g.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return res
}

type obj = map[string]any

// session makes a session and returns its id.
func (c *caller) session(extra obj) string {
	c.g.t.Helper()
	in := obj{"provider": "test", "execution_profile": "ask"}
	for k, v := range extra {
		in[k] = v
	}
	var out obj
	c.call(201, "POST", "/sessions", in, &out)
	return out["id"].(string)
}

// sseEvent is one event of a stream.
type sseEvent struct {
	id, name string
	data     obj
	raw      string
}

// sse reads a stream event by event.
type sse struct {
	t    testing.TB
	res  *http.Response
	scan *bufio.Scanner
}

func (c *caller) stream(method, path string, body any) *sse {
	c.g.t.Helper()
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	res, err := http.DefaultClient.Do(c.request(method, path, body).WithContext(wait))
	if err != nil {
		c.g.t.Fatal(err)
	}
	c.g.t.Cleanup(func() { cancel(); _ = res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(res.Body)
		c.g.t.Fatalf("%s %s: %s: %s", method, path, res.Status, b)
	}
	return newSSE(c.g.t, res)
}

func newSSE(t testing.TB, res *http.Response) *sse {
	s := &sse{t: t, res: res, scan: bufio.NewScanner(res.Body)}
	s.scan.Buffer(nil, 8<<20)
	return s
}

// next returns the next event, false at the end.
func (s *sse) next() (sseEvent, bool) {
	s.t.Helper()
	var e sseEvent
	for s.scan.Scan() {
		line := s.scan.Text()
		switch {
		case line == "" && (e.raw != "" || e.name != ""):
			if strings.HasPrefix(e.raw, "{") {
				if err := json.Unmarshal([]byte(e.raw), &e.data); err != nil {
					s.t.Fatalf("%v in %s", err, e.raw)
				}
			}
			return e, true
		case strings.HasPrefix(line, "id: "):
			e.id = line[4:]
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.raw += line[6:]
		}
	}
	return e, false
}

// until reads up to the event that stop accepts.
func (s *sse) until(stop func(sseEvent) bool) []sseEvent {
	s.t.Helper()
	var all []sseEvent
	for {
		e, ok := s.next()
		if !ok {
			for _, e := range all {
				s.t.Log(e.id, e.name, e.raw)
			}
			s.t.Fatalf("the stream ended: %v", s.scan.Err())
		}
		all = append(all, e)
		if stop(e) {
			return all
		}
	}
}

func ofType(t string) func(sseEvent) bool {
	return func(e sseEvent) bool { return e.data["type"] == t }
}

func doneMark(e sseEvent) bool { return e.raw == "[DONE]" }

func say(id, text string) obj {
	return obj{"id": id, "trigger": "submit-message", "provider": "test", "executionProfile": "ask",
		"messages": []obj{{"id": "m1", "role": "user", "parts": []obj{{"type": "text", "text": text}}}}}
}

func types(all []sseEvent) string {
	var out []string
	for _, e := range all {
		if t, ok := e.data["type"].(string); ok {
			out = append(out, t)
		} else {
			out = append(out, e.raw)
		}
	}
	return strings.Join(out, " ")
}
