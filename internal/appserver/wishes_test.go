package appserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/appserver/apptest"
)

// What no driver can do is told to whoever asked, right behind the answer, and to
// nobody else: as a turn that failed, or beside the one that runs.
func TestUnservedTellsWhy(t *testing.T) {
	rig := apptest.New(t, apptest.Options{})
	w, other := join(t, rig, full), join(t, rig, full)
	id := w.thread(`{}`)
	other.ok("thread/resume", `{"threadId":"`+id+`"}`)
	told := func(method string) []msg {
		t.Helper()
		at, m := w.call(method, `{"threadId":"`+id+`","command":"true"}`)
		if m.Error != nil || string(m.Result) != "{}" {
			t.Fatalf("%s: %v %s", method, m.Error, m.Result)
		}
		w.find(at+1, "why", func(m msg) bool { return m.Method == "warning" || m.Method == "turn/completed" })
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.got[at+1:]
	}
	for method, why := range appserver.Unserved() {
		all := told(method)
		if len(all) != 3 || all[0].Method != "turn/started" || all[1].Method != "error" || all[2].Method != "turn/completed" {
			t.Fatalf("%s told %v", method, all)
		}
		if all[1].field("error", "message") != why || all[2].field("turn", "status") != "failed" || all[0].field("turn", "id") != all[2].field("turn", "id") {
			t.Errorf("%s told %s", method, all[2].Params)
		}
		if e := w.refused(method, `{"threadId":"0199aaaa-0000-7000-8000-000000000001","command":"true"}`); !strings.Contains(e.Message, "not found") {
			t.Errorf("%s of no thread: %s", method, e.Message)
		}
	}
	if turns := w.ok("thread/turns/list", `{"threadId":"`+id+`"}`)["data"].([]any); len(turns) != 0 {
		t.Errorf("the thread has %d turns", len(turns))
	}
	running := w.turn(id, "sim: say begun ;; hang")
	w.find(0, "the message", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "type") == "agentMessage" })
	if all := told("thread/shellCommand"); len(all) != 1 || all[0].Method != "warning" {
		t.Errorf("beside a running turn it told %v", all)
	}
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+running+`"}`)
	end, _ := other.note(0, "turn/completed")
	for _, m := range other.methods(0)[:end] {
		if m == "warning" || m == "error" {
			t.Error("what one client asked for was told to another")
		}
	}
}

// A review is a turn whose prompt says what to look at.
func TestReview(t *testing.T) {
	w := join(t, apptest.New(t, apptest.Options{}), full)
	id := w.thread(`{}`)
	for target, words := range map[string]string{
		`{"type":"uncommittedChanges"}`:                       "uncommitted changes",
		`{"type":"baseBranch","branch":"main"}`:               "since it left main",
		`{"type":"commit","sha":"abc123","title":"a commit"}`: "commit abc123",
		`{"type":"custom","instructions":"sim: say custom"}`:  "sim: say custom",
	} {
		from := w.len()
		out := w.ok("review/start", `{"threadId":"`+id+`","target":`+target+`,"delivery":"inline"}`)
		turn := out["turn"].(map[string]any)
		if out["reviewThreadId"] != id || turn["status"] != "inProgress" {
			t.Fatalf("%s gave %v", target, out)
		}
		_, said := w.note(from, "item/started")
		if raw, _ := json.Marshal(said.field("item", "content")); !strings.Contains(string(raw), words) {
			t.Errorf("%s was asked as %s", target, raw)
		}
		if _, done := w.note(from, "turn/completed"); done.field("turn", "id") != turn["id"] {
			t.Errorf("another turn ended: %s", done.Params)
		}
	}
	for _, target := range []string{`{"type":"commit"}`, `{"type":"moon"}`} {
		if e := w.refused("review/start", `{"threadId":"`+id+`","target":`+target+`}`); !strings.Contains(e.Message, "review target") {
			t.Errorf("%s: %s", target, e.Message)
		}
	}
}
