package appserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

// A client that asks for what nobody honours gets an error, and nothing has happened.
func TestMembersAreHonouredOrRefused(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	start := func(member string) string {
		return `{"threadId":"` + id + `","input":[{"type":"text","text":"x"}],` + member + `}`
	}
	before := len(w.ok("thread/list", `{}`)["data"].([]any))
	for _, tc := range []struct{ method, params, want string }{
		{"thread/start", `{"config":{"mcp_servers":{"x":{"command":"sh"}}}}`, "config.mcp_servers.x.command is not supported"},
		{"thread/start", `{"config":{"notify":["sh"]}}`, "config.notify is not supported"},
		{"thread/start", `{"config":5}`, "config is not an object"},
		{"thread/start", `{"config":{"model_reasoning_effort":5}}`, "is not a value for it"},
		{"thread/start", `{"config":{"approvals_reviewer":"auto_review"}}`, "a person reviews"},
		{"thread/start", `{"environments":[{"id":"x"}]}`, "thread/start.environments is not supported"},
		{"thread/start", `{"serviceTier":"flex"}`, "has no such setting"},
		{"thread/start", `{"experimentalRawEvents":true}`, "thread/start.experimentalRawEvents"},
		{"thread/resume", `{"threadId":"` + id + `","path":"/x"}`, "thread/resume.path"},
		{"thread/fork", `{"threadId":"` + id + `","attachToSource":true}`, "thread/fork.attachToSource"},
		{"thread/fork", `{"threadId":"` + id + `","lastTurnId":"a","beforeTurnId":"b"}`, "cannot be combined"},
		{"thread/list", `{"originators":["x"]}`, "thread/list.originators"},
		{"thread/list", `{"sourceKinds":["cli","smoke"]}`, "unknown variant `smoke`"},
		{"thread/list", `{"excludedThreadIds":["x"]}`, "invalid thread id"},
		{"thread/loaded/list", `{"cursor":"x"}`, "invalid cursor"},
		{"turn/start", start(`"approvalsReviewer":"auto_review"`), "a person reviews"},
		{"turn/start", start(`"summary":"detailed"`), "has no such setting"},
		{"turn/start", start(`"additionalContext":{"x":{"kind":"trusted","value":"y"}}`), "turn/start.additionalContext"},
		{"turn/start", start(`"sandboxPolicy":{"type":"workspaceWrite","writableRoots":["/etc"]}`), "/etc is elsewhere"},
		{"turn/start", start(`"sandboxPolicy":{"type":"workspaceWrite","excludeSlashTmp":true}`), "excludeSlashTmp is not supported"},
		{"turn/start", start(`"sandboxPolicy":{"type":"workspaceWrite","networkAccess":"often"}`), "networkAccess"},
		{"thread/shellCommand", `{"threadId":"` + id + `","command":"x","timeoutMs":5}`, "thread/shellCommand.timeoutMs"},
	} {
		if e := w.refused(tc.method, tc.params); !strings.Contains(e.Message, tc.want) {
			t.Errorf("%s %s: %v, want %q", tc.method, tc.params, e, tc.want)
		}
	}
	if n := len(w.ok("thread/list", `{}`)["data"].([]any)); n != before {
		t.Errorf("%d threads, %d before anything was refused", n, before)
	}
	if turns := w.ok("thread/turns/list", `{"threadId":"`+id+`"}`)["data"].([]any); len(turns) != 0 {
		t.Errorf("a refused turn ran: %v", turns)
	}
	// What asks for nothing, and what a real TUI always sends, is taken.
	w.ok("thread/start", `{"config":{},"historyMode":"paginated","environments":null,"personality":"friendly","serviceTier":"default",`+
		`"serviceName":"x","projectId":null,"experimentalRawEvents":false,"approvalsReviewer":"user"}`)
	w.ok("turn/start", start(`"serviceTier":"default","turnTrigger":"user","summary":"auto","parentTurnId":null,"responsesapiClientMetadata":{"a":"b"},"sandboxPolicy":{"type":"workspaceWrite","writableRoots":["/workspace/sub"]}`))
}

// A network that is taken from a thread's commands stays taken, and is not given back
// by a client that does not know of it.
func TestNetworkAccessOfAThread(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	policy := func(access string) string {
		return `{"threadId":"` + id + `","sandboxPolicy":{"type":"workspaceWrite","networkAccess":` + access + `}}`
	}
	access := func() any {
		return w.ok("thread/resume", `{"threadId":"`+id+`"}`)["sandbox"].(map[string]any)["networkAccess"]
	}
	if access() != true {
		t.Errorf("a thread without a policy says %v", access())
	}
	w.ok("thread/settings/update", policy("true"))
	w.ok("thread/settings/update", policy("false"))
	if access() != false {
		t.Errorf("after it was taken: %v", access())
	}
	if e := w.refused("thread/settings/update", policy("true")); !strings.Contains(e.Message, "narrowed to gateway") {
		t.Errorf("given back by a client: %v", e)
	}
}

func TestListsInPages(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	all := map[string]bool{}
	for range 5 {
		all[w.thread(`{}`)] = true
	}
	cursor, pages := "null", 0
	for ; cursor != ""; pages++ {
		page := w.ok("thread/loaded/list", `{"limit":2,"cursor":`+cursor+`}`)
		for _, id := range page["data"].([]any) {
			if !all[id.(string)] {
				t.Errorf("%v came twice or is unknown", id)
			}
			delete(all, id.(string))
		}
		next, _ := page["nextCursor"].(string)
		if cursor = ""; next != "" {
			cursor = fmt.Sprintf("%q", next)
		}
	}
	if len(all) != 0 || pages != 3 {
		t.Errorf("%d pages, never named: %v", pages, all)
	}
}

func TestForkBeforeATurn(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	var turns []string
	for i := range 3 {
		from := w.len()
		turns = append(turns, w.turn(id, fmt.Sprintf("sim: say %d", i)))
		w.note(from, "turn/completed")
	}
	fork := func(before string) string { return `{"threadId":"` + id + `","beforeTurnId":"` + before + `"}` }
	got := w.ok("thread/fork", fork(turns[2]))["thread"].(map[string]any)["turns"].([]any)
	if len(got) != 2 {
		t.Errorf("%d turns before the third", len(got))
	}
	if e := w.refused("thread/fork", fork(turns[0])); !strings.Contains(e.Message, "first turn") {
		t.Errorf("before the first: %v", e)
	}
	if e := w.refused("thread/fork", fork("nope")); !strings.Contains(e.Message, "turn not found") {
		t.Errorf("before none: %v", e)
	}
}
