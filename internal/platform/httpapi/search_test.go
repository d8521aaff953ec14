package httpapi_test

import (
	"net/url"
	"strings"
	"testing"
)

// TestSearch finds messages by a part of their text, with the place in each, in pages
// and only of the caller's own sessions.
func TestSearch(t *testing.T) {
	g := newRig(t)
	say := func(c *caller, name, text string) (session, run string) {
		t.Helper()
		id := c.session(obj{"name": name})
		s := c.stream("GET", "/sessions/"+id+"/events", nil)
		var r obj
		c.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": text}, &r)
		s.until(ofType("run.ended"))
		return id, r["id"].(string)
	}
	long := strings.Repeat("before ", 20) + "the Needle of ÄRGER" + strings.Repeat(" after", 40)
	first, run := say(g.me, "first", "sim: say "+long)
	second, _ := say(g.me, "second", "sim: say 100% needle_work")
	say(g.you, "theirs", "sim: say a needle of another user")

	find := func(c *caller, query string) []any {
		t.Helper()
		var v obj
		c.call(200, "GET", "/search?"+query, nil, &v)
		return items(v)
	}
	hits := find(g.me, "query=needle")
	if len(hits) != 4 {
		t.Fatalf("hits = %v", hits)
	}
	for i, want := range []struct{ session, role string }{{second, "assistant"}, {second, "user"}, {first, "assistant"}, {first, "user"}} {
		h := hits[i].(obj)
		of := h["session"].(obj)
		if of["id"] != want.session || h["role"] != want.role || of["provider"] != "test" || h["item_id"] == "" || h["run_at"] == nil {
			t.Errorf("hit %d = %v", i, h)
		}
	}
	answer, asked := hits[2].(obj), hits[3].(obj)
	if answer["match"] != "Needle" || !strings.HasPrefix(answer["before"].(string), "…") || !strings.HasSuffix(answer["before"].(string), "the ") ||
		!strings.HasPrefix(answer["after"].(string), " of ÄRGER") || !strings.HasSuffix(answer["after"].(string), "…") {
		t.Errorf("place = %v", answer)
	}
	if answer["run_id"] != run || answer["message_id"] != run || asked["message_id"] != asked["item_id"] {
		t.Errorf("where: %v, %v", answer, asked)
	}
	var chat obj
	g.me.call(200, "GET", "/sessions/"+first+"/messages", nil, &chat)
	known := map[any]bool{}
	for _, m := range items(chat) {
		known[m.(obj)["id"]] = true
	}
	if !known[answer["message_id"]] || !known[asked["message_id"]] {
		t.Errorf("messages %v lack those of %v", known, hits)
	}

	if h := find(g.me, "query="+url.QueryEscape("ärger")); len(h) != 2 || h[0].(obj)["match"] != "ÄRGER" {
		t.Errorf("case: %v", h)
	}
	if h := find(g.me, "query="+url.QueryEscape("0% needle_")); len(h) != 2 { // not patterns
		t.Errorf("wildcards: %v", h)
	}
	if h := find(g.me, "query=needleXwork"); len(h) != 0 {
		t.Errorf("wildcards: %v", h)
	}
	if h := find(g.me, "query=needle&session_id="+first); len(h) != 2 || h[0].(obj)["session"].(obj)["id"] != first {
		t.Errorf("in one session: %v", h)
	}
	if h := find(g.you, "query=needle"); len(h) != 2 {
		t.Errorf("the other user finds %v", h)
	}
	g.you.call(404, "GET", "/search?query=needle&session_id="+first, nil, nil)

	var all []any
	for query := "query=needle&limit=1"; ; {
		var v obj
		g.me.call(200, "GET", "/search?"+query, nil, &v)
		all = append(all, items(v)...)
		next, _ := v["next"].(string)
		if next == "" {
			break
		}
		query = "query=needle&limit=1&cursor=" + url.QueryEscape(next)
	}
	if len(all) != 4 || all[3].(obj)["item_id"] != asked["item_id"] {
		t.Errorf("pages = %v", all)
	}
	g.me.call(422, "GET", "/search", nil, nil)
	g.me.call(400, "GET", "/search?query=%20", nil, nil)
	g.me.call(400, "GET", "/search?query=x&cursor=x", nil, nil)

	g.me.call(200, "PATCH", "/sessions/"+first, obj{"archived": true}, nil)
	if h := find(g.me, "query=needle"); len(h) != 2 {
		t.Errorf("without the archived: %v", h)
	}
	if h := find(g.me, "query=needle&archived=true"); len(h) != 2 {
		t.Errorf("of the archived: %v", h)
	}
	if h := find(g.me, "query=needle&session_id="+first); len(h) != 2 {
		t.Errorf("in an archived one: %v", h)
	}
	g.me.call(204, "DELETE", "/sessions/"+second, nil, nil)
	if h := find(g.me, "query=needle"); len(h) != 0 {
		t.Errorf("after a delete: %v", h)
	}
}
