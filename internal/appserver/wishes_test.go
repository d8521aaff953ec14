package appserver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/tholetest"
)

// Command turns are turns without a user's message, and without one of the agent's.
func TestCommandTurns(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	done := func(params, method string) (item msg, told []string) {
		t.Helper()
		at, m := w.call(method, params)
		if m.Error != nil || string(m.Result) != "{}" {
			t.Fatalf("%s: %v %s", method, m.Error, m.Result)
		}
		end, m := w.note(at, "turn/completed")
		if m.field("turn", "status") != "completed" {
			t.Fatalf("%s ended %s", method, m.Params)
		}
		_, item = w.note(at, "item/completed")
		return item, w.methods(at + 1)[:end-at]
	}
	item, told := done(`{"threadId":"`+id+`","command":"echo out; echo err >&2; exit 3"}`, "thread/shellCommand")
	for name, want := range map[string]any{
		"type": "commandExecution", "source": "userShell", "status": "failed", "exitCode": 3.0,
		"command": "echo out; echo err >&2; exit 3", "aggregatedOutput": "out\nerr\n",
	} {
		if got := item.field("item", name); got != want {
			t.Errorf("the command's %s is %v, want %v", name, got, want)
		}
	}
	if slices.Contains(told, "item/agentMessage/delta") || !slices.Contains(told, "turn/started") || !slices.Contains(told, "item/commandExecution/outputDelta") {
		t.Errorf("a command told %v", told)
	}
	heard := w.turn(id, "sim: say heard") // an agent that has heard nothing has nothing to compact
	w.find(0, "its end", func(m msg) bool { return m.Method == "turn/completed" && m.field("turn", "id") == heard })
	if item, told = done(`{"threadId":"`+id+`"}`, "thread/compact/start"); item.field("item", "type") != "contextCompaction" {
		t.Errorf("a compaction told %v, %s", told, item.Params)
	}
	turns := w.ok("thread/turns/list", `{"threadId":"`+id+`","itemsView":"full"}`)["data"].([]any)
	for _, turn := range turns {
		if items := turn.(map[string]any)["items"].([]any); len(items) != 1 && turn.(map[string]any)["id"] != heard {
			t.Errorf("a turn has the items %v", items)
		}
	}
	for _, method := range []string{"thread/shellCommand", "thread/compact/start"} {
		if e := w.refused(method, `{"threadId":"0199aaaa-0000-7000-8000-000000000001","command":"true"}`); !strings.Contains(e.Message, "not found") {
			t.Errorf("%s of no thread: %s", method, e.Message)
		}
	}
	if e := w.refused("thread/shellCommand", `{"threadId":"`+id+`","command":" "}`); !strings.Contains(e.Message, "empty") {
		t.Errorf("an empty command: %s", e.Message)
	}
	for _, kind := range []string{"shell", "compact", "setup"} { // no other way in
		w.refused("turn/start", `{"threadId":"`+id+`","input":[{"type":"`+kind+`","text":"!true"}]}`)
	}
}

// A setup by hand is a command turn whose id the caller gets, or one that waits.
func TestSetupByHand(t *testing.T) {
	w := join(t, tholetest.New(t), full)
	id := w.thread(`{}`)
	at, _ := w.call("thread/shellCommand", `{"threadId":"`+id+`","command":"mkdir .thole && echo 'echo prepared' > .thole/setup"}`)
	w.note(at, "turn/completed")
	at, m := w.call("thole/thread/setup", `{"threadId":"`+id+`"}`)
	var r struct{ TurnID string }
	if err := json.Unmarshal(m.Result, &r); err != nil || r.TurnID == "" {
		t.Fatalf("%s %v", m.Result, m.Error)
	}
	_, item := w.note(at, "item/completed")
	if item.field("turnId") != r.TurnID || item.field("item", "source") != "userShell" || item.field("item", "aggregatedOutput") != "prepared\n" {
		t.Errorf("%s", item.Params)
	}
	w.find(at, "its end", func(m msg) bool { return m.Method == "turn/completed" && m.field("turn", "id") == r.TurnID })
	running := w.turn(id, "sim: say begun ;; hang")
	at, m = w.call("thole/thread/setup", `{"threadId":"`+id+`"}`)
	if string(m.Result) != `{"turnId":null}` {
		t.Errorf("while a turn runs: %s %v", m.Result, m.Error)
	}
	w.note(at, "warning")
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+running+`"}`)
	w.find(at, "the end", func(m msg) bool { return m.Method == "turn/completed" && m.field("turn", "id") == running })
}

// A command turn waits after a running turn and then comes before what a user's stop
// holds back; what is said to a running one waits for its end.
func TestCommandTurnsAndOtherTurns(t *testing.T) {
	rig := tholetest.New(t)
	w, other := join(t, rig, full), join(t, rig, full)
	id := w.thread(`{}`)
	other.ok("thread/resume", `{"threadId":"`+id+`"}`)
	running := w.turn(id, "sim: say begun ;; hang")
	w.find(0, "the message", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "type") == "agentMessage" })
	at, _ := w.call("thread/shellCommand", `{"threadId":"`+id+`","command":"echo later"}`)
	if _, m := w.note(at, "warning"); !strings.Contains(m.field("message").(string), "!echo later waits") {
		t.Errorf("told %s", m.Params)
	}
	queue := w.ok("thread/queue/list", `{"threadId":"`+id+`"}`)["data"].([]any)
	queued := queue[0].(map[string]any)["id"].(string)
	if e := w.refused("thread/queue/update", `{"threadId":"`+id+`","queuedSubmissionId":"`+queued+`","input":[{"type":"text","text":"x"}]}`); !strings.Contains(e.Message, "cannot be edited") {
		t.Errorf("an edit of a command turn: %s", e.Message)
	}
	if e := w.refused("thole/queue/promote", `{"threadId":"`+id+`","queuedSubmissionId":"`+queued+`"}`); !strings.Contains(e.Message, "cannot steer a shell turn") {
		t.Errorf("a command turn as a steer: %s", e.Message)
	}
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+running+`"}`)
	stop, _ := w.find(at, "the end", func(m msg) bool { return m.Method == "turn/completed" && m.field("turn", "id") == running })

	// The stop holds the queue, but not what is asked for now.
	w.ok("thread/shellCommand", `{"threadId":"`+id+`","command":"echo now; sleep 60"}`)
	_, m := w.find(stop, "the command", func(m msg) bool { return m.Method == "item/started" && m.field("item", "source") == "userShell" })
	shell := m.field("turnId").(string)
	if !strings.Contains(m.field("item", "command").(string), "echo now") {
		t.Fatalf("the queue went on by itself: %s", m.Params)
	}
	if e := w.refused("turn/steer", `{"threadId":"`+id+`","expectedTurnId":"`+shell+`","input":[{"type":"text","text":"x"}]}`); !strings.Contains(e.Message, "cannot steer a shell turn") {
		t.Errorf("a steer of a command: %s", e.Message)
	}
	if got := w.turn(id, "sim: say said meanwhile"); got != shell {
		t.Errorf("what is said meanwhile is in turn %s", got)
	}
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+shell+`"}`)
	end, m := w.find(stop, "the end", func(m msg) bool { return m.Method == "turn/completed" && m.field("turn", "id") == shell })
	if m.field("turn", "status") != "interrupted" {
		t.Errorf("a stopped command is %s", m.Params)
	}
	w.ok("thread/queue/start", `{"threadId":"`+id+`"}`)
	end, _ = w.find(end, "the command turn", func(m msg) bool {
		return m.Method == "item/completed" && m.field("item", "aggregatedOutput") == "later\n"
	})
	end, _ = w.note(end, "turn/completed") // it is not the user's word that the rest may go on
	w.ok("thread/queue/start", `{"threadId":"`+id+`"}`)
	w.find(end, "the message", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "text") == "said meanwhile" })
	other.find(0, "the message", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "text") == "said meanwhile" })
	for _, m := range other.methods(0) {
		if m == "warning" {
			t.Error("what one client asked for was told to another")
		}
	}
}

// What is added to what the agent knows is part of the thread's settings, within
// bounds; a fork for an aside is not listed.
func TestInjectedItems(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{"developerInstructions":"be brief"}`)
	fork := w.ok("thread/fork", `{"threadId":"`+id+`","ephemeral":true}`)["thread"].(map[string]any)
	if fork["ephemeral"] != true {
		t.Errorf("the fork is %v", fork)
	}
	aside := fork["id"].(string)
	items := func(text string) string {
		return `{"threadId":"` + aside + `","items":[{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}]}`
	}
	w.ok("thread/inject_items", items("an aside"))
	w.ok("thread/inject_items", items("and more"))
	th, err := rig.Threads.Get(t.Context(), thole.LocalActor, thole.ThreadID(aside))
	if want := "be brief\n\nan aside\n\nand more"; err != nil || th.Settings.Instructions != want {
		t.Errorf("instructions %q, want %q (%v)", th.Settings.Instructions, want, err)
	}
	if e := w.refused("thread/inject_items", items(strings.Repeat("x", 256<<10))); !strings.Contains(e.Message, "longer than") {
		t.Errorf("too much: %s", e.Message)
	}
	if e := w.refused("thread/inject_items", `{"threadId":"`+aside+`","items":[{"type":"function_call","name":"x"}]}`); !strings.Contains(e.Message, "item 0") {
		t.Errorf("a call: %s", e.Message)
	}
	if listed := w.ok("thread/list", `{}`)["data"].([]any); len(listed) != 1 {
		t.Errorf("%d threads are listed", len(listed))
	}
}

// A review is a turn whose prompt says what to look at.
func TestReview(t *testing.T) {
	w := join(t, tholetest.New(t), full)
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
