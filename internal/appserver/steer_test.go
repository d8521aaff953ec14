package appserver_test

import (
	"context"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

// What belongs to a turn cannot be had of one that runs already: it is refused, and the
// message reaches nobody.
func TestASteerThatWantsATurnOfItsOwn(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	with := func(text, more string) string { return strings.TrimSuffix(input(id, text), "}") + "," + more + "}" }
	const plan = `"collaborationMode":{"mode":"plan","settings":{"model":"test/script"}}`
	const usual = `"collaborationMode":{"mode":"default","settings":{"model":"test/script"}}`
	turn := w.turn(id, "sim: hang")
	for more, want := range map[string]string{plan: "plan mode", `"idempotencyKey":"k1"`: "idempotencyKey"} {
		if e := w.refused("turn/start", with("sim: say steered", more)); !strings.Contains(e.Message, want) || !strings.Contains(string(e.Data), `"busy"`) {
			t.Errorf("%s: %v %s", more, e, e.Data)
		}
	}
	if queue := w.ok("thread/queue/list", `{"threadId":"`+id+`"}`)["data"].([]any); len(queue) > 0 {
		t.Errorf("a refused message waits: %v", queue)
	}
	w.ok("turn/start", with("sim: say steered", usual))
	end := w.len()
	w.ok("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+turn+`"}`)
	w.note(end, "turn/completed")

	planned := w.ok("turn/start", with("sim: hang", plan+`,"idempotencyKey":"k2"`))["turn"].(map[string]any)["id"].(string)
	again := w.ok("turn/start", with("sim: hang", plan+`,"idempotencyKey":"k2"`))["turn"].(map[string]any)["id"]
	if again != planned {
		t.Errorf("a repeat of turn %s is turn %s", planned, again)
	}
	if same := w.ok("turn/start", with("sim: say more", plan))["turn"].(map[string]any)["id"]; same != planned {
		t.Errorf("a message to a turn in plan mode went to %s, not %s", same, planned)
	}
	page, err := rig.Threads.Turns(context.Background(), thole.LocalActor, thole.ThreadID(id), thread.PageParams{})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("%d turns, %v", len(page.Items), err)
	}
}
