package httpapi_test

import (
	"slices"
	"testing"
)

func TestPinnedSessionsComeFirst(t *testing.T) {
	g := newRig(t)
	a, b, c := g.me.session(nil), g.me.session(nil), g.me.session(nil)
	var one obj
	res := g.me.call(200, "GET", "/sessions/"+a, nil, &one)
	stale := res.Header.Get("ETag")
	if one["pinned"] != false {
		t.Errorf("a new session: %v", one)
	}
	events := g.me.stream("GET", "/events", nil)
	res = g.me.call(200, "PATCH", "/sessions/"+a, obj{"pinned": true}, &one)
	if one["pinned"] != true || res.Header.Get("ETag") == stale {
		t.Errorf("pinned: %v, %s", one, res.Header.Get("ETag"))
	}
	events.until(func(e sseEvent) bool {
		d, _ := e.data["data"].(obj)
		return e.data["type"] == "session.updated" && e.data["session_id"] == a && d["pinned"] == true
	})
	g.me.with("If-Match", stale).call(412, "PATCH", "/sessions/"+a, obj{"pinned": false}, nil)
	var order []string
	for cursor := ""; ; {
		var page obj
		g.me.call(200, "GET", "/sessions?limit=1&cursor="+cursor, nil, &page)
		for _, v := range page["items"].([]any) {
			order = append(order, v.(obj)["id"].(string))
		}
		if cursor, _ = page["next"].(string); cursor == "" {
			break
		}
	}
	if !slices.Equal(order, []string{a, c, b}) {
		t.Errorf("order %v, want %v", order, []string{a, c, b})
	}
}

// Each session of a bulk change is changed or refused by itself, and one of another
// user is as one that does not exist.
func TestManySessionsAtOnce(t *testing.T) {
	g := newRig(t)
	a, b, theirs := g.me.session(nil), g.me.session(nil), g.you.session(nil)
	const none = "01900000-0000-7000-8000-0000000000ff"
	bulk := func(action string, ids ...string) (done float64, by map[string]obj) {
		t.Helper()
		var out obj
		g.me.call(200, "POST", "/sessions/bulk", obj{"action": action, "ids": ids}, &out)
		by = map[string]obj{}
		for _, v := range out["items"].([]any) {
			by[v.(obj)["id"].(string)] = v.(obj)
		}
		return out["done"].(float64), by
	}
	done, by := bulk("archive", a, theirs, none, b, a, "../x")
	if done != 2 || len(by) != 5 || by[a]["session"].(obj)["archived"] != true || by[b]["done"] != true {
		t.Errorf("archived %v: %v", done, by)
	}
	for id, code := range map[string]string{theirs: "not_found", none: "not_found", "../x": "invalid"} {
		if e, _ := by[id]["error"].(obj); by[id]["done"] != false || e["code"] != code {
			t.Errorf("%s: %v, want %s", id, by[id], code)
		}
	}
	if done, by = bulk("unarchive", a); done != 1 || by[a]["session"].(obj)["archived"] != false {
		t.Errorf("unarchived: %v", by)
	}
	if _, by = bulk("pin", a); by[a]["session"].(obj)["pinned"] != true {
		t.Errorf("pinned: %v", by)
	}
	if done, by = bulk("delete", a, b, theirs); done != 2 || by[a]["session"] != nil {
		t.Errorf("deleted: %v", by)
	}
	if done, by = bulk("delete", a); done != 0 || by[a]["error"].(obj)["code"] != "not_found" {
		t.Errorf("deleted twice: %v", by)
	}
	g.me.call(404, "GET", "/sessions/"+a, nil, nil)
	var still obj
	g.you.call(200, "GET", "/sessions/"+theirs, nil, &still)
	if still["archived"] != false {
		t.Errorf("another user's session: %v", still)
	}
	for _, bad := range []obj{{"action": "fork", "ids": []string{b}}, {"action": "delete", "ids": []string{}}, {"action": "delete"}, {"action": "delete", "ids": make([]string, 201)}} {
		g.me.call(422, "POST", "/sessions/bulk", bad, nil)
	}
}
