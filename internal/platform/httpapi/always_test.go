package httpapi_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

// TestAlwaysKeepsTheRule answers "always" with no rule: a question has only its words, on
// every way, and the server takes the rule that the agent offered.
func TestAlwaysKeepsTheRule(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	var run, v obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: escalate echo out ;; hang"}, &run)
	all := s.until(ofType("human_loop.requested"))
	q := all[len(all)-1].data["data"].(obj)["question"].(obj)
	words := func(where string, q obj) {
		t.Helper()
		always, _ := q["always"].([]any)
		if len(always) != 1 || always[0] != "commands that begin with echo" || q["amendment"] != nil {
			t.Errorf("%s: %v", where, q)
		}
	}
	words("stream", q)
	g.me.call(200, "GET", "/inbox", nil, &v)
	words("inbox", items(v)[0].(obj))
	chat := g.me.stream("GET", "/api/chat/"+id+"/stream?approvals=stream", nil)
	for asked := false; !asked; {
		one, ok := chat.next()
		if !ok {
			t.Fatal("the chat ended without the question")
		}
		if asked = one.data["type"] == "data-ask"; asked {
			words("chat", one.data["data"].(obj))
		}
	}
	reply := "/runs/" + run["id"].(string) + "/human-loop/" + q["question_id"].(string) + "/reply"
	g.me.call(200, "POST", reply, obj{"decision": "always"}, &v)
	if raw, _ := v["answer"].(obj); raw["decision"] != "always" || raw["amendment"] != nil {
		t.Errorf("answered: %v", v)
	}
	g.me.call(200, "POST", reply, obj{"decision": "always", "amendment": []string{"echo"}}, nil)
	g.me.call(409, "POST", reply, obj{"decision": "always", "amendment": []string{"rm"}}, nil)
	asks, err := g.threads.Asks(ctx, thole.Actor{User: thole.LocalUser, Via: "test"}, thole.ThreadID(id), false)
	if err != nil || len(asks) != 1 || asks[0].Answer == nil || strings.TrimSpace(string(asks[0].Answer.Amendment)) != `["echo"]` {
		t.Fatalf("kept: %+v, %v", asks, err)
	}
}
