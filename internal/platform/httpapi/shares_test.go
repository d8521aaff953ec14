package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
)

// share makes a share link and a caller that has nothing else.
func (c *caller) share(id string) (reader *caller, share obj) {
	c.g.t.Helper()
	c.call(201, "POST", "/sessions/"+id+"/shares", obj{}, &share)
	return (&caller{g: c.g, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}).with(httpapi.ShareHeader, share["token"].(string)), share
}

// The token of a share link opens the routes of shared sessions and no other, in whatever way it
// is sent. It walks every route there is: a new one is refused until it says that it is shared.
func TestAShareLinkOpensNothingElse(t *testing.T) {
	g := newRig(t, deliveries(thole.LocalUser))
	ids := mine(g)
	body, token := bodies(ids), ids["share_token"]
	nobody := &caller{g: g, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}
	ways := map[string]func(*http.Request){
		"header": func(r *http.Request) { r.Header.Set(httpapi.ShareHeader, token) },
		"bearer": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) },
		"cookie": func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: g.Cookies.Name(), Value: token})
			r.Header.Set(httpapi.ProofHeader, token)
		},
		"ticket": func(r *http.Request) { r.URL.RawQuery = "ticket=" + token },
		"query":  func(r *http.Request) { r.URL.RawQuery = "share=" + token + "&token=" + token },
	}
	open := 0
	for _, rt := range g.HTTP.Routes() {
		name := rt.Method + " " + rt.Path
		if rt.Public != "" {
			continue
		}
		for way, put := range ways {
			r := nobody.request(rt.Method, fill(rt.Path, ids), body[name])
			put(r)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if rt.Shared && way == "header" {
				_ = res.Body.Close()
				if open++; res.StatusCode != 200 || rt.Method != "GET" {
					t.Errorf("%s: %s", name, res.Status)
				}
				continue
			}
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != 401 || strings.Contains(string(b), secret) {
				t.Errorf("%s with a share link as %s: %s %s", name, way, res.Status, b)
			}
		}
		if rt.Shared { // and nobody else's proof opens those
			g.me.call(401, rt.Method, rt.Path, nil, nil)
			g.me.with("Authorization", "Bearer "+g.Token).call(401, rt.Method, rt.Path, nil, nil)
		}
	}
	if open != 3 {
		t.Errorf("%d routes are open to share links", open)
	}
	reader := nobody.with(httpapi.ShareHeader, token)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range []string{"/shared", "/shared/messages", "/shared/events"} {
			if res := reader.do(method, path, obj{}); res.StatusCode != 401 {
				t.Errorf("%s %s: %s", method, path, res.Status)
			}
		}
	}
	var in obj
	g.me.call(401, "POST", "/auth/login", obj{"token": token}, nil)
	for _, grant := range []session.Scope{session.ScopeRead, session.ScopeAct} { // nor does less than admin make one
		value, _, err := g.Sessions.NewToken(ctx, thole.LocalUser, session.Grant{Name: "t", Scope: grant})
		if err != nil {
			t.Fatal(err)
		}
		c := (&caller{g: g}).with("Authorization", "Bearer "+value)
		c.call(403, "POST", "/sessions/"+ids["session_id"]+"/shares", obj{}, nil)
		c.call(403, "DELETE", "/shares/"+ids["share_id"], nil, nil)
		c.call(200, "GET", "/shares", nil, &in)
	}
	g.you.call(404, "POST", "/sessions/"+ids["session_id"]+"/shares", obj{}, nil)
	g.you.call(404, "DELETE", "/shares/"+ids["share_id"], nil, nil)
	reader.call(200, "GET", "/shared", nil, nil)
}

// A reader sees the chat, live, and neither the machine nor its users.
func TestWhatAShareLinkShows(t *testing.T) {
	const home = "/srv/private-home"
	g := newRig(t, func(c *httpapi.Config) { c.Private = []string{home} })
	id := g.me.session(obj{"name": "Shared " + home + "/x", "execution_profile": "full", "instructions": "hidden-instructions"})
	other := g.me.session(obj{"name": "hidden-other"})
	reader, share := g.me.share(id)
	if len(share["token"].(string)) < 40 || share["path"] != "/share#"+share["token"].(string) {
		t.Errorf("share: %v", share)
	}
	events := reader.stream("GET", "/shared/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "hello\nsim: say it is in " + home + "/secret ;; run echo " + home + "/deep", "client_id": "hidden-client"}, nil)
	all := events.until(ofType("run.ended"))
	if !strings.Contains(types(all), "item.delta") || !strings.Contains(types(all), "item.completed") {
		t.Errorf("live: %s", types(all))
	}
	text := ""
	for _, e := range all {
		text += e.raw
	}
	for _, path := range []string{"/shared", "/shared/messages"} {
		res := reader.do("GET", path, nil)
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 200 || res.Header.Get("Referrer-Policy") != "no-referrer" || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s %v", path, res.Status, res.Header)
		}
		text += string(b)
	}
	for _, want := range []string{"hello", "it is in -----------------/secret", "-----------------/deep", `"title":"Shared -----------------/x"`, `"role":"assistant"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for _, hidden := range []string{home, "hidden-", g.Home, string(thole.LocalUser), `"executor_id":"`, `"trace_id":"`, `"dir":"`, `"source":`, "native_id", share["token"].(string)} {
		if strings.Contains(text, hidden) {
			t.Errorf("%q is shown in %s", hidden, text)
		}
	}
	var page obj
	reader.call(200, "GET", "/shared/messages?session_id="+other+"&limit=1", nil, &page)
	reader.call(400, "GET", "/shared/messages?limit=x", nil, nil)
	reader.call(400, "GET", "/shared/events?after=x", nil, nil)
	for _, e := range reader.stream("GET", "/shared/events?after=1", nil).until(ofType("run.ended")) { // again, from the log
		if strings.Contains(e.raw, home) || strings.Contains(e.raw, "hidden-") {
			t.Errorf("resumed: %s", e.raw)
		}
	}
}

// Every end of a link ends the streams of its readers.
func TestAShareLinkEnds(t *testing.T) {
	g := newRig(t, func(c *httpapi.Config) { c.KeepAlive = 50 * time.Millisecond })
	ended := func(s *sse, reason string) {
		t.Helper()
		last := s.until(func(e sseEvent) bool { return e.name == "end" })
		if got := last[len(last)-1].data["reason"]; got != reason {
			t.Errorf("the stream ended with %v, want %s", got, reason)
		}
	}
	id := g.me.session(nil)
	reader, share := g.me.share(id)
	events := reader.stream("GET", "/shared/events", nil)
	var list obj
	g.me.call(200, "GET", "/sessions/"+id+"/shares", nil, &list)
	if one := list["items"].([]any); len(one) != 1 || one[0].(obj)["token"] != nil || one[0].(obj)["id"] != share["id"] {
		t.Errorf("links: %v", list)
	}
	g.me.call(204, "DELETE", "/shares/"+share["id"].(string), nil, nil)
	ended(events, "logout")
	reader.call(401, "GET", "/shared", nil, nil)
	g.me.call(404, "DELETE", "/shares/"+share["id"].(string), nil, nil)

	value, _, err := g.Sessions.NewShare(ctx, thole.LocalUser, thole.ThreadID(id), 1500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	short := (&caller{g: g}).with(httpapi.ShareHeader, value)
	ended(short.stream("GET", "/shared/events", nil), "logout")
	short.call(401, "GET", "/shared/messages", nil, nil)

	reader, _ = g.me.share(id)
	events = reader.stream("GET", "/shared/events", nil)
	if err := g.threads.Delete(ctx, thole.Actor{User: thole.LocalUser, Via: "token"}, thole.ThreadID(id)); err != nil {
		t.Fatal(err)
	}
	ended(events, "deleted")
	reader.call(401, "GET", "/shared", nil, nil)
	for _, life := range []time.Duration{-1, session.MaxShareLife + 1} {
		if _, _, err := g.Sessions.NewShare(ctx, thole.LocalUser, thole.ThreadID(id), life); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("a life of %s: %v", life, err)
		}
	}
}
