package appserver_test

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

// Each file change is followed by all that the turn has changed so far, also for
// a client that joined in between; what was declined is not in it.
func TestTurnDiffIsTold(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{"approvalPolicy":"never","sandbox":"danger-full-access"}`)
	from := w.len()
	w.turn(id, "sim: write one.txt first ;; ask Go on? | yes ;; write two.txt second")
	i, one := w.note(from, "turn/diff/updated")
	if d := one.field("diff").(string); !strings.Contains(d, "+++ b/one.txt") || strings.Contains(d, "two.txt") {
		t.Errorf("the first diff is\n%s", d)
	}
	late := join(t, rig, full)
	late.ok("thread/resume", `{"threadId":"`+id+`","excludeTurns":true}`)
	_, ask := late.note(0, "item/tool/requestUserInput")
	question := ask.field("questions").([]any)[0].(map[string]any)["id"].(string)
	late.send(`{"id":` + string(ask.ID) + `,"result":{"answers":{"` + question + `":{"answers":["yes"]}}}}`)
	_, two := w.note(i+1, "turn/diff/updated")
	_, same := late.note(0, "turn/diff/updated")
	if d := two.field("diff").(string); !strings.Contains(d, "one.txt") || !strings.Contains(d, "+second") || d != same.field("diff") {
		t.Errorf("the second diff is\n%s\nand for the joiner\n%s", d, same.field("diff"))
	}
	_, _ = w.note(i, "turn/completed")

	from = w.len()
	w.ok("thread/settings/update", `{"threadId":"`+id+`","approvalPolicy":"untrusted","sandboxPolicy":{"type":"workspaceWrite"}}`)
	w.turn(id, "sim: write three.txt never ;; say so be it")
	_, ask = w.note(from, "item/fileChange/requestApproval")
	w.send(`{"id":` + string(ask.ID) + `,"result":{"decision":"decline"}}`)
	end, _ := w.note(from, "turn/completed")
	for _, m := range w.methods(from)[:end-from] {
		if m == "turn/diff/updated" {
			t.Error("a declined change was told as made")
		}
	}
}
