package httpapi_test

import (
	"io"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
)

// TestKeyWithAnotherBody: a key stands for one request on every route that takes one.
func TestKeyWithAnotherBody(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	for name, c := range map[string]struct {
		path       string
		one, other obj
	}{
		"session": {"/sessions", obj{"provider": "test", "name": "a"}, obj{"provider": "test", "name": "b"}},
		"run":     {"/sessions/" + id + "/runs", obj{"text": "sim: hang"}, obj{"text": "sim: say no"}},
		"queue":   {"/sessions/" + id + "/queue", obj{"text": "a"}, obj{"text": "b"}},
		"fork":    {"/sessions/" + id + "/fork", obj{"name": "a"}, obj{"name": "b"}},
		"budget":  {"/budgets", obj{"scope": "user", "limit_tokens": 1 << 40}, obj{"scope": "user", "limit_tokens": 1 << 41}},
		"token":   {"/auth/tokens", obj{"name": "a"}, obj{"name": "b"}},
		"secret":  {"/vault/items", obj{"name": "a", "kind": "env", "value": "v"}, obj{"name": "b", "kind": "env", "value": "v"}},
		"chat":    {"/api/chat-history", obj{"provider": "test", "title": "a"}, obj{"provider": "test", "title": "b"}},
	} {
		keyed := g.me.with("Idempotency-Key", "same-"+name)
		var one, again, p obj
		keyed.call(201, "POST", c.path, c.one, &one)
		keyed.call(201, "POST", c.path, c.one, &again)
		if one["id"] != again["id"] {
			t.Errorf("%s: a repeat made another: %v, %v", name, one, again)
		}
		keyed.call(422, "POST", c.path, c.other, &p)
		if p["code"] != "idempotency_key_reused" || p["hint"] == nil {
			t.Errorf("%s: %v", name, p)
		}
	}
	keyed := g.me.with("Idempotency-Key", "k")
	keyed.stream("POST", "/api/chat", say("c", "sim: say one")).until(doneMark)
	res := keyed.do("POST", "/api/chat", say("c", "sim: say two"))
	b, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != 422 || res.Header.Get("X-Thole-Code") != "idempotency_key_reused" || strings.Contains(string(b), "{") {
		t.Errorf("chat: %s %s", res.Status, b)
	}
}

// TestKeyOfACrash: a request whose process ended before its answer is repeated, and
// gives what the first one made.
func TestKeyOfACrash(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	var run obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say on ;; hang"}, &run)
	s.until(ofType("item.completed"))
	crash := func() {
		t.Helper()
		if err := g.db.Update(ctx, "test.crash", func(tx *sqldb.Tx) error {
			_, err := tx.Exec(`update idempotency_keys set result = '', holder = 'ended'`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	keyed := g.me.with("Idempotency-Key", "k")
	for path, body := range map[string]obj{
		"/sessions":                              {"provider": "test"},
		"/sessions/" + id + "/queue":             {"text": "sim: say later"},
		"/sessions/" + id + "/fork":              {"name": "f"},
		"/runs/" + run["id"].(string) + "/steer": {"text": "also this"},
	} {
		status := 201
		if strings.HasSuffix(path, "/steer") {
			status = 202
		}
		var one, again obj
		keyed.call(status, "POST", path, body, &one)
		crash()
		keyed.call(status, "POST", path, body, &again)
		if one["id"] != again["id"] {
			t.Errorf("%s: made twice: %v, %v", path, one, again)
		}
	}
	var queue, events obj
	g.me.call(200, "GET", "/sessions/"+id+"/queue", nil, &queue)
	if len(items(queue)) != 1 {
		t.Fatalf("queued twice: %v", queue)
	}
	g.me.call(200, "GET", "/sessions/"+id+"/messages", nil, &events)
	if got := strings.Count(texts(events["items"]), "also this"); got > 1 {
		t.Errorf("steered twice: %v", events)
	}
	// A queued message is started once, however often that is asked.
	g.me.call(202, "POST", "/runs/"+run["id"].(string)+"/cancel", nil, nil)
	s.until(ofType("run.ended"))
	path := "/sessions/" + id + "/queue/" + items(queue)[0].(obj)["id"].(string) + "/start"
	var first, second obj
	g.me.call(201, "POST", path, nil, &first)
	g.me.call(201, "POST", path, nil, &second)
	if first["id"] != second["id"] || first["number"] != 2.0 {
		t.Errorf("started twice: %v, %v", first, second)
	}
}
