package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func items(o obj) []any { return o["items"].([]any) }

func TestSessions(t *testing.T) {
	g := newRig(t)
	var a, b, l obj
	once := g.me.with("Idempotency-Key", "k1")
	once.call(201, "POST", "/sessions", obj{"name": "Alpha", "provider": "test", "provider_options": obj{"n": 3, "s": "x"}}, &a)
	once.call(201, "POST", "/sessions", obj{"name": "Alpha", "provider": "test", "provider_options": obj{"n": 3, "s": "x"}}, &b)
	if a["id"] != b["id"] || a["provider_options"].(obj)["n"] != "3" {
		t.Fatalf("a repeated create: %v, %v", a, b)
	}
	id := a["id"].(string)
	g.me.session(obj{"name": "Beta"})
	g.me.call(200, "GET", "/sessions?search=alph", nil, &l)
	if len(items(l)) != 1 || items(l)[0].(obj)["name"] != "Alpha" {
		t.Fatalf("search = %v", l)
	}
	g.me.call(200, "GET", "/sessions?limit=1", nil, &l)
	if len(items(l)) != 1 || l["next"] == nil {
		t.Fatalf("page = %v", l)
	}
	var next obj
	g.me.call(200, "GET", "/sessions?limit=1&cursor="+l["next"].(string), nil, &next)
	if len(items(next)) != 1 || items(next)[0].(obj)["id"] == items(l)[0].(obj)["id"] {
		t.Fatalf("second page = %v", next)
	}
	g.me.call(400, "GET", "/sessions?cursor=zzz", nil, nil)

	tag := g.me.call(200, "GET", "/sessions/"+id, nil, nil).Header.Get("ETag")
	edited := g.me.with("If-Match", tag).call(200, "PATCH", "/sessions/"+id, obj{"name": "Gamma", "execution_profile": "plan"}, &a)
	if a["name"] != "Gamma" || a["execution_profile"] != "plan" || edited.Header.Get("ETag") == tag {
		t.Fatalf("edit = %v", a)
	}
	g.me.with("If-Match", tag).call(412, "PATCH", "/sessions/"+id, obj{"name": "Delta"}, nil)
	g.me.with("If-Match", tag).call(412, "DELETE", "/sessions/"+id, nil, nil)
	g.me.call(200, "PATCH", "/sessions/"+id, obj{"archived": true}, nil)
	g.me.call(200, "GET", "/sessions?archived=true", nil, &l)
	if len(items(l)) != 1 {
		t.Fatalf("archived = %v", l)
	}
	g.me.call(409, "POST", "/sessions/"+id+"/runs", obj{"text": "x"}, nil)
	g.me.call(204, "DELETE", "/sessions/"+id, nil, nil)
	g.me.call(404, "GET", "/sessions/"+id, nil, nil)
	var p obj
	g.me.call(503, "POST", "/sessions", obj{"provider": "opencode"}, &p)
	if p["hint"] != "npm install -g opencode-ai" {
		t.Errorf("problem = %v", p)
	}
	g.me.call(422, "POST", "/sessions", obj{"provider": "nobody"}, nil)
}

func TestRuns(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	var run, again, v obj
	once := g.me.with("Idempotency-Key", "r1").with("X-Trace-Id", "trace-1")
	once.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say hi ;; todo [x] one | two ;; run echo out ;; hang", "client_id": "c1"}, &run)
	once.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say hi ;; todo [x] one | two ;; run echo out ;; hang", "client_id": "c1"}, &again)
	if run["id"] != again["id"] || run["trace_id"] != "trace-1" || run["client_id"] != "c1" {
		t.Fatalf("runs = %v, %v", run, again)
	}
	path := "/runs/" + run["id"].(string)
	g.me.call(409, "POST", "/sessions/"+id+"/runs", obj{"text": "busy"}, &v)
	if v["code"] != "busy" {
		t.Errorf("busy = %v", v)
	}
	all := s.until(ofType("human_loop.requested"))
	q := all[len(all)-1].data["data"].(obj)["question"].(obj)
	g.me.call(200, "GET", "/human-loop", nil, &v)
	if len(items(v)) != 1 || items(v)[0].(obj)["question_id"] != q["question_id"] {
		t.Fatalf("waiting = %v", v)
	}
	g.you.call(200, "GET", "/human-loop", nil, &v)
	if len(items(v)) != 0 {
		t.Fatalf("the other user sees %v", v)
	}
	reply := path + "/human-loop/" + q["question_id"].(string) + "/reply"
	g.me.call(404, "POST", path+"/human-loop/nothing/reply", obj{"decision": "allow"}, nil)
	g.me.call(200, "POST", reply, obj{"decision": "allow"}, &v)
	if v["state"] != "answered" || v["answered_by"] == nil {
		t.Fatalf("answered = %v", v)
	}
	g.me.call(200, "POST", reply, obj{"decision": "allow"}, nil)
	g.me.call(409, "POST", reply, obj{"decision": "deny"}, nil)
	s.until(func(e sseEvent) bool {
		item, _ := e.data["data"].(obj)["item"].(obj)
		return e.data["type"] == "item.completed" && item["kind"] == "command"
	})
	g.me.call(200, "GET", path+"/human-loop?state=all", nil, &v)
	if len(items(v)) != 1 {
		t.Fatalf("history = %v", v)
	}
	g.me.call(200, "GET", path+"/tool-executions", nil, &v)
	if len(items(v)) != 1 || items(v)[0].(obj)["output"] != "out\n" || items(v)[0].(obj)["exit_code"] != 0.0 {
		t.Fatalf("tools = %v", v)
	}
	g.me.call(200, "GET", path+"/todos", nil, &v)
	if len(items(v)) != 2 || items(v)[0].(obj)["state"] != "done" {
		t.Fatalf("todos = %v", v)
	}
	g.me.call(200, "GET", path+"/todos/events", nil, &v)
	if len(items(v)) != 1 || items(v)[0].(obj)["type"] != "todo.snapshot" {
		t.Fatalf("todo events = %v", v)
	}
	g.me.call(200, "GET", path+"/phases", nil, &v)
	if got := phasesOf(v); !strings.HasPrefix(got, "queued ") || !strings.HasSuffix(got, " running waiting_human running") {
		t.Fatalf("phases = %s", got)
	}
	g.me.call(200, "GET", "/sessions/"+id+"/items?order=desc&limit=1", nil, &v)
	if len(items(v)) != 1 || v["next"] == nil || items(v)[0].(obj)["kind"] != "command" {
		t.Fatalf("items = %v", v)
	}
	g.me.call(202, "POST", path+"/cancel", nil, nil)
	s.until(ofType("run.ended"))
	g.me.call(200, "GET", path, nil, &v)
	if v["outcome"] != "interrupted" {
		t.Fatalf("run = %v", v)
	}
	g.me.call(202, "POST", path+"/cancel", nil, nil) // a repeat is fine
	g.me.call(200, "GET", "/usage?group=provider", nil, &v)
	if v["total"].(obj)["runs"] != 1.0 || v["groups"].([]any)[0].(obj)["key"] != "test" {
		t.Fatalf("usage = %v", v)
	}
	g.me.call(200, "GET", "/usage?group=day&from=2020-01-01T00:00:00Z", nil, &v)
	if day := v["groups"].([]any)[0].(obj)["key"].(string); len(day) != 10 {
		t.Errorf("day = %q", day)
	}
	var fork obj
	g.me.with("Idempotency-Key", "f").call(201, "POST", "/sessions/"+id+"/fork", obj{}, &fork)
	g.me.with("Idempotency-Key", "f").call(201, "POST", "/sessions/"+id+"/fork", obj{}, &v)
	if fork["id"] != v["id"] || fork["forked_from"] != id {
		t.Fatalf("fork = %v, %v", fork, v)
	}
	g.me.call(200, "GET", "/sessions/"+fork["id"].(string)+"/messages", nil, &v)
	if len(items(v)) != 2 {
		t.Fatalf("the fork's chat = %v", v)
	}
}

func TestQueue(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	base := "/sessions/" + id + "/queue"
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	var run, l obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say one ;; hang"}, &run)
	s.until(ofType("item.completed"))
	var ids []string
	for i := range 3 {
		var m, same obj
		c := g.me.with("Idempotency-Key", fmt.Sprint("q", i))
		c.call(201, "POST", base, obj{"text": fmt.Sprint("sim: say queued ", i)}, &m)
		c.call(201, "POST", base, obj{"text": fmt.Sprint("sim: say queued ", i)}, &same)
		if m["id"] != same["id"] {
			t.Fatalf("a repeat queued twice: %v %v", m, same)
		}
		ids = append(ids, m["id"].(string))
	}
	tag := g.me.call(200, "GET", base, nil, &l).Header.Get("ETag")
	if len(items(l)) != 3 {
		t.Fatalf("queue = %v", l)
	}
	g.me.with("If-Match", tag).call(200, "PUT", base+"/order", obj{"order": []string{ids[2], ids[0], ids[1]}}, &l)
	if items(l)[0].(obj)["id"] != ids[2] {
		t.Fatalf("order = %v", l)
	}
	g.me.with("If-Match", tag).call(412, "PUT", base+"/order", obj{"order": ids}, nil)
	var m obj
	old := g.me.call(200, "PATCH", base+"/"+ids[0], obj{"text": "sim: say edited"}, &m).Header.Get("ETag")
	g.me.with("If-Match", old).call(200, "PATCH", base+"/"+ids[0], obj{"text": "sim: say edited again"}, nil)
	g.me.with("If-Match", old).call(412, "DELETE", base+"/"+ids[0], nil, nil)
	g.me.call(204, "DELETE", base+"/"+ids[1], nil, nil)
	g.me.call(404, "DELETE", base+"/"+ids[1], nil, nil)
	g.me.call(409, "POST", base+"/"+ids[0]+"/start", nil, nil)
	g.me.call(202, "POST", "/runs/"+run["id"].(string)+"/cancel", nil, nil)
	s.until(ofType("run.ended"))
	g.me.call(201, "POST", base+"/"+ids[0]+"/start", nil, &run)
	s.until(func(e sseEvent) bool {
		item, _ := e.data["data"].(obj)["item"].(obj)
		return item["kind"] == "message" && item["text"] == "edited again"
	})
}

func TestTokensAndLogout(t *testing.T) {
	g := newRig(t)
	var made, same, me obj
	g.me.with("Idempotency-Key", "t").call(201, "POST", "/auth/tokens", obj{"name": "ci"}, &made)
	g.me.with("Idempotency-Key", "t").call(201, "POST", "/auth/tokens", obj{"name": "ci"}, &same)
	if made["token"] == nil || same["token"] != nil || same["id"] != made["id"] {
		t.Fatalf("tokens = %v, %v", made, same)
	}
	script := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + made["token"].(string)}}}
	script.call(200, "GET", "/auth/session", nil, &me)
	if me["via"] != "token" || me["user"].(obj)["login"] != "local" {
		t.Fatalf("me = %v", me)
	}
	script.session(nil) // scripts say no origin
	exchanged := g.browser(obj{"token": made["token"]})
	exchanged.call(200, "GET", "/auth/session", nil, nil)
	g.me.call(204, "DELETE", "/auth/tokens/"+made["id"].(string), nil, nil)
	script.call(401, "GET", "/auth/session", nil, nil)
	exchanged.call(401, "GET", "/auth/session", nil, nil) // it ended with its token
	g.me.call(204, "POST", "/auth/logout", nil, nil)
	g.me.call(401, "GET", "/auth/session", nil, nil)
}

func TestLimits(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	g.me.call(413, "POST", "/sessions/"+id+"/runs", obj{"text": strings.Repeat("x", 25<<20)}, nil)
	g.me.call(413, "POST", "/api/chat", say(id, strings.Repeat("x", 25<<20)), nil)
	file := func(url string) obj {
		return obj{"id": id, "messages": []obj{{"id": "m", "role": "user", "parts": []obj{{"type": "file", "mediaType": "application/pdf", "url": url}}}}}
	}
	g.me.call(422, "POST", "/api/chat", file("data:,x"), nil)
	g.me.call(501, "POST", "/api/chat", file("https://files.example/x.pdf"), nil)
}

// Members are known by their exact names: in another case they are unknown, and
// next to the right one refused.
func TestBodiesAreKnownByTheirExactNames(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"name": "Alpha"})
	for body, status := range map[string]int{
		`{"Execution_Profile":"full"}`: 422, `{"execution_profile":"plan","EXECUTION_PROFILE":"full"}`: 422,
		`{"execution_profile":"plan","execution_profile":"full"}`: 400, `{"execution_profile":"plan","execution\u005fprofile":"full"}`: 400,
		`{"execution_profile":"plan"}`: 200,
	} {
		g.me.call(status, "PATCH", "/sessions/"+id, json.RawMessage(body), nil)
	}
}

func phasesOf(v obj) string {
	var out []string
	for _, it := range items(v) {
		out = append(out, it.(obj)["phase"].(string))
	}
	return strings.Join(out, " ")
}
