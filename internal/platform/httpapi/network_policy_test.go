package httpapi_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/tholetest"
)

// A session is given less than the configuration allows, never more, and its policy is refused rather than not held.
func TestNetworkPolicy(t *testing.T) {
	kit := tholetest.New(t)
	asked := executors.New(executors.Config{Threads: kit.Threads, Rows: kit.Store().Executors(), Driver: kit.Executors, Log: slog.New(slog.DiscardHandler),
		Egress: egress.Config{Policy: egress.List, Names: []string{"a.com", "*.b.com"}}})
	g := rigOn(t, kit, func(c *httpapi.Config) { c.LiveNetwork, c.Network = asked.LiveNetwork, asked })
	var p obj
	for _, bad := range []obj{{"policy": "open"}, {"policy": "list", "allow": []string{"c.com"}}, {"policy": "gateway", "allow": []string{"a.com"}}, {"policy": "list", "allow": []string{"a.com/x"}}} {
		g.me.call(400, "POST", "/sessions", obj{"provider": "test", "network": bad}, &p)
		if !strings.Contains(p["detail"].(string), "the thread's network") {
			t.Errorf("%v: %v", bad, p)
		}
	}
	g.me.call(422, "POST", "/sessions", obj{"provider": "test", "network": obj{"policy": "some"}}, nil)
	id := g.me.session(obj{"network": obj{"policy": "gateway"}})
	is := func(policy string, allow any) {
		t.Helper()
		var n obj
		g.me.call(200, "GET", "/sessions/"+id+"/network", nil, &n)
		if names, _ := n["allow"].([]any); n["policy"] != policy || n["ceiling"] != "list" || (len(names) > 0) != (allow != nil) || len(names) > 0 && names[0] != allow {
			t.Errorf("%v, want %s %v", n, policy, allow)
		}
	}
	is("gateway", nil)
	g.you.call(404, "PATCH", "/sessions/"+id, obj{"network": obj{"policy": "default"}}, nil)
	g.me.call(200, "PATCH", "/sessions/"+id, obj{"network": obj{"policy": "list", "allow": []string{"x.b.com:443"}}}, nil)
	is("list", "x.b.com:443")
	g.me.call(200, "PATCH", "/sessions/"+id, obj{"name": "renamed"}, nil)
	is("list", "x.b.com:443")
	var run obj
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say x"}, &run) // its executor has no walls that would hold it
	ended := s.until(ofType("run.ended"))
	if data := ended[len(ended)-1].data["data"].(obj); data["outcome"] != "failed" || !strings.Contains(data["error"].(obj)["message"].(string), "without walls") {
		t.Errorf("the run ended %v", data)
	}
	g.me.call(200, "PATCH", "/sessions/"+id, obj{"network": obj{"policy": "default"}}, &p)
	if p["network"] != nil {
		t.Errorf("after default %v", p["network"])
	}
	is("list", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say x"}, &run)
	ended = s.until(ofType("run.ended"))
	if data := ended[len(ended)-1].data["data"].(obj); data["outcome"] != "completed" {
		t.Errorf("then it ended %v", data)
	}
}
