package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/thread"
)

var shop = []event.ClientTool{
	{Name: "lookup", Description: "look it up", Schema: json.RawMessage(`{"properties":{"id":{"type":"integer"}}}`)},
	{Name: "shop", Tools: []event.ClientTool{{Name: "price", Description: "what it costs", Schema: json.RawMessage(`{"type":"object"}`), Deferred: true}}},
}

// client sends one message to the server of the client's tools.
func (r *rig) client(c gateway.Claim, body string) string {
	r.Helper()
	w := httptest.NewRecorder()
	r.ServeTools(w, httptest.NewRequest(http.MethodPost, gateway.ClientToolsPath, strings.NewReader(body)), c)
	if w.Code != http.StatusOK {
		r.Fatalf("%s: %d %s", body, w.Code, w.Body)
	}
	if _, data, ok := strings.Cut(w.Body.String(), "\ndata: "); ok {
		return data
	}
	return w.Body.String()
}

// The tools of a thread's client are listed for its own agent alone, and a call is an ask of
// the thread.
func TestClientTools(t *testing.T) {
	r := newRig(t)
	c, other := r.turn(thread.Create{Tools: shop}), r.turn(thread.Create{})
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`: `"name":"thole_client"`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                                 `"result":{}`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`:                                       `-32601`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"job_run"}}`:               `-32602`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":["lookup"]}}`:              `-32602`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`: `{"tools":[` +
			`{"description":"look it up","inputSchema":{"properties":{"id":{"type":"integer"}},"type":"object"},"name":"lookup"},` +
			`{"description":"what it costs","inputSchema":{"type":"object"},"name":"shop__price"}]}`,
	} {
		if got := r.client(c, body); !strings.Contains(got, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
	if got := r.client(other, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); !strings.Contains(got, `{"tools":[]}`) {
		t.Errorf("another thread has %s", got)
	}
	call := `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"shop__price","arguments":{"of":"tea"}}}`
	if got := r.client(other, call); !strings.Contains(got, "-32602") {
		t.Errorf("another thread calls it: %s", got)
	}
	if len(r.asked) != 0 {
		t.Fatalf("asked %+v", r.asked)
	}
	r.answer = event.Answer{Result: json.RawMessage(`{"success":true,"contentItems":[{"type":"inputText","text":"two coins"}]}`)}
	if got := r.client(c, call); !strings.Contains(got, `{"content":[{"text":"two coins","type":"text"}],"isError":false}`) {
		t.Errorf("got %s", got)
	}
	a := r.asked[0]
	if a.Kind != event.AskTool || a.Tool.Name != "price" || a.Tool.Namespace != "shop" || string(a.Tool.Input) != `{"of":"tea"}` {
		t.Errorf("asked %+v %+v", a, a.Tool)
	}
	r.answer = event.Answer{Decision: event.DecisionDeny, Message: "no client answered the call in time"}
	if got := r.client(c, call); !strings.Contains(got, `"text":"no client answered the call in time"`) || !strings.Contains(got, `"isError":true`) || r.asked[1].ID == a.ID {
		t.Errorf("got %s, asked %+v", got, r.asked[1])
	}
}
