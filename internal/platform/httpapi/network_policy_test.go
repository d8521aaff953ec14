package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

// A session is given less than the configuration allows, never more, and its policy is refused rather than not held.
func TestNetworkPolicy(t *testing.T) {
	kit := tholetest.New(t)
	asked := executors.New(executors.Config{Threads: kit.Threads, Rows: kit.Store().Executors(), Driver: kit.Executors, Log: slog.New(slog.DiscardHandler),
		Egress: egress.Config{Policy: egress.List, Names: []string{"a.com", "*.b.com"}}})
	g := rigOn(t, kit, func(c *httpapi.Config) { c.LiveNetwork, c.Network = asked.LiveNetwork, asked })
	var p obj
	for _, bad := range []obj{{"policy": "open"}, {"policy": "list", "allow": []string{"c.com"}}, {"policy": "gateway", "allow": []string{"a.com"}}, {"policy": "list", "allow": []string{"a.com/x"}}} {
		g.me.call(422, "POST", "/sessions", obj{"provider": "test", "network": bad}, &p)
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

// What is recorded while a run goes on reaches its executor, also where nobody but the record says so.
func TestNetworkPolicyReachesARun(t *testing.T) {
	proxy, err := egress.New(egress.Config{Policy: egress.Open, Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(ln) }()
	t.Cleanup(func() { _ = proxy.Close(); <-served })
	status := func() string {
		t.Helper()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "CONNECT a.com:443 HTTP/1.1\r\n\r\n")
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		return string(b[9:])
	}
	kit := tholetest.New(t, tholetest.Network(proxy))
	g := rigOn(t, kit)
	id := g.me.session(obj{})
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: run echo x"}, nil)
	s.until(ofType("human_loop.requested"))
	if got := status(); got != "502" {
		t.Fatalf("before: %s", got)
	}
	set := func(n *event.NetworkPolicy) {
		t.Helper()
		if _, err := kit.Threads.Update(ctx, thole.LocalActor, thole.ThreadID(id), thread.Update{Change: func(now event.Settings) event.Settings { now.Network = n; return now }}); err != nil {
			t.Fatal(err)
		}
	}
	set(&event.NetworkPolicy{Policy: "none"})
	poll.Until(t, "the policy in the executor", func() bool { return status() == "403" })
	set(nil)
	poll.Until(t, "the configuration's own in the executor", func() bool { return status() == "502" })
}
