package appserver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
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
		"command": "/bin/bash -lc 'echo out; echo err >&2; exit 3'", "aggregatedOutput": "out\nerr\n",
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
// holds back; what is said to a running one waits for its end, also when that is a stop.
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
	// As with codex a command takes messages: each becomes a turn after it.
	if got := w.ok("turn/steer", `{"threadId":"`+id+`","expectedTurnId":"`+shell+`","input":[{"type":"text","text":"sim: say steered meanwhile"}]}`)["turnId"]; got != shell {
		t.Errorf("a steer of a command is in turn %v", got)
	}
	if got := w.turn(id, "sim: say said meanwhile"); got != shell {
		t.Errorf("what is said meanwhile is in turn %s", got)
	}
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+shell+`"}`)
	end, m := w.find(stop, "the end", func(m msg) bool { return m.Method == "turn/completed" && m.field("turn", "id") == shell })
	if m.field("turn", "status") != "interrupted" {
		t.Errorf("a stopped command is %s", m.Params)
	}
	for _, next := range [][2]string{{"text", "steered meanwhile"}, {"text", "said meanwhile"}, {"aggregatedOutput", "later\n"}} {
		end, _ = w.find(end, next[1], func(m msg) bool { return m.Method == "item/completed" && m.field("item", next[0]) == next[1] })
	}
	if turns := w.ok("thread/turns/list", `{"threadId":"`+id+`"}`)["data"].([]any); len(turns) != 5 {
		t.Errorf("%d turns, not 5", len(turns))
	}
	other.find(0, "the message", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "text") == "said meanwhile" })
	for _, m := range other.methods(0) {
		if m == "warning" {
			t.Error("what one client asked for was told to another")
		}
	}
}

// A message to a command that is stopped becomes one turn: by itself, or because a TUI sends it
// again, as it does with everything that no agent has when a turn is stopped.
func TestMessageToAStoppedCommand(t *testing.T) {
	for _, name := range []string{"script", "codex-tui"} {
		for _, first := range []string{"message", "stop"} {
			t.Run(name+"/"+first+" first", func(t *testing.T) {
				b := newBare(t, nil)
				w := connect(t, b.stream())
				w.ok("initialize", `{"clientInfo":{"name":"`+name+`","version":"0.166.0"},"capabilities":{"experimentalApi":true}}`)
				id := w.thread(`{}`)
				w.ok("thread/shellCommand", ofThread(id, `"command":"sleep 60"`))
				_, m := w.note(0, "turn/started")
				command := thread.TurnRef{Thread: thole.ThreadID(id), Turn: thole.TurnID(m.field("turn", "id").(string))}
				b.report(command, begins("output")) // it runs, so a stop is not its end
				calls := []func(){
					func() {
						w.ok("turn/steer", ofThread(id, `"expectedTurnId":"`+string(command.Turn)+`"`, `"input":[{"type":"text","text":"hello"}]`))
					},
					func() { w.ok("turn/interrupt", ofThread(id, `"turnId":"`+string(command.Turn)+`"`)) },
				}
				if first == "stop" {
					slices.Reverse(calls)
				}
				for _, call := range calls {
					call()
				}
				b.report(command, event.Event{Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeInterrupted}})
				if name == "codex-tui" {
					w.turn(id, "hello")
				}
				at, m := w.find(0, "the turn of the message", func(m msg) bool {
					return m.Method == "turn/started" && m.field("turn", "id") != string(command.Turn)
				})
				b.report(thread.TurnRef{Thread: command.Thread, Turn: thole.TurnID(m.field("turn", "id").(string))}, says("answer", "hi"), ends())
				w.note(at, "turn/completed")
				if turns, queue := w.ok("thread/turns/list", ofThread(id))["data"].([]any), w.ok("thread/queue/list", ofThread(id))["data"].([]any); len(turns) != 2 || len(queue) != 0 {
					t.Errorf("turns: %v, waiting: %v", turns, queue)
				}
			})
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

// A review is a turn of its own: it enters review mode with what is reviewed, and exits it
// with what was found, also in history.
func TestReview(t *testing.T) {
	w := join(t, tholetest.New(t), full)
	id := w.thread(`{}`)
	for target, words := range map[string][2]string{
		`{"type":"uncommittedChanges"}`:                       {"current changes", "uncommitted changes in the working tree"},
		`{"type":"baseBranch","branch":"main"}`:               {"changes against 'main'", "since it left main"},
		`{"type":"commit","sha":"abc123","title":"a commit"}`: {"commit abc123: a commit", "commit abc123 made"},
		`{"type":"custom","instructions":"look at the rows"}`: {"look at the rows", "look at the rows"},
	} {
		from := w.len()
		out := w.ok("review/start", `{"threadId":"`+id+`","target":`+target+`,"delivery":"inline"}`)
		turn := out["turn"].(map[string]any)
		if out["reviewThreadId"] != id || turn["status"] != "inProgress" {
			t.Fatalf("%s gave %v", target, out)
		}
		_, entered := w.note(from, "item/started")
		if entered.field("item", "type") != "enteredReviewMode" || entered.field("item", "review") != words[0] {
			t.Errorf("%s began with %s", target, entered.Params)
		}
		if _, done := w.note(from, "turn/completed"); done.field("turn", "id") != turn["id"] {
			t.Errorf("another turn ended: %s", done.Params)
		}
		items := w.ok("thread/items/list", `{"threadId":"`+id+`","turnId":"`+turn["id"].(string)+`"}`)["data"].([]any)
		kind := func(i int) (any, string) {
			it := items[i].(map[string]any)["item"].(map[string]any)
			text, _ := it["review"].(string)
			return it["type"], text
		}
		if first, what := kind(0); first != "enteredReviewMode" || what != words[0] {
			t.Errorf("%s: history begins with %v %q", target, first, what)
		}
		if last, found := kind(len(items) - 1); last != "exitedReviewMode" || !strings.Contains(found, words[1]) { // the scripted agent repeats what it reads
			t.Errorf("%s: history ends with %v %q", target, last, found)
		}
	}
	for _, target := range []string{`{"type":"commit"}`, `{"type":"moon"}`} {
		if e := w.refused("review/start", `{"threadId":"`+id+`","target":`+target+`}`); !strings.Contains(e.Message, "review target") {
			t.Errorf("%s: %s", target, e.Message)
		}
	}
}

// A review that is stopped exits review mode too, and a running one takes no messages.
func TestReviewThatIsStopped(t *testing.T) {
	w := join(t, tholetest.New(t), full)
	id := w.thread(`{}`)
	from := w.len()
	turn := w.ok("review/start", `{"threadId":"`+id+`","target":{"type":"custom","instructions":"sim: hang"}}`)["turn"].(map[string]any)["id"].(string)
	w.note(from, "turn/started")
	e := w.refused("turn/steer", `{"threadId":"`+id+`","expectedTurnId":"`+turn+`","input":[{"type":"text","text":"x"}]}`)
	const data = `{"message":"cannot steer a review turn","codexErrorInfo":{"activeTurnNotSteerable":{"turnKind":"review"}},"additionalDetails":null}`
	if e.Code != -32600 || e.Message != "cannot steer a review turn" || string(e.Data) != data { // a TUI that reads another error ends
		t.Errorf("steered: %d %s %s", e.Code, e.Message, e.Data)
	}
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+turn+`"}`)
	w.find(from, "the end of review mode", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "type") == "exitedReviewMode" })
	w.note(from, "turn/completed")
}
