package team

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// word is in everything that the owner of the things makes.
const word = "xylophone"

// member is an ordinary user with a thing of every kind, by the names of the parameters with which
// requests name them.
type member struct {
	*browser
	s   *server
	ids map[string]string
}

// asked is an answer, and what of it does not depend on the ids and the moment.
type asked struct {
	status int
	text   string
	etag   string
}

var fleeting = regexp.MustCompile(`"(trace_id|instance)":"[^"]*"| · exported [^·]*`)

func (m *member) ask(method, path string, body any, header ...string) asked {
	m.s.t.Helper()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			m.s.t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(m.s.t.Context(), method, m.s.base+path, in)
	if err != nil {
		m.s.t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Thole-Proof", m.proof)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := m.Do(req)
	if err != nil {
		m.s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return asked{status: res.StatusCode, text: "a stream"}
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		m.s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return asked{res.StatusCode, string(text), res.Header.Get("ETag")}
}

// does asks for what must be answered.
func (m *member) does(method, path string, body any) map[string]any {
	m.s.t.Helper()
	got := m.ask(method, path, body)
	out := map[string]any{}
	if err := json.Unmarshal([]byte(got.text), &out); err != nil || got.status >= 300 {
		m.s.t.Fatalf("%s %s: %d %s", method, path, got.status, got.text)
	}
	return out
}

// items are those of a list.
func (m *member) items(path string) []map[string]any {
	m.s.t.Helper()
	var all []map[string]any
	for _, i := range m.does("GET", path, nil)["items"].([]any) {
		all = append(all, i.(map[string]any))
	}
	return all
}

// settle makes one of everything.
func (m *member) settle(say string) {
	m.s.t.Helper()
	id := func(o map[string]any, name string) string {
		m.s.t.Helper()
		v, ok := o[name].(string)
		if !ok || v == "" {
			m.s.t.Fatalf("no %s in %v", name, o)
		}
		return v
	}
	thread := id(m.does("POST", "/sessions", map[string]any{"provider": "test", "execution_profile": "ask", "name": say}), "id")
	// A run that ended, with its items, and one that waits for an answer.
	first := id(m.does("POST", "/sessions/"+thread+"/runs", map[string]any{"text": "sim: say " + say + " ;; todo " + say}), "id")
	poll.Until(m.s.t, "the first run", func() bool { return m.does("GET", "/runs/"+first, nil)["outcome"] == "completed" })
	run := id(m.does("POST", "/sessions/"+thread+"/runs", map[string]any{"text": "sim: run echo " + say}), "id")
	question := ""
	poll.Until(m.s.t, "the question", func() bool {
		for _, q := range m.items("/runs/" + run + "/human-loop") {
			question = id(q, "question_id")
		}
		return question != ""
	})
	job := m.does("POST", "/jobs", map[string]any{"session_id": thread, "summary": say, "dedupe_key": "the same for both", "metadata": map[string]any{"say": say}})
	done := m.does("POST", "/jobs", map[string]any{"session_id": thread, "summary": say})
	m.does("POST", "/jobs/"+id(done, "job_id")+"/complete", map[string]any{"summary": say, "result": strings.Repeat(say+"\n", 10)})
	batch := ""
	poll.Until(m.s.t, "the batch", func() bool {
		for _, b := range m.items("/batches") {
			batch = id(b, "batch_id")
		}
		return batch != ""
	})
	m.ids = map[string]string{
		"session_id": thread, "chat_id": thread, "run_id": run, "question_id": question,
		"message_id": id(m.does("POST", "/sessions/"+thread+"/queue", map[string]any{"text": say}), "id"),
		"share_id":   id(m.does("POST", "/sessions/"+thread+"/shares", map[string]any{}), "id"),
		"job_id":     id(job, "job_id"), "batch_id": batch,
		"token_id": id(m.does("POST", "/auth/tokens", map[string]any{"name": say, "confirm_code": ""}), "id"),
		"login_id": id(m.does("GET", "/auth/session", nil), "id"),
		"item_id":  id(m.does("POST", "/vault/items", map[string]any{"name": say, "kind": "env", "value": say}), "id"),
		"user_id":  id(m.does("GET", "/auth/session", nil)["user"].(map[string]any), "id"),
	}
	for _, i := range m.items("/sessions/" + thread + "/items") {
		m.ids["thread_item_id"] = id(i, "id")
	}
}

// absent are ids of the same form that nothing has.
func absent() map[string]string {
	const none = "01900000-0000-7000-8000-0000000000ff"
	return map[string]string{
		"session_id": none, "chat_id": none, "run_id": none, "question_id": none, "message_id": none, "share_id": none, "job_id": none, "batch_id": none, "token_id": none,
		"login_id": none, "budget_id": none, "item_id": none, "user_id": none, "thread_item_id": none,
	}
}

// operation is one of the server's own document.
type operation struct {
	method, path string
	Parameters   []struct{ In, Name string }
	RequestBody  any
}

func (m *member) operations() (all []operation) {
	m.s.t.Helper()
	var doc struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal([]byte(m.ask("GET", "/openapi.json", nil).text), &doc); err != nil {
		m.s.t.Fatal(err)
	}
	for path, by := range doc.Paths {
		for method, op := range by {
			op.method, op.path = strings.ToUpper(method), path
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.method+a.path, b.method+b.path) })
	return all
}

// foreignBodies are the bodies that name things, and enough of the others to be about something.
func foreignBodies(ids map[string]string) map[string][]any {
	type o = map[string]any
	chat := o{"id": ids["session_id"], "trigger": "submit-message", "provider": "test", "existing": true, "messages": []o{{"id": "m1", "role": "user", "parts": []o{{"type": "text", "text": "x"}}}}}
	again := maps.Clone(chat)
	again["trigger"], again["messageId"] = "regenerate-message", ids["message_id"]
	method := func(name string, params o) o { return o{"method": name, "params": params} }
	return map[string][]any{
		"POST /api/chat":                                     {chat, again},
		"POST /api/chat-opencode":                            {chat, again},
		"POST /api/chat-history":                             {o{"id": ids["session_id"], "provider": "test"}},
		"POST /api/chat-opencode-history":                    {o{"id": ids["session_id"], "provider": "test"}},
		"POST /auth/devices/{code}":                          {o{"confirm": true}},
		"POST /batches/{batch_id}/close":                     {o{"reason": "cancelled"}},
		"POST /batches/{batch_id}/deliver":                   {o{"anyway": true}},
		"POST /budgets":                                      {o{"scope": "thread", "subject": ids["session_id"], "limit_tokens": 1}, o{"scope": "user", "subject": ids["user_id"], "limit_tokens": 1}},
		"PUT /budgets/{budget_id}":                           {o{"limit_tokens": 1}},
		"POST /jobs":                                         {o{"session_id": ids["session_id"]}, o{"session_id": ids["session_id"], "dedupe_key": "the same for both"}, o{"session_id": "OWN", "parent_job_id": ids["job_id"]}},
		"POST /jobs/{job_id}/complete":                       {o{"summary": "taken"}},
		"POST /jobs/{job_id}/fail":                           {o{"summary": "taken"}},
		"POST /runs/{run_id}/human-loop/{question_id}/reply": {o{"decision": "deny"}},
		"POST /runs/{run_id}/steer":                          {o{"text": "x"}},
		"POST /sessions":                                     {o{"id": ids["session_id"], "provider": "test"}, o{"provider": "test", "source": o{"kind": "upload", "upload": ids["item_id"]}}},
		"POST /sessions/bulk":                                {o{"action": "delete", "ids": []string{ids["session_id"]}}, o{"action": "pin", "ids": []string{ids["session_id"]}}},
		"PATCH /sessions/{session_id}":                       {o{"name": "taken"}},
		"POST /sessions/{session_id}/changes/apply":          {o{"check": true}},
		"POST /sessions/{session_id}/changes/pr":             {o{}},
		"POST /sessions/{session_id}/changes/pull":           {o{}},
		"POST /sessions/{session_id}/changes/push":           {o{}},
		"POST /sessions/{session_id}/changes/undo":           {o{"turn": ids["run_id"]}},
		"POST /sessions/{session_id}/fork":                   {o{"up_to_run_id": ids["run_id"]}, o{"before_run_id": ids["run_id"]}},
		"POST /sessions/{session_id}/ports":                  {o{"port": 8080}},
		"POST /sessions/{session_id}/queue":                  {o{"text": "x", "client_id": ids["message_id"]}},
		"PUT /sessions/{session_id}/queue/order":             {o{"order": []string{ids["message_id"]}}},
		"PATCH /sessions/{session_id}/queue/{message_id}":    {o{"text": "taken"}},
		"POST /sessions/{session_id}/runs":                   {o{"text": "x"}},
		"POST /sessions/{session_id}/shares":                 {o{}},
		"PUT /vault/items/{item_id}/value":                   {o{"value": "taken"}},
		"POST /methods": {
			method("thole/thread/find", o{"text": ids["session_id"]}), method("thole/thread/find", o{"text": ids["session_id"][:13]}),
			method("thole/job/query", o{"job_id": ids["job_id"]}), method("thole/job/cancel", o{"job_id": ids["job_id"]}), method("thole/job/list", o{"source_thread_id": ids["session_id"]}), method("thole/job/list", o{"after": ids["job_id"]}),
			method("thole/batch/inspect", o{"batch_id": ids["batch_id"]}), method("thole/batch/list", o{"source_thread_id": ids["session_id"]}), method("thole/batch/list", o{"after": ids["batch_id"]}),
			method("thole/usage", o{"session": ids["session_id"]}), method("thole/usage", o{"user": ids["user_id"]}),
			method("thole/budget/show", o{"id": ids["budget_id"]}), method("thole/budget/remove", o{"id": ids["budget_id"]}), method("thole/budget/set", o{"id": ids["budget_id"], "limit_tokens": 1}),
			method("thole/token/list", o{"user": ids["user_id"]}), method("thole/token/revoke", o{"id": ids["token_id"]}), method("thole/token/revoke", o{"name": word}),
			method("thole/login/revoke", o{"id": ids["login_id"]}), method("thole/share/create", o{"thread": ids["session_id"]}), method("thole/share/list", o{"thread": ids["session_id"]}), method("thole/share/revoke", o{"id": ids["share_id"]}),
			method("thole/user/disable", o{"login": "ada"}), method("thole/user/reset", o{"login": "ada"}), method("thole/user/list", o{}), method("thole/token/service", o{"user": "ada", "name": "x"}),
			method("thole/grant/add", o{"user": "eve", "role": "viewer", "on": "user", "name": "ada"}), method("thole/grant/list", o{}), method("thole/audit/latest", o{"resource": ids["session_id"]}),
			method("thole/artifact/inspect", o{"artifact_id": ids["job_id"]}), method("thole/workspace/export", o{"thread": ids["session_id"]}), method("thole/job/submit", o{"thread_id": ids["session_id"]}),
		},
	}
}

// TestNothingOfAnothers: an ordinary member names another member's things in every parameter, query,
// body, cursor and precondition that the server's own document has. Each answer is the one for what is
// not there, nothing of the other's is in it, and nothing of theirs has changed.
func TestNothingOfAnothers(t *testing.T) {
	const chosen = "correct horse battery"
	h := home.New(t)
	s := serve(t, h, "--config", configured(t, h.Dir, lab.Postgres(t), nil, "", ""))
	_, code, _ := strings.Cut(s.set, "#code=")
	root := s.enter("/auth/account", map[string]any{"code": code, "login": "root", "password": chosen})
	people := map[string]*member{}
	for _, login := range []string{"ada", "eve", "max"} {
		_, made := s.send(root, "/methods", map[string]any{"method": "thole/user/add", "params": map[string]any{"login": login}})
		_, code, _ := strings.Cut(made["url"].(string), "#code=")
		people[login] = &member{browser: s.enter("/auth/account", map[string]any{"code": code, "password": chosen}), s: s}
	}
	ada, eve := people["ada"], people["eve"]
	ada.settle(word)
	eve.settle("trombone")
	boss := &member{browser: root, s: s}
	for _, m := range []*member{ada, eve} { // members set none themselves
		m.ids["budget_id"] = boss.does("POST", "/budgets", map[string]any{"scope": "thread", "subject": m.ids["session_id"], "limit_tokens": 1 << 40})["id"].(string)
	}

	// What ada has, before and after: all that she can read.
	reads := func() map[string]string {
		out := map[string]string{}
		for _, op := range ada.operations() {
			if op.method != "GET" || strings.HasPrefix(op.path, "/auth/oidc") || strings.Contains(op.path, ".js") || slices.Contains([]string{"/metrics", "/readyz", "/connections", "/contract", "/usage", "/auth/session", "/auth/logins", "/batches", "/batches/{batch_id}", "/ledger", "/jobs", "/jobs/{job_id}", "/sessions/{session_id}/jobs", "/openapi.json"}, op.path) {
				continue
			}
			path := fillIn(op.path, ada.ids)
			if strings.Contains(path, "{") || strings.HasSuffix(path, "/stream") || strings.HasSuffix(path, "/events") && !strings.Contains(path, "todos") {
				continue
			}
			got := ada.ask("GET", path, nil)
			out[path] = fmt.Sprint(got.status, " ", fleeting.ReplaceAllString(got.text, ""), got.etag)
		}
		return out
	}
	before := reads()
	if len(before) < 40 || !strings.Contains(before["/sessions/"+ada.ids["session_id"]], word) {
		t.Fatalf("ada reads %d things", len(before))
	}

	// judge compares an answer about ada's thing with the one about nothing.
	tried := 0
	judge := func(what string, theirs, none asked) {
		t.Helper()
		tried++
		if strings.Contains(theirs.text, word) && !strings.Contains(what, word) {
			t.Errorf("%s: the other's things are in %d %s", what, theirs.status, theirs.text)
		}
		blank := func(a asked) string {
			text := fleeting.ReplaceAllString(a.text, "")
			for _, ids := range []map[string]string{ada.ids, absent()} {
				for _, id := range ids {
					text = strings.ReplaceAll(strings.ReplaceAll(text, id, "ID"), id[:13], "ID")
				}
			}
			return text
		}
		if theirs.status != none.status || blank(theirs) != blank(none) {
			t.Errorf("%s: answered %d %.300s\nand of nothing %d %.300s", what, theirs.status, theirs.text, none.status, none.text)
		}
	}
	etags := map[string]string{}
	for _, of := range []string{"session_id", "message_id", "budget_id", "item_id"} {
		path := map[string]string{"session_id": "/sessions/{session_id}", "message_id": "/sessions/{session_id}/queue", "budget_id": "/budgets/{budget_id}", "item_id": "/vault/items/{item_id}"}[of]
		etags[of] = ada.ask("GET", fillIn(path, ada.ids), nil).etag
	}
	theirBodies, noBodies := foreignBodies(ada.ids), foreignBodies(absent())
	for _, op := range eve.operations() {
		name := op.method + " " + op.path
		if strings.HasPrefix(op.path, "/auth/oidc") || name == "POST /auth/logout" || name == "GET /contract" || op.path == "/metrics" || op.path == "/shared" || strings.HasPrefix(op.path, "/shared/") {
			continue // of nobody's things, or opened by a link alone
		}
		var params []string
		for _, p := range op.Parameters {
			if p.In == "path" {
				params = append(params, p.Name)
			}
		}
		bodies, none := theirBodies[name], noBodies[name]
		if bodies == nil {
			bodies, none = []any{nil}, []any{nil}
		}
		for i := range bodies {
			theirs, nobodys := own(bodies[i], eve.ids), own(none[i], eve.ids)
			if m, _ := theirs.(map[string]any); slices.Contains([]string{"POST /sessions", "POST /api/chat-history", "POST /api/chat-opencode-history"}, name) && m["id"] != nil {
				tried++ // the id of a new thread may be chosen, one that is in use may not
				if got := eve.ask(op.method, op.path, theirs); got.status != 409 || strings.Contains(got.text, word) {
					t.Errorf("%s with ada's id: %d %s", name, got.status, got.text)
				}
				continue
			}
			// All of the path is ada's, then one part of it and the rest eve's own.
			for _, foreign := range append([][]string{params}, single(params)...) {
				at, away := maps.Clone(eve.ids), maps.Clone(eve.ids)
				for _, p := range foreign {
					at[p], away[p] = ada.ids[p], absent()[p]
				}
				if strings.Contains(op.path, "/items/{item_id}") && strings.HasPrefix(op.path, "/sessions") {
					for m, of := range map[*map[string]string]map[string]string{&at: ada.ids, &away: absent()} {
						(*m)["item_id"] = eve.ids["thread_item_id"]
						if slices.Contains(foreign, "item_id") {
							(*m)["item_id"] = of["thread_item_id"]
						}
					}
				}
				for _, m := range []map[string]string{at, away} {
					m["code"], m["port"], m["provider"] = "BCDF-GHJK", "8080", "test"
				}
				if len(foreign) == 0 && op.method != "GET" && bodies[i] == nil {
					continue // names nothing
				}
				judge(fmt.Sprintf("%s with ada's %v %v", name, foreign, theirs), eve.ask(op.method, fillIn(op.path, at), theirs), eve.ask(op.method, fillIn(op.path, away), nobodys))
				for _, tag := range etags {
					if tag != "" && len(foreign) > 0 && (op.method == "PATCH" || op.method == "PUT" || op.method == "DELETE") {
						judge(name+" with ada's state", eve.ask(op.method, fillIn(op.path, at), theirs, "If-Match", tag), eve.ask(op.method, fillIn(op.path, away), nobodys, "If-Match", tag))
					}
				}
			}
		}
		if op.method != "GET" {
			continue
		}
		// Each of ada's ids as each query parameter, on eve's own things.
		at := maps.Clone(eve.ids)
		at["code"], at["port"], at["provider"] = "BCDF-GHJK", "8080", "test"
		if strings.Contains(op.path, "/items/{item_id}") && strings.HasPrefix(op.path, "/sessions") {
			at["item_id"] = eve.ids["thread_item_id"]
		}
		for _, p := range op.Parameters {
			if p.In != "query" || p.Name == "limit" || p.Name == "order" {
				continue
			}
			for kind, id := range ada.ids {
				theirs, none := url.Values{p.Name: {id}}, url.Values{p.Name: {absent()[kind]}}
				judge(name+" with ada's "+kind+" as "+p.Name, eve.ask("GET", fillIn(op.path, at)+"?"+theirs.Encode(), nil), eve.ask("GET", fillIn(op.path, at)+"?"+none.Encode(), nil))
			}
		}
		// A cursor of ada's list is no way into hers.
		for _, p := range op.Parameters {
			if p.In != "query" || p.Name != "cursor" {
				continue
			}
			var page struct{ Next string }
			_ = json.Unmarshal([]byte(ada.ask("GET", fillIn(op.path, ada.ids)+"?limit=1", nil).text), &page)
			if page.Next == "" {
				continue
			}
			tried++
			if got := eve.ask("GET", fillIn(op.path, at)+"?"+url.Values{"cursor": {page.Next}}.Encode(), nil); strings.Contains(got.text, word) || strings.Contains(got.text, ada.ids["session_id"]) {
				t.Errorf("%s with ada's cursor: %d %s", name, got.status, got.text)
			}
		}
	}
	if got := eve.ask("GET", "/search?query="+word, nil); strings.Contains(got.text, ada.ids["session_id"]) {
		t.Errorf("a search finds the other's: %s", got.text)
	}
	if tried < 500 {
		t.Errorf("only %d requests", tried)
	}
	t.Logf("%d requests", tried)

	// And nothing of it happened.
	after := reads()
	for path, was := range before {
		if now := after[path]; now != was {
			t.Errorf("GET %s changed:\n%.600s\n%.600s", path, was, now)
		}
	}
	if got := ada.does("GET", "/batches/"+ada.ids["batch_id"], nil); got["closed_at"] != nil || got["delivery_attempt_count"] != 0.0 {
		t.Errorf("the batch: %v", got)
	}
	if got := ada.does("GET", "/jobs/"+ada.ids["job_id"], nil); got["status"] != "running" {
		t.Errorf("the job: %v", got)
	}

	// A change of ada's jobs reaches her, and not a member who has none: what is his comes after it.
	hers, his := ada.follow(), people["max"].follow()
	ada.does("POST", "/jobs/"+ada.ids["job_id"]+"/cancel", nil)
	if !until(hers, "jobs.changed", time.Minute) {
		t.Error("the owner of a job does not hear that it changed")
	}
	mine := people["max"].does("POST", "/sessions", map[string]any{"provider": "test"})["id"].(string)
	for line := range his {
		if strings.Contains(line, "jobs.changed") {
			t.Error("one without jobs hears of another's")
		}
		if strings.Contains(line, mine) {
			break
		}
	}
	people["max"].does("POST", "/jobs", map[string]any{"session_id": mine})
	if !until(his, "jobs.changed", time.Minute) {
		t.Error("the owner of a new job does not hear of it")
	}

	// The key of ada's request is not eve's: hers is done, and is her own.
	ada.ask("POST", "/sessions", map[string]any{"provider": "test", "name": word + " by key"}, "Idempotency-Key", "the-key")
	if got := eve.ask("POST", "/sessions", map[string]any{"provider": "test", "name": "by key"}, "Idempotency-Key", "the-key"); got.status != 201 || strings.Contains(got.text, word) {
		t.Errorf("a key of another user: %d %s", got.status, got.text)
	}
}

// follow reads the stream of all that a member may see.
func (m *member) follow() <-chan string {
	m.s.t.Helper()
	req, err := http.NewRequestWithContext(m.s.t.Context(), "GET", m.s.base+"/events", nil)
	if err != nil {
		m.s.t.Fatal(err)
	}
	req.Header.Set("Thole-Proof", m.proof)
	res, err := m.Do(req)
	if err != nil || res.StatusCode != 200 {
		m.s.t.Fatalf("/events: %v %v", res, err)
	}
	out := make(chan string, 10_000)
	began := make(chan struct{})
	go func() {
		defer close(out)
		defer res.Body.Close()
		first := true
		for lines := bufio.NewScanner(res.Body); lines.Scan(); first = false {
			if first {
				close(began) // what happens from now on is in it
			}
			out <- lines.Text()
		}
	}()
	<-began
	return out
}

func fillIn(path string, ids map[string]string) string {
	for k, v := range ids {
		path = strings.ReplaceAll(path, "{"+k+"}", v)
	}
	return path
}

func single(of []string) (out [][]string) {
	if len(of) > 1 {
		for _, p := range of {
			out = append(out, []string{p})
		}
	}
	return out
}

// own puts one's own thread where a body asks for it.
func own(body any, ids map[string]string) any {
	m, ok := body.(map[string]any)
	if !ok || m["session_id"] != "OWN" {
		return body
	}
	m = maps.Clone(m)
	m["session_id"] = ids["session_id"]
	return m
}
