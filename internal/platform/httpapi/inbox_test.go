package httpapi_test

import (
	"net/url"
	"testing"
)

// TestInbox asks in three sessions and finds every question with its session, in
// pages, by one query each.
func TestInbox(t *testing.T) {
	g := newRig(t)
	var asked []string
	for _, name := range []string{"first", "second", ""} {
		id := g.me.session(obj{"name": name})
		s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
		g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: run echo " + name + "out"}, nil)
		s.until(ofType("human_loop.requested"))
		asked = append(asked, id)
	}
	var v obj
	g.me.call(200, "GET", "/inbox", nil, &v)
	all := items(v)
	if len(all) != 3 || v["next"] != nil {
		t.Fatalf("inbox = %v", v)
	}
	for i, title := range []string{"first", "second", "sim: run echo out"} {
		e := all[i].(obj)
		of := e["session"].(obj)
		if of["id"] != asked[i] || of["title"] != title || of["provider"] != "test" || e["session_id"] != asked[i] || e["text"] != "echo "+[]string{"first", "second", ""}[i]+"out" ||
			e["state"] != "pending" || e["asked_at"] == nil || e["run_id"] == nil || e["kind"] != "command" {
			t.Errorf("entry %d = %v", i, e)
		}
	}
	var one, two obj
	g.me.call(200, "GET", "/inbox?limit=2", nil, &one)
	g.me.call(200, "GET", "/inbox?limit=2&cursor="+url.QueryEscape(one["next"].(string)), nil, &two)
	if len(items(one)) != 2 || len(items(two)) != 1 || items(two)[0].(obj)["question_id"] != all[2].(obj)["question_id"] || two["next"] != nil {
		t.Errorf("pages = %v, %v", one, two)
	}
	g.me.call(400, "GET", "/inbox?cursor=x", nil, nil)
	var none obj
	g.you.call(200, "GET", "/inbox", nil, &none)
	if len(items(none)) != 0 {
		t.Errorf("the other user sees %v", none)
	}
	e := all[0].(obj)
	g.me.call(200, "POST", "/runs/"+e["run_id"].(string)+"/human-loop/"+e["question_id"].(string)+"/reply", obj{"decision": "deny"}, nil)
	g.me.call(200, "GET", "/inbox", nil, &v)
	if len(items(v)) != 2 {
		t.Errorf("after an answer: %v", v)
	}
	g.me.call(204, "DELETE", "/sessions/"+asked[1], nil, nil)
	g.me.call(200, "GET", "/inbox", nil, &v)
	if len(items(v)) != 1 || items(v)[0].(obj)["session_id"] != asked[2] {
		t.Errorf("after a delete: %v", v)
	}
}
