package appserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/tholetest"
)

// toolProgram is a client's tool server on the loopback: it wants its token and its session,
// answers calls as a stream of events, and counts what reaches it.
func toolProgram(t *testing.T) (url string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments struct{ Of string }
			}
		}
		if json.Unmarshal(body, &m) != nil || r.Header.Get("Authorization") != "Bearer sesame" || m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != "s1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`, m.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"price","description":"d","inputSchema":{"type":"object"}},{"name":"secret","description":"d","inputSchema":{"type":"object"}}]}}`, m.ID)
		case "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%s of %s\"}],\"isError\":%t}}\n\n",
				m.ID, m.Params.Name, m.Params.Arguments.Of, m.Params.Arguments.Of == "gold")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func shopServer(url string) string {
	return `"config":{"features.rmcp_client":true,"mcp_servers.shop.url":"` + url + `","mcp_servers.shop.http_headers":{"Authorization":"Bearer sesame"},"mcp_servers.shop.disabled_tools":["secret"]}`
}

// A tool server in the client's own process is called by the server, and its tools are the
// thread's: no client is asked to run them, also after the client came back.
func TestToolServersOfAClient(t *testing.T) {
	rig := tholetest.New(t)
	url, _ := toolProgram(t)
	w := as(t, rig, "an-sdk")
	id := w.thread(`{` + shopServer(url) + `}`)
	w.turn(id, `sim: call shop__price {"of":"tea"} ;; say told %tool%`)
	item := w.completed(0, "shop__price")
	if raw, _ := json.Marshal(item["contentItems"]); item["success"] != true || !strings.Contains(string(raw), "price of tea") {
		t.Errorf("item %v", item)
	}
	again := as(t, rig, "an-sdk")
	again.ok("thread/resume", `{"threadId":"`+id+`",`+shopServer(url)+`}`)
	again.turn(id, `sim: call shop__price {"of":"gold"} ;; say told %tool%`)
	item = again.completed(0, "shop__price")
	if raw, _ := json.Marshal(item["contentItems"]); item["success"] != false || !strings.Contains(string(raw), "price of gold") {
		t.Errorf("item %v", item)
	}
	for _, c := range []*wire{w, again} {
		if slices.Contains(c.methods(0), toolCall) {
			t.Error("a client was asked to run a tool of its server")
		}
	}
}

// What may not be called is refused before a thread is made, and nothing reaches it.
func TestToolServersThatAreRefused(t *testing.T) {
	rig := tholetest.New(t)
	url, asked := toolProgram(t)
	w := as(t, rig, "an-sdk")
	far := connect(t, rig.StreamOf(thole.ListenerActor))
	far.ok("initialize", `{"clientInfo":{"name":"far","version":"1"},"capabilities":`+full+`}`)
	if msg := far.refused("thread/start", `{`+shopServer(url)+`}`).Message; !strings.Contains(msg, "only by its user, on this machine") {
		t.Errorf("from elsewhere: %s", msg)
	}
	for config, want := range map[string]string{
		`{"mcp_servers":{"a":{"command":"sh","args":["-c","x"]}}}`:           "config.mcp_servers.a.args is not supported",
		`{"mcp_servers.a.url":"http://10.0.0.1:1/"}`:                         "not an http address of this machine's loopback",
		`{"mcp_servers.a.url":"https://127.0.0.1:1/"}`:                       "not an http address of this machine's loopback",
		`{"mcp_servers.a.url":"http://127.0.0.1.example.com/"}`:              "not an http address of this machine's loopback",
		`{"mcp_servers.a.url":"` + url + `"}`:                                "the server answers 401",
		`{"mcp_servers.a.url":"http://127.0.0.1:1/"}`:                        "the server does not answer",
		`{"mcp_servers.a.url":7}`:                                            "config.mcp_servers.a.url: 7 is not a value for it",
		`{"mcp_servers.a.bearer_token_env_var":"X","mcp_servers.a.url":"x"}`: "config.mcp_servers.a.bearer_token_env_var is not supported",
	} {
		if msg := w.refused("thread/start", `{"config":`+config+`}`).Message; !strings.Contains(msg, want) {
			t.Errorf("%s: %s", config, msg)
		}
	}
	id := w.thread(`{}`)
	before := asked.Load()
	if msg := w.refused("thread/resume", `{"threadId":"`+id+`",`+shopServer(url)+`}`).Message; !strings.Contains(msg, "a thread keeps the tools that it began with") {
		t.Errorf("another server: %s", msg)
	}
	if asked.Load() != before || before != 1 { // the one without its token
		t.Errorf("the server was asked %d times", asked.Load())
	}
}
