package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/tholetest"
)

// What a run's processes are refused is shown while it runs and recorded for its run when it ends, and
// outlives the executor.
func TestNetwork(t *testing.T) {
	proxy, err := egress.New(egress.Config{Policy: egress.Gateway})
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
	refuse := func(host string) {
		t.Helper()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\n\r\n", host)
		b := make([]byte, 12)
		if _, err := c.Read(b); err != nil || string(b) != "HTTP/1.1 403" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	kit := tholetest.New(t, tholetest.Network(proxy))
	asked := executors.New(executors.Config{Threads: kit.Threads, Rows: kit.Store().Executors(), Driver: kit.Executors, Log: slog.New(slog.DiscardHandler)})
	g := rigOn(t, kit, func(c *httpapi.Config) { c.LiveNetwork = asked.LiveNetwork })
	id := g.me.session(obj{})
	network := func() string {
		t.Helper()
		var l obj
		g.me.call(200, "GET", "/sessions/"+id+"/network", nil, &l)
		var out []string
		for _, r := range items(l) {
			for _, f := range r.(obj)["traffic"].([]any) {
				f := f.(obj)
				out = append(out, fmt.Sprintf("%v live=%v %v:%v %v %v", r.(obj)["run_id"], r.(obj)["live"], f["host"], f["port"], f["verdict"], f["connections"]))
			}
		}
		return strings.Join(out, "\n")
	}
	if got := network(); got != "" {
		t.Errorf("before the first run: %s", got)
	}
	var runs []string
	turn := func(host string) (before string) {
		t.Helper()
		s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
		var run obj
		g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: run echo x"}, &run)
		runs = append(runs, run["id"].(string))
		all := s.until(ofType("human_loop.requested"))
		q := all[len(all)-1].data["data"].(obj)["question"].(obj)["question_id"].(string)
		refuse(host)
		refuse(host)
		before = network()
		g.me.call(200, "POST", "/runs/"+run["id"].(string)+"/human-loop/"+q+"/reply", obj{"decision": "allow"}, nil)
		var told bool
		for _, f := range s.until(ofType("run.ended")) {
			told = told || f.data["type"] == "network.updated"
		}
		if !told {
			t.Error("the event stream has no network.updated before the run's end")
		}
		return before
	}
	live := turn("one.example.com:443")
	if want := runs[0] + " live=true one.example.com:443 refused 2"; live != want {
		t.Errorf("while the run goes on: %s, want %s", live, want)
	}
	turn("two.example.com:22")
	want := runs[0] + " live=<nil> one.example.com:443 refused 2\n" + runs[1] + " live=<nil> two.example.com:22 refused 2"
	if got := network(); got != want {
		t.Errorf("after both runs:\n%s\nwant\n%s", got, want)
	}
	refuse("between.example.com:1")
	answer, err := asked.Methods()[executors.MethodNetwork](ctx, thole.LocalActor, json.RawMessage(`{"thread_id":"`+id+`"}`))
	if r, ok := answer.(executors.NetworkResult); err != nil || !ok || len(r.Runs) != 3 || r.Runs[0].RunID != runs[0] || r.Runs[2].RunID != "" || !r.Runs[2].Live || r.Runs[2].Traffic[0].Host != "between.example.com" {
		t.Errorf("%s: %+v, %v", executors.MethodNetwork, answer, err)
	}
	if err := kit.Executors.Close(); err != nil {
		t.Fatal(err)
	}
	if got := network(); got != want {
		t.Errorf("without an executor:\n%s\nwant\n%s", got, want)
	}
	g.you.call(404, "GET", "/sessions/"+id+"/network", nil, nil)
}
