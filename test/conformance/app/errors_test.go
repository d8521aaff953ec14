package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
	protocol "github.com/tholehq/thole/protocol/app"
)

// stateless are the refusals that depend on nothing but the request and the
// connection's capabilities.
var stateless = []string{
	"Not initialized", "Already initialized", "Invalid request: missing field", "requires experimentalApi capability", "Invalid request: unknown variant",
	"expectedTurnId must not be empty", "input must not be empty",
}

// TestRefusesLikeTheRecordedServer sends every recorded request that the real
// server refused for one of these reasons, and wants the same code and words.
func TestRefusesLikeTheRecordedServer(t *testing.T) {
	served := map[string]bool{}
	for _, m := range protocol.Methods() {
		served[m.Name] = m.Direction == protocol.FromClient
	}
	rig := tholetest.New(t)
	compared := 0
	type sent struct {
		method string
		params json.RawMessage
		ready  bool
		caps   string
	}
	asked := map[string]sent{}
	ready, caps := map[string]bool{}, map[string]string{}
	transcripts(t, func(file, conn, dir string, m message) {
		id := conn + string(m.ID)
		if dir == "send" && m.Method != "" {
			asked[id] = sent{m.Method, m.Params, ready[conn], caps[conn]}
			return
		}
		q, ok := asked[id]
		if dir != "recv" || !ok || m.Method != "" {
			return
		}
		if q.method == "initialize" && m.Error == nil {
			var p struct{ Capabilities json.RawMessage }
			_ = json.Unmarshal(q.params, &p)
			ready[conn], caps[conn] = true, string(p.Capabilities)
		}
		if m.Error == nil || !refusal(m.Error.Message) || !served[q.method] && !strings.Contains(m.Error.Message, "`"+q.method+"`") {
			return
		}
		if got := ask(t, rig, q.ready, q.caps, q.method, q.params); got.Error == nil || got.Error.Code != m.Error.Code || words(got.Error.Message) != words(m.Error.Message) {
			t.Errorf("%s: %s %s: got %v, recorded %v", file, q.method, q.params, got.Error, words(m.Error.Message))
		}
		compared++
	})
	if compared < 15 {
		t.Errorf("only %d refusals were compared", compared)
	}
}

func refusal(text string) bool {
	for _, s := range stateless {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// words leaves out the list of all methods.
func words(text string) string {
	text, _, _ = strings.Cut(text, ", expected one of")
	return text
}

// ask sends one request on a connection of its own.
func ask(t *testing.T, rig *tholetest.Kit, ready bool, caps, method string, params json.RawMessage) message {
	t.Helper()
	p := &player{t: t, s: rig.Stream(), book: book{}, asked: map[string]string{}, wake: make(chan struct{}, 1)}
	p.wg.Go(p.read)
	defer func() { _ = p.s.Close("done"); p.wg.Wait() }()
	if caps == "" {
		caps = "null"
	}
	if ready {
		p.call("initialize", `{"clientInfo":{"name":"x","version":"1"},"capabilities":`+caps+`}`)
	}
	raw := `{"id":"q","method":"` + method + `"`
	if params != nil {
		raw += `,"params":` + string(params)
	}
	p.send(raw + "}")
	var m message
	p.until("the answer", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		var ok bool
		m, ok = p.last[`"q"`]
		return ok
	})
	return m
}
