package appserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

func TestGates(t *testing.T) {
	rig := tholetest.New(t)
	w := connect(t, rig.Stream())
	for _, tc := range []struct {
		method, params, want string
		code                 int64
	}{
		{"thread/list", `{}`, "Not initialized", -32600},
		{"no/such", `{}`, "Invalid request: unknown variant `no/such`, expected one of `account/", -32600},
		{"initialize", `{"clientInfo":{"name":"x"}}`, "missing field `version`", -32600},
		{"initialize", `{"clientInfo":{"name":"x\u0007","version":"1"}}`, "valid HTTP header value", -32600},
		{"initialize", ``, "Invalid request: missing field `params`", -32600},
		{"initialize", `{"clientInfo":{"version":"1"}}`, "Invalid request: missing field `name`", -32600},
		{"thread/read", `{}`, "Invalid request: missing field `threadId`", -32600},
		{"thread/list", `{"limit":"x"}`, "Invalid request: invalid type: string for `limit`, expected a number", -32600},
	} {
		if e := w.refused(tc.method, tc.params); e.Code != tc.code || !strings.Contains(e.Message, tc.want) {
			t.Errorf("%s %s before initialize: %v", tc.method, tc.params, e)
		}
	}
	r := w.ok("initialize", `{"clientInfo":{"name":"x","version":""},"capabilities":null}`)
	if ua := r["userAgent"].(string); !strings.Contains(ua, "/0.166.0 ") {
		t.Errorf("user agent %q does not begin with the protocol's version", ua)
	}
	w.send(`{"method":"initialized"}`)
	w.send(`{"method":"no/such/notification","params":{}}`)
	for _, bad := range []string{`{not json`, `[1,2]`, `{"id":null,"method":"thread/list"}`, `{"id":1.5,"method":"thread/list"}`, `"x"`, "{\"id\":77,\"method\":\"thread/list\",\"params\":{\"x\":\"\xff\"}}"} {
		w.send(bad)
	}
	missing := "01a1dcad-9f64-7cf1-b7d7-ca85211bb200"
	id := w.thread(`{}`)
	for _, tc := range []struct {
		method, params, want string
	}{
		{"initialize", `{"clientInfo":{"name":"x","version":"1"}}`, "Already initialized"},
		{"thread/read", `{"nope":1}`, "Invalid request: missing field `threadId`"},
		{"thread/read", ``, "Invalid request: missing field `params`"},
		{"thread/read", `{"threadId":7}`, "Invalid request: invalid type: number"},
		{"thread/read", `{"threadId":"zz"}`, "invalid thread id"},
		{"thread/read", `{"threadId":"` + missing + `"}`, "thread not found: " + missing},
		{"thread/resume", `{"threadId":"` + missing + `"}`, "thread not found"},
		{"turn/start", input(missing, "x"), "thread not found"},
		{"turn/start", `{"threadId":"` + id + `","input":[{"type":"smell"}]}`, "Invalid request: unknown variant `smell`"},
		{"turn/start", `{"threadId":"` + id + `","input":[{}]}`, "Invalid request: missing field `type`"},
		{"turn/start", `{"threadId":"` + id + `","input":"x"}`, "invalid type: string for `input`, expected a sequence"},
		{"thread/name/set", `{"threadId":"` + id + `","name":" "}`, "thread name must not be empty"},
		{"thread/inject_items", `{"threadId":"` + id + `","items":[]}`, "items must not be empty"},
		{"thread/inject_items", `{"threadId":"` + id + `","items":[5]}`, "items[0] is not a valid response item"},
		{"thread/goal/get", `{"threadId":"` + missing + `"}`, "thread not found"},
		{"thread/list", `{"cwd":[5]}`, "cwd is neither a directory nor"},
		{"turn/start", `{"threadId":"` + id + `","input":[],"approvalPolicy":"on-failure"}`, "unknown variant `on-failure`"},
		{"turn/start", `{"threadId":"` + id + `","input":[],"sandboxPolicy":{"type":"workspaceWrite","writableRoots":["rel"]}}`, "not an absolute path"},
		{"turn/steer", `{"threadId":"` + id + `","input":[]}`, "missing field `expectedTurnId`"},
		{"turn/steer", `{"threadId":"` + id + `","input":[{"type":"text","text":"x"}],"expectedTurnId":""}`, "expectedTurnId must not be empty"},
		{"turn/steer", `{"threadId":"` + id + `","input":[{"type":"text","text":"x"}],"expectedTurnId":"` + missing + `"}`, "no active turn to steer"},
		{"turn/interrupt", `{"threadId":"` + id + `","turnId":"` + missing + `"}`, "no active turn to interrupt"},
		{"thread/turns/list", `{"threadId":"` + id + `","cursor":"?"}`, "invalid cursor"},
		{"thread/list", `{"sortKey":"smell"}`, "unknown variant `smell`"},
		{"thread/queue/list", `{"threadId":"` + id + `"}`, "thread/queue/list requires experimentalApi capability"},
		{"thread/start", `{"permissions":":workspace"}`, "thread/start.permissions requires experimentalApi capability"},
		{"thread/start", `{"threadId":"` + missing + `"}`, "thread/start.threadId requires the thole extension"},
		{"thole/provider/list", ``, "requires the thole extension"},
	} {
		if e := w.refused(tc.method, tc.params); e.Code != -32600 || !strings.Contains(e.Message, tc.want) {
			t.Errorf("%s %s: %v, want %q", tc.method, tc.params, e, tc.want)
		}
	}
}

func TestCapabilitiesAreTheConnections(t *testing.T) {
	rig := tholetest.New(t)
	plain := join(t, rig, `{"optOutNotificationMethods":["item/agentMessage/delta","turn/started"]}`)
	all := join(t, rig, full)
	id := plain.thread(`{}`)
	all.ok("thread/resume", `{"threadId":"`+id+`"}`)
	plain.turn(id, "sim: call tool {\"a\":1} ;; say one two three")
	i, _ := plain.note(0, "turn/completed")
	j, _ := all.note(0, "turn/completed")
	for _, m := range plain.methods(0)[:i] {
		if m == "item/agentMessage/delta" || m == "turn/started" || strings.HasPrefix(m, "thole/") {
			t.Errorf("a plain connection got %s", m)
		}
	}
	got := strings.Join(all.methods(0)[:j], " ")
	for _, want := range []string{"turn/started", "item/agentMessage/delta", "thole/item/inputDelta", "thole/turn/phase"} {
		if !strings.Contains(got, want) {
			t.Errorf("the other connection did not get %s: %s", want, got)
		}
	}
}

func TestChosenIDsAndEmptyThreads(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := "0199aaaa-0000-7000-8000-000000000001"
	if got := w.thread(`{"threadId":"` + id + `"}`); got != id {
		t.Fatalf("the thread is called %s", got)
	}
	if e := w.refused("thread/start", `{"threadId":"`+id+`"}`); !strings.Contains(e.Message, "in use") {
		t.Error(e)
	}
	rig.Restart()
	again := join(t, rig, full)
	again.ok("thread/resume", `{"threadId":"`+id+`"}`)
	again.ok("thread/turns/list", `{"threadId":"`+id+`"}`)
}

func TestFloodIsRefusedByName(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	const n = 3000
	from := w.len()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			w.send(fmt.Sprintf(`{"id":"f%d","method":"thread/read","params":{"threadId":"%s","includeTurns":true}}`, i, id))
		}
	}()
	<-done
	// Every request has one answer: its own or the overload.
	answers := map[string]int{}
	for at := from; len(answers) < n; at++ {
		_, m := w.find(at, "another answer", func(m msg) bool { return true })
		if m.Method == "" {
			answers[string(m.ID)]++
		}
		if m.Error != nil && m.Error.Code != -32001 {
			t.Fatalf("refused with %v", m.Error)
		}
	}
	for id, times := range answers {
		if times != 1 {
			t.Errorf("request %s was answered %d times", id, times)
		}
	}
	w.ok("thread/read", `{"threadId":"`+id+`"}`)
}

func TestLargePrompt(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	from := w.len()
	w.turn(id, strings.Repeat("x", 1<<20)+"\nsim: say got it")
	w.note(from, "turn/completed")
	if r := w.ok("thread/items/list", `{"threadId":"`+id+`","limit":1}`); len(fmt.Sprint(r)) < 1<<20 {
		t.Error("the prompt was cut")
	}
}

// A client need not wait for the answer to initialize.
func TestFirstRequestsAtOnce(t *testing.T) {
	rig := tholetest.New(t)
	for range 20 {
		w := connect(t, rig.Stream())
		w.send(`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"x","version":"1"}}}`)
		w.send(`{"method":"initialized"}`)
		w.send(`{"id":2,"method":"thread/start","params":{}}`)
		if _, m := w.find(0, "the thread", func(m msg) bool { return string(m.ID) == "2" }); m.Error != nil {
			t.Fatal(m.Error)
		}
		w.close()
	}
}
