package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/platform/httpapi"
)

// secret is a word that only the first user's things contain.
const secret = "xylophone"

// mine makes one of everything for the first user and returns the ids that
// routes ask for.
func mine(g *rig) map[string]string {
	id := g.me.session(obj{"name": secret})
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	var run obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say " + secret + " ;; todo " + secret + " ;; run echo " + secret}, &run)
	all := s.until(ofType("human_loop.requested"))
	q := all[len(all)-1].data["data"].(obj)["question"].(obj)
	var message, token, budget, item, share obj
	g.me.call(201, "POST", "/sessions/"+id+"/shares", obj{}, &share)
	g.me.call(201, "POST", "/sessions/"+id+"/queue", obj{"text": secret}, &message)
	g.me.call(201, "POST", "/auth/tokens", obj{"name": secret}, &token)
	g.me.call(201, "POST", "/budgets", obj{"scope": "thread", "subject": id, "limit_tokens": 1 << 40}, &budget)
	g.me.call(201, "POST", "/vault/items", obj{"name": secret, "kind": "env", "value": secret}, &item)
	return map[string]string{
		"share_id": share["id"].(string), "share_token": share["token"].(string),
		"budget_id": budget["id"].(string), "item_id": item["id"].(string), "session_id": id, "run_id": run["id"].(string), "question_id": q["question_id"].(string), "message_id": message["id"].(string),
		"token_id": token["id"].(string), "code": "BCDF-GHJK", "login_id": g.me.id, "chat_id": id, "port": "8080", "provider": "codex",
		"job_id": "01900000-0000-7000-8000-000000000001", "batch_id": "01900000-0000-7000-8000-000000000002",
	}
}

// bodies has a valid body for every route that takes one.
func bodies(ids map[string]string) map[string]any {
	chat := say(ids["session_id"], "hello")
	chat["provider"] = "test"
	return map[string]any{
		"POST /auth/login":                                       obj{"token": "thole_nobody"},
		"POST /auth/account":                                     obj{"code": "nobody", "password": "a password of nobody"},
		"POST /auth/device":                                      obj{"name": "nobody", "token_sha256": "nothing"},
		"POST /auth/device/state":                                obj{"name": "nobody", "token_sha256": "nothing"},
		"POST /auth/devices/{code}":                              obj{"confirm": true},
		"POST /auth/oidc/callback":                               obj{"code": "nobody", "state": "nothing"},
		"POST /auth/oidc/backchannel-logout":                     nil,
		"PUT /auth/password":                                     obj{"old": "a password of nobody", "password": "another of nobody"},
		"POST /methods":                                          obj{"method": "thole/user/list", "params": obj{}},
		"POST /auth/tokens":                                      obj{"name": "n"},
		"POST /auth/tickets":                                     obj{"path": "/sessions"},
		"POST /sessions":                                         obj{"id": ids["session_id"], "provider": "test"},
		"PATCH /sessions/{session_id}":                           obj{"name": "taken"},
		"POST /sessions/bulk":                                    obj{"action": "delete", "ids": []string{ids["session_id"]}},
		"POST /sessions/{session_id}/fork":                       obj{},
		"POST /sessions/{session_id}/shares":                     obj{},
		"POST /sessions/{session_id}/ports":                      obj{"port": 8080},
		"POST /sessions/{session_id}/runs":                       obj{"text": "x"},
		"POST /runs/{run_id}/steer":                              obj{"text": "x"},
		"POST /sessions/{session_id}/queue":                      obj{"text": "x"},
		"PATCH /sessions/{session_id}/queue/{message_id}":        obj{"text": "x"},
		"PUT /sessions/{session_id}/queue/order":                 obj{"order": []string{ids["message_id"]}},
		"POST /runs/{run_id}/human-loop/{question_id}/reply":     obj{"decision": "deny"},
		"POST /budgets":                                          obj{"scope": "user", "limit_tokens": 1},
		"PUT /budgets/{budget_id}":                               obj{"limit_tokens": 1},
		"POST /batches/{batch_id}/close":                         obj{"reason": "cancelled"},
		"POST /batches/{batch_id}/deliver":                       obj{},
		"POST /jobs":                                             obj{"session_id": ids["session_id"]},
		"POST /jobs/{job_id}/complete":                           obj{"summary": "done"},
		"POST /jobs/{job_id}/fail":                               obj{"summary": "no"},
		"POST /vault/items":                                      obj{"name": "n", "kind": "env", "value": "v"},
		"PUT /vault/items/{item_id}/value":                       obj{"value": "taken"},
		"POST /vault/items/{item_id}/test":                       nil,
		"POST /api/chat":                                         chat,
		"POST /api/chat-opencode":                                chat,
		"POST /api/chat-history":                                 obj{"id": ids["session_id"], "provider": "test"},
		"POST /api/chat-opencode-history":                        obj{"id": ids["session_id"], "provider": "test"},
		"POST /auth/logout":                                      nil,
		"POST /uploads":                                          nil,
		"POST /sessions/{session_id}/files/save":                 nil,
		"POST /sessions/{session_id}/compact":                    nil,
		"POST /sessions/{session_id}/changes/apply":              obj{"check": true},
		"POST /sessions/{session_id}/changes/pull":               obj{},
		"POST /sessions/{session_id}/changes/merge":              nil,
		"POST /sessions/{session_id}/changes/push":               obj{},
		"POST /sessions/{session_id}/changes/pr":                 obj{},
		"POST /sessions/{session_id}/changes/undo":               obj{},
		"POST /runs/{run_id}/cancel":                             nil,
		"POST /sessions/{session_id}/queue/{message_id}/promote": nil,
		"POST /sessions/{session_id}/queue/{message_id}/start":   nil,
		"POST /jobs/{job_id}/cancel":                             nil,
		"POST /api/chat/{chat_id}/stop":                          nil,
		"POST /api/chat-opencode/{chat_id}/stop":                 nil,
	}
}

func fill(path string, ids map[string]string) string {
	for k, v := range ids {
		path = strings.ReplaceAll(path, "{"+k+"}", v)
	}
	return path
}

// deliveries answers for one user's job, as the delivery machine does.
func deliveries(owner thole.UserID) func(*httpapi.Config) {
	return func(c *httpapi.Config) {
		c.Deliveries = func(method string) httpapi.Method {
			return func(_ context.Context, a thole.Actor, _ json.RawMessage) (any, error) {
				own := a.User == owner
				switch method {
				case wire.JobList:
					if own {
						return []wire.Job{{Status: "running", TaskSummary: secret}}, nil
					}
					return []wire.Job{}, nil
				case wire.BatchList:
					return []wire.Batch{}, nil
				case wire.AuditList:
					return []wire.Audit{}, nil
				}
				if !own {
					return nil, thole.Errorf(thole.CodeNotFound, "nothing")
				}
				if method == wire.JobSubmit {
					return wire.Submitted{JobID: secret}, nil
				}
				if strings.Contains(method, "batch") {
					return wire.Batch{ReplayPolicy: "automatic", Summary: secret}, nil
				}
				return wire.Job{Status: "running", TaskSummary: secret}, nil
			}
		}
	}
}

func TestEveryRouteRefuses(t *testing.T) {
	g := newRig(t, deliveries(thole.LocalUser))
	ids := mine(g)
	body := bodies(ids)
	try := func(c *caller, rt httpapi.Route, change func(*http.Request)) (int, string) {
		t.Helper()
		wait, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		r := c.request(rt.Method, fill(rt.Path, ids), body[rt.Method+" "+rt.Path]).WithContext(wait)
		if change != nil {
			change(r)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v", rt.Method, rt.Path, err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.Header.Get("X-Trace-Id") == "" || res.Header.Get("Content-Security-Policy") == "" || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: headers %v", rt.Method, rt.Path, res.Header)
		}
		if res.Header.Get("Content-Type") == "text/event-stream" {
			return res.StatusCode, ""
		}
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	routes := g.HTTP.Routes()
	if len(routes) < 50 {
		t.Fatalf("only %d routes", len(routes))
	}
	for _, rt := range routes {
		name := rt.Method + " " + rt.Path
		if strings.Contains(fill(rt.Path, ids), "{") {
			t.Fatalf("%s: the test has no value for a parameter", name)
		}
		if _, known := body[name]; !known && rt.Method != "GET" && rt.Method != "DELETE" {
			t.Fatalf("%s: the test has no body for it", name)
		}
		nobody := &caller{g: g, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}
		if status, b := try(nobody, rt, nil); rt.Public == "" && (status != 401 || strings.Contains(b, secret)) {
			t.Errorf("%s without a login: %d %s", name, status, b)
		}
		if status, _ := try(nobody, rt, func(r *http.Request) { r.Header.Set("Authorization", "Bearer thole_wrong") }); rt.Public == "" && status != 401 {
			t.Errorf("%s with a wrong token: %d", name, status)
		}
		for what, change := range map[string]func(*http.Request){
			"the cookie alone": func(r *http.Request) { r.Header.Del(httpapi.ProofHeader) },
			"a wrong proof":    func(r *http.Request) { r.Header.Set(httpapi.ProofHeader, g.you.header.Get(httpapi.ProofHeader)) },
			"the proof alone":  func(r *http.Request) { r.Header.Del("Cookie") },
			"a wrong ticket":   func(r *http.Request) { r.URL.RawQuery = "ticket=x" },
			"another's cookie": func(r *http.Request) {
				r.Header.Del("Cookie")
				r.AddCookie(&http.Cookie{Name: g.Cookies.Name(), Value: g.you.cookie})
			},
		} {
			if status, b := try(g.me, rt, change); rt.Public == "" && (status != 401 || strings.Contains(b, secret)) {
				t.Errorf("%s with %s: %d %s", name, what, status, b)
			}
		}
		for what, change := range map[string]func(*http.Request){
			"foreign host":   func(r *http.Request) { r.Host = "evil.example" },
			"foreign origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
			"other port":     func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
			"opaque origin":  func(r *http.Request) { r.Header.Set("Origin", "null") },
			"cross-site":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"foreign upgrade": func(r *http.Request) {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket")
				r.Header.Set("Origin", "http://evil.example")
			},
			"silent upgrade": func(r *http.Request) {
				r.Header.Del("Sec-Fetch-Site")
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket")
			},
		} {
			if what == "silent upgrade" && (rt.Public != "" || rt.Shared) { // neither has a proof that browsers send by themselves
				continue
			}
			if status, b := try(g.me, rt, change); status != 403 || strings.Contains(b, secret) {
				t.Errorf("%s with %s: %d %s", name, what, status, b)
			}
		}
		if rt.Method != "GET" && rt.Public == "" {
			if status, _ := try(g.me, rt, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }); status != 403 {
				t.Errorf("%s with a cookie and no origin: %d", name, status)
			}
		}
	}
	for _, rt := range routes { // the other user, last: some of this would end a login
		name := rt.Method + " " + rt.Path
		if rt.Public != "" || name == "POST /auth/logout" {
			continue
		}
		status, b := try(g.you, rt, nil)
		if strings.Contains(b, secret) {
			t.Errorf("%s shows the other user: %d %s", name, status, b)
		}
		if strings.Contains(rt.Path, "{") && status < 400 && !strings.Contains(rt.Path, "/api/chat") {
			t.Errorf("%s as the other user: %d %s", name, status, b)
		}
		if strings.HasPrefix(rt.Path, "/api/chat") && rt.Method == "POST" && status == 200 {
			t.Errorf("%s as the other user: %d %s", name, status, b)
		}
	}
	var still obj // and nothing of it happened
	g.me.call(200, "GET", "/vault/items/"+ids["item_id"], nil, &still)
	if still["state"] != "active" || still["version"] != 1.0 {
		t.Errorf("the refused requests changed a secret: %v", still)
	}
	still = nil
	g.me.call(200, "GET", "/sessions/"+ids["session_id"]+"/snapshot", nil, &still)
	if still["session"].(obj)["name"] != secret || len(still["queue"].([]any)) != 1 || len(still["questions"].([]any)) != 1 ||
		still["active_run"].(obj)["interrupt_requested"] != false {
		t.Errorf("the refused requests had an effect: %v", still)
	}
	res, err := http.Get(g.URL + "/events?sessions=" + ids["session_id"])
	if err != nil || res.StatusCode != 401 {
		t.Errorf("event stream without a login: %v %v", res.Status, err)
	}
	_ = res.Body.Close()
	g.you.call(404, "GET", "/events?sessions="+ids["session_id"], nil, nil)
}

func TestUnknownPaths(t *testing.T) {
	g := newRig(t)
	var p obj
	g.me.call(404, "GET", "/sessions/x/y/z", nil, &p)
	if p["code"] != "not_found" || p["trace_id"] == "" {
		t.Errorf("problem = %v", p)
	}
	res := g.me.call(405, "PUT", "/sessions", nil, nil)
	if res.Header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow = %q", res.Header.Get("Allow"))
	}
	g.me.call(422, "GET", "/sessions/not-a-uuid", nil, &p)
	g.me.call(422, "POST", "/sessions", obj{"nome": "x"}, &p)
	if p["trace_id"] == "" || p["errors"] == nil {
		t.Errorf("problem = %v", p)
	}
	res = (&caller{g: g}).call(200, "GET", "/c/anything", nil, nil)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page is %s", res.Header.Get("Content-Type"))
	}
}

// A browser that opens /usage gets the page, a client of the API gets data.
func TestPagesWithNamesOfTheAPI(t *testing.T) {
	g := newRig(t)
	for _, path := range []string{"/usage", "/connections"} {
		for accept, want := range map[string]string{"text/html,application/xhtml+xml,*/*;q=0.8": "text/html", "application/json": "application/json", "*/*": "application/json"} {
			res := g.me.with("Accept", accept).call(200, "GET", path, nil, nil)
			if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, want) {
				t.Errorf("GET %s with Accept %s: %s", path, accept, got)
			}
		}
	}
}
