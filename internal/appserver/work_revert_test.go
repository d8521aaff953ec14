package appserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

// A thread without its last turns, as those who follow it hear and read it.
func TestTurnsTakenBack(t *testing.T) {
	rig := tholetest.New(t)
	w, other := join(t, rig, full), join(t, rig, full)
	id := w.thread(`{}`)
	var turns []string
	for i := range 3 {
		from := w.len()
		turns = append(turns, w.turn(id, fmt.Sprintf("sim: say %d", i)))
		w.note(from, "turn/completed")
	}
	other.ok("thread/resume", ofThread(id))
	from := other.len()
	got := w.ok("thread/revert", ofThread(id, `"beforeTurnId":"`+turns[1]+`"`))
	if th := got["thread"].(map[string]any); th["id"] != id || len(th["turns"].([]any)) != 0 || th["preview"] != "sim: say 0" {
		t.Errorf("%v", got)
	}
	other.note(from, "thread/reverted")
	for cursor, method := range map[string]string{"turnsBackwardsCursor": "thread/turns/list", "itemsBackwardsCursor": "thread/items/list"} {
		page := w.ok(method, ofThread(id, `"sortDirection":"desc","cursor":"`+got[cursor].(string)+`"`))["data"].([]any)
		if want := map[string]int{"thread/turns/list": 1, "thread/items/list": 2}[method]; len(page) != want {
			t.Errorf("%s has %d, want %d: %v", method, len(page), want, page)
		}
	}
	for _, gone := range turns[1:] {
		if e := w.refused("thread/revert", ofThread(id, `"beforeTurnId":"`+gone+`"`)); !strings.Contains(e.Message, "turn not found: "+gone) {
			t.Error(e.Message)
		}
	}
}
