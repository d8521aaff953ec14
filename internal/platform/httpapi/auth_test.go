package httpapi_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/httpapi"
)

// Everything that answers without proof is listed here. Every other path, the ones
// that nobody serves included, answers 401.
func TestPublicPaths(t *testing.T) {
	g := newRig(t, func(c *httpapi.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("counters")) })
	})
	got := map[string]bool{}
	for _, rt := range g.HTTP.Routes() {
		if rt.Public != "" {
			got[rt.Method+" "+rt.Path] = true
		}
	}
	want := map[string]bool{
		"GET /auth/login": true, "GET /auth/login.js": true, "POST /auth/login": true, "GET /healthz": true, "GET /readyz": true,
		"GET /auth/account": true, "GET /auth/account.js": true, "POST /auth/account": true,
		"GET /auth/device": true, "GET /auth/device.js": true, "POST /auth/device": true, "POST /auth/device/state": true,
		"GET /auth/ways": true, "GET /auth/oidc/start": true, "GET /auth/oidc/callback": true, "GET /auth/oidc/callback.js": true, "POST /auth/oidc/callback": true, "POST /auth/oidc/backchannel-logout": true,
	}
	if !maps.Equal(got, want) {
		t.Errorf("public: %v", got)
	}
	nobody, script := &caller{g: g}, &caller{g: g, header: http.Header{"Authorization": {"Bearer " + g.Token}}}
	for _, path := range []string{"/metrics", "/openapi.json", "/sessions/x/y/z", "/auth/nothing", "/events/", "/api/nothing"} {
		nobody.call(401, "GET", path, nil, nil)
		nobody.call(401, "POST", path, nil, nil)
	}
	script.call(200, "GET", "/metrics", nil, nil)
	nobody.call(200, "GET", "/readyz", nil, nil)
	nobody.with("Origin", "http://127.0.0.1:1").call(403, "GET", "/readyz", nil, nil)
}

// Only a POST uses a code up.
func TestCodesAreRedeemedByPostOnly(t *testing.T) {
	g := newRig(t)
	code, err := g.Sessions.NewLogin(ctx, otherUser)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "HEAD"} {
		if res := (&caller{g: g}).call(200, method, "/auth/login?code="+code, nil, nil); len(res.Cookies()) != 0 {
			t.Errorf("%s logs in", method)
		}
	}
	for _, body := range []obj{{}, {"code": code, "token": "x"}, {"CODE": code}} {
		(&caller{g: g}).call(422, "POST", "/auth/login", body, nil)
	}
	(&caller{g: g}).with("Origin", "null").call(403, "POST", "/auth/login", obj{"code": code}, nil)
	g.browser(obj{"code": code}).call(200, "GET", "/auth/session", nil, nil)
	(&caller{g: g}).call(401, "POST", "/auth/login", obj{"code": code}, nil)
}

func TestScopes(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	with := func(scope string) *caller {
		var made obj
		g.me.call(201, "POST", "/auth/tokens", obj{"name": scope, "scope": scope}, &made)
		if made["expires_at"] == nil || made["made_with"] != g.me.id {
			t.Fatalf("token = %v", made)
		}
		return &caller{g: g, id: made["id"].(string), header: http.Header{"Authorization": {"Bearer " + made["token"].(string)}}}
	}
	for scope, allowed := range map[string]int{"read": 1, "act": 2, "admin": 3} {
		c := with(scope)
		for need, try := range map[int]func(status int){
			1: func(status int) { c.call(status, "GET", "/sessions/"+id, nil, nil) },
			2: func(status int) { c.call(status, "PATCH", "/sessions/"+id, obj{"name": scope}, nil) },
			3: func(status int) { c.call(status, "GET", "/auth/logins", nil, nil) },
		} {
			if status := 200; need <= allowed {
				try(status)
			} else {
				try(403)
			}
		}
	}
	act := with("act")
	act.call(403, "POST", "/auth/tokens", obj{"name": "more"}, nil)
	act.call(403, "DELETE", "/auth/logins/"+g.me.id, nil, nil)
	var child, all obj
	admin := with("admin")
	admin.call(403, "POST", "/auth/tokens", obj{"name": "child"}, nil) // no token makes a token by itself

	g.browser(obj{"token": strings.TrimPrefix(admin.header.Get("Authorization"), "Bearer ")}).call(403, "POST", "/auth/tokens", obj{"name": "child"}, nil)
	admin.call(401, "POST", "/auth/tokens", obj{"name": "child", "confirm_code": "x"}, nil)
	confirm, err := g.Sessions.NewLogin(ctx, thole.LocalUser)
	if err != nil {
		t.Fatal(err)
	}
	act.call(403, "POST", "/auth/tokens", obj{"name": "child", "confirm_code": confirm}, nil)
	admin.call(201, "POST", "/auth/tokens", obj{"name": "child", "expires_in": 315360000, "confirm_code": confirm}, &child)
	g.me.call(200, "GET", "/auth/tokens", nil, &all)
	for _, v := range items(all) { // a child lasts no longer than what made it
		if tok := v.(obj); tok["id"] == admin.id && tok["expires_at"] != child["expires_at"] {
			t.Errorf("%v made %v", tok, child)
		}
	}
	of := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + child["token"].(string)}}}
	of.call(200, "GET", "/auth/session", nil, nil)
	g.me.call(204, "DELETE", "/auth/tokens/"+admin.id, nil, nil)
	of.call(401, "GET", "/auth/session", nil, nil)
}

// Revoking a login ends its streams at once, not at the next look: the time between
// looks is longer than the test may take.
func TestRevokedLoginsEndTheirStreams(t *testing.T) {
	g := newRig(t, func(c *httpapi.Config) { c.KeepAlive = time.Hour })
	other := g.login(thole.LocalUser)
	id := g.me.session(obj{"execution_profile": "full"})
	var made, all obj
	other.call(201, "POST", "/auth/tokens", obj{"name": "of the other"}, &made)
	script := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + made["token"].(string)}}}
	streams := []*sse{other.stream("GET", "/events", nil), other.stream("GET", "/sessions/"+id+"/events", nil), script.stream("GET", "/events", nil)}
	mine := g.me.stream("GET", "/events", nil)
	for _, s := range append(streams, mine) {
		s.until(func(e sseEvent) bool { return e.name == "ready" })
	}
	g.me.call(200, "GET", "/auth/logins", nil, &all)
	if len(items(all)) != 2 || items(all)[0].(obj)["current"] == items(all)[1].(obj)["current"] {
		t.Fatalf("logins = %v", all)
	}
	g.you.call(404, "DELETE", "/auth/logins/"+other.id, nil, nil)
	g.me.call(204, "DELETE", "/auth/logins/"+other.id, nil, nil)
	for _, s := range streams {
		end := s.until(func(e sseEvent) bool { return e.name == "end" })
		if end[len(end)-1].data["reason"] != "logout" {
			t.Errorf("ended with %v", end)
		}
	}
	other.call(401, "GET", "/auth/session", nil, nil)
	g.me.session(nil)
	mine.until(ofType("session.created"))
}

func TestTickets(t *testing.T) {
	now := time.Now()
	g := newRig(t, func(c *httpapi.Config) { c.Now = func() time.Time { return now } })
	id := g.me.session(nil)
	path := "/sessions/" + id + "?b=2&a=1"
	make := func(c *caller, path string) string {
		t.Helper()
		var out obj
		c.call(201, "POST", "/auth/tickets", obj{"path": path}, &out)
		return out["ticket"].(string)
	}
	link := &caller{g: g, cookie: g.me.cookie, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}} // no proof, as an <img> or a link
	link.call(200, "GET", "/sessions/"+id+"?a=1&b=2&ticket="+make(g.me, path), nil, nil)
	once := make(g.me, path)
	link.call(200, "GET", path+"&ticket="+once, nil, nil)
	for what, try := range map[string]func(){
		"used":           func() { link.call(401, "GET", path+"&ticket="+once, nil, nil) },
		"another path":   func() { link.call(401, "GET", "/sessions?ticket="+make(g.me, path), nil, nil) },
		"another query":  func() { link.call(401, "GET", path+"&c=3&ticket="+make(g.me, path), nil, nil) },
		"another method": func() { link.call(401, "DELETE", path+"&ticket="+make(g.me, path), nil, nil) },
		"HEAD":           func() { link.call(401, "HEAD", path+"&ticket="+make(g.me, path), nil, nil) },
		"no cookie":      func() { (&caller{g: g}).call(401, "GET", path+"&ticket="+make(g.me, path), nil, nil) },
		"another login": func() {
			(&caller{g: g, cookie: g.you.cookie}).call(401, "GET", path+"&ticket="+make(g.me, path), nil, nil)
		},
		"another user": func() {
			(&caller{g: g, cookie: g.you.cookie}).call(404, "GET", path+"&ticket="+make(g.you, path), nil, nil)
		},
		"too old": func() {
			old := make(g.me, path)
			now = now.Add(30 * time.Second)
			link.call(401, "GET", path+"&ticket="+old, nil, nil)
		},
	} {
		t.Log(what)
		try()
	}
	script := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + g.Token}}}
	(&caller{g: g}).call(200, "GET", "/sessions?ticket="+make(script, "/sessions"), nil, nil)
	for _, bad := range []string{"//evil.example/x", "https://evil.example/", "sessions", ""} {
		g.me.call(422, "POST", "/auth/tickets", obj{"path": bad}, nil)
	}
	g.me.call(404, "POST", "/auth/tickets", obj{"path": "/nothing"}, nil)
	last := make(g.me, path)
	g.me.call(204, "POST", "/auth/logout", nil, nil)
	link.call(401, "GET", path+"&ticket="+last, nil, nil)
}

// A body that is announced too large is refused before a byte of it is read.
func TestAnnouncedBodies(t *testing.T) {
	g := newRig(t)
	r := g.me.request("POST", "/api/chat", nil)
	r.Body, r.ContentLength = http.NoBody, 25<<20
	never := make(chan struct{})
	defer close(never)
	r.Body = waiting{never}
	r.Header.Set("Expect", "100-continue") // then the client waits for the server's word
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("%s", res.Status)
	}
}

type waiting struct{ until <-chan struct{} }

func (w waiting) Read([]byte) (int, error) { <-w.until; return 0, http.ErrBodyReadAfterClose }
func (waiting) Close() error               { return nil }

// The login page goes on by itself only where the user opened it.
func TestLoginPageAsks(t *testing.T) {
	g := newRig(t)
	for site, asks := range map[string]bool{"none": false, "same-origin": false, "cross-site": true, "same-site": true, "": true} {
		c := (&caller{g: g}).with("Sec-Fetch-Mode", "navigate").with("Sec-Fetch-Dest", "document")
		if site != "" {
			c = c.with("Sec-Fetch-Site", site)
		}
		res := c.do("GET", "/auth/login", nil)
		b := make([]byte, 4000)
		n, _ := res.Body.Read(b)
		_ = res.Body.Close()
		if res.StatusCode != 200 || strings.Contains(string(b[:n]), "<body data-ask>") != asks {
			t.Errorf("%q: %s %s", site, res.Status, b[:n])
		}
	}
}
