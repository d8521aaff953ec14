package appserver_test

import (
	"context"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// A TUI on a thread that has turns is offered the models of that thread's agent, and all of
// them before; another client is always offered all. What another agent would have to go on
// with is refused and changes nothing, and an agent's own choice can be chosen again.
func TestModelsThatAThreadCanHave(t *testing.T) {
	b := newBareWith(t, nil, func() []provider.Info {
		return []provider.Info{
			{Name: "claude", Available: true, Models: []provider.Model{{ID: "default", Default: true}, {ID: "opus", Efforts: []string{"low", "high"}}}},
			{Name: "opencode", Available: true},
		}
	})
	tui := connect(t, b.stream())
	tui.ok("initialize", `{"clientInfo":{"name":"codex-tui","version":"0.166.0"},"capabilities":{"experimentalApi":true}}`)
	offered := func(w *wire) string {
		var ids []string
		for _, m := range w.ok("model/list", `{}`)["data"].([]any) {
			ids = append(ids, m.(map[string]any)["id"].(string))
		}
		return strings.Join(ids, " ")
	}
	const all = "claude/default claude/opus opencode/default"
	id := tui.thread(`{"model":"claude/opus"}`)
	if got := offered(tui); got != all {
		t.Errorf("a new thread is offered %s", got)
	}
	tui.ok("thread/settings/update", ofThread(id, `"model":"opencode/default"`))
	tui.ok("thread/settings/update", ofThread(id, `"model":"claude/opus"`, `"effort":"high"`))
	ref := b.turn(id, "x")
	b.report(ref, says("i", "hello"), ends())
	if got := offered(tui); got != "claude/default claude/opus" {
		t.Errorf("a thread of claude is offered %s", got)
	}
	starting := connect(t, b.stream())
	starting.ok("initialize", `{"clientInfo":{"name":"codex-tui","version":"0.166.0"}}`)
	if got := offered(starting); got != all {
		t.Errorf("a TUI that opens nothing is offered %s", got)
	}
	starting.ok("thread/read", ofThread(id))
	if got := offered(starting); got != "claude/default claude/opus" {
		t.Errorf("a TUI that is about to open it is offered %s", got)
	}
	if got := offered(b.join()); got != all {
		t.Errorf("another client is offered %s", got)
	}
	now := func() (string, string) {
		th, err := b.threads.Get(context.Background(), thole.LocalActor, thole.ThreadID(id))
		if err != nil {
			t.Fatal(err)
		}
		return th.Settings.Provider + "/" + th.Settings.Model, th.Settings.Effort
	}
	for _, method := range []string{"thread/settings/update", "turn/start"} {
		params := ofThread(id, `"input":[{"type":"text","text":"x"}]`, `"model":"opencode/default"`, `"approvalPolicy":"never"`)
		other := b.join()
		if e := other.refused(method, params); !strings.Contains(e.Message, "a thread stays with its provider") {
			t.Errorf("%s: %s", method, e.Message)
		}
		at, m := tui.call(method, params) // the TUI shows no reason, or ends itself
		if m.Error != nil {
			t.Fatalf("%s of a TUI: %v", method, m.Error)
		}
		if _, m := tui.find(at, "why", func(m msg) bool { return m.Method == "warning" || m.Method == "error" }); !strings.Contains(string(m.Params), "a thread stays with its provider") {
			t.Errorf("%s tells %s", method, m.Params)
		}
		if _, m := tui.note(at, "thread/settings/updated"); m.field("threadSettings", "model") != "claude/opus" {
			t.Errorf("%s leaves the TUI with %s", method, m.Params)
		}
	}
	if model, effort := now(); model != "claude/opus" || effort != "high" {
		t.Errorf("after a refusal it has %s with %s", model, effort)
	}
	// A turn that does not start, for whatever reason, leaves them too.
	other := b.join()
	if e := other.refused("turn/start", ofThread(id, `"effort":"low"`, `"input":[{"type":"text","text":"x"}]`, `"outputSchema":7`)); !strings.Contains(e.Message, "schema") {
		t.Error(e.Message)
	}
	tui.ok("thread/archive", ofThread(id))
	if e := other.refused("turn/start", ofThread(id, `"effort":"low"`, `"input":[{"type":"text","text":"x"}]`)); !strings.Contains(e.Message, "archived") {
		t.Error(e.Message)
	}
	tui.ok("thread/unarchive", ofThread(id))
	if model, effort := now(); model != "claude/opus" || effort != "high" {
		t.Errorf("after turns that did not start it has %s with %s", model, effort)
	}
	tui.ok("thread/settings/update", ofThread(id, `"model":"claude/default"`, `"effort":"medium"`)) // as it is listed
	if model, effort := now(); model != "claude/" || effort != "" {
		t.Errorf("its agent's own choice is %s with %s", model, effort)
	}
	tui.ok("thread/settings/update", ofThread(id, `"model":"claude/of-my-own"`))
	if got := offered(tui); got != "claude/default claude/opus claude/of-my-own" {
		t.Errorf("a thread with a model that is not listed is offered %s", got)
	}
}
