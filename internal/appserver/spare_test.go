package appserver_test

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

// terminal joins as the Codex TUI does.
func terminal(t *testing.T, rig *tholetest.Kit) *wire {
	t.Helper()
	w := connect(t, rig.Stream())
	w.rig = rig
	w.ok("initialize", `{"clientInfo":{"name":"codex-tui","version":"0.166.0"},"capabilities":{"experimentalApi":true}}`)
	return w
}

// A TUI is answered where it would end itself, and reads why; every other client is refused.
func TestATerminalIsSpared(t *testing.T) {
	rig := tholetest.New(t)
	tui, other := terminal(t, rig), join(t, rig, full)
	const gone = "0199aaaa-0000-7000-8000-000000000001"
	id := tui.thread(`{}`)
	for _, c := range []struct{ method, params, tells, reason string }{
		{"turn/start", ofThread(gone, `"input":[{"type":"text","text":"x"}]`), "error", "not found"},
		{"review/start", ofThread(gone, `"target":{"type":"uncommittedChanges"}`), "error", "not found"},
		{"thread/compact/start", ofThread(gone), "error", "not found"},
		{"thread/shellCommand", ofThread(id, `"command":" "`), "warning", "empty"},
		{"thread/name/set", ofThread(gone, `"name":"x"`), "warning", "not found"},
		{"thread/backgroundTerminals/clean", ofThread(gone), "warning", "not found"},
		{"thread/settings/update", ofThread(id, `"approvalsReviewer":"auto_review"`), "warning", "a person reviews"},
	} {
		if e := other.refused(c.method, c.params); !strings.Contains(e.Message, c.reason) {
			t.Errorf("%s: %s", c.method, e.Message)
		}
		at := tui.len()
		tui.ok(c.method, c.params)
		if _, m := tui.note(at, c.tells); !strings.Contains(string(m.Params), c.reason) {
			t.Errorf("%s tells %s", c.method, m.Params)
		}
	}
	// What the TUI shows by itself stays an error, titles above all.
	for method, params := range map[string]string{
		"turn/start":     ofThread(gone, `"input":[{"type":"text","text":"x"}]`, `"outputSchema":{"type":"object"}`),
		"thread/resume":  ofThread(gone),
		"thread/archive": ofThread(gone),
		"turn/interrupt": ofThread(gone, `"turnId":"x"`),
	} {
		tui.refused(method, params)
	}
	if turns := tui.ok("thread/turns/list", ofThread(id))["data"].([]any); len(turns) > 0 {
		t.Errorf("refusals left %v", turns)
	}
}

// A review that a TUI asks for while a turn runs is the next turn.
func TestAReviewWaits(t *testing.T) {
	rig := tholetest.New(t)
	tui := terminal(t, rig)
	id := tui.thread(`{}`)
	at := tui.len()
	running := tui.turn(id, "sim: say begun ;; hang")
	tui.note(at, "item/completed")
	const target = `"target":{"type":"uncommittedChanges"}`
	if e := join(t, rig, full).refused("review/start", ofThread(id, target)); !strings.Contains(e.Message, "turn") {
		t.Errorf("another client reads %s", e.Message)
	}
	if turn := tui.ok("review/start", ofThread(id, target))["turn"].(map[string]any); turn["id"] != running {
		t.Errorf("the answer has %v; %s runs", turn, running)
	}
	if _, m := tui.note(at, "warning"); !strings.Contains(string(m.Params), "waits for the end") {
		t.Errorf("told %s", m.Params)
	}
	tui.ok("turn/interrupt", ofThread(id, `"turnId":"`+running+`"`))
	tui.note(at, "turn/completed")
	queued := tui.ok("thread/queue/list", ofThread(id))["data"].([]any)
	tui.ok("thread/queue/start", ofThread(id, `"queuedSubmissionId":"`+queued[0].(map[string]any)["id"].(string)+`"`)) // a user's stop holds the queue
	tui.find(at, "the review", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "type") == "exitedReviewMode" })
}
