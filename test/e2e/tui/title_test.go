package tui

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
)

// The TUI asks for the title of a first message in a thread of its own, and names the
// thread by the answer. No agent is started for that.
func TestTitle(t *testing.T) {
	rig, _, s := attach(t)
	s.say("sim: say hello ;; say and a longer title than a list shows")
	s.wait("• hello")
	name := ""
	s.until("the thread's name", func(string) bool {
		th, err := rig.Threads.Get(context.Background(), thole.LocalActor, thole.ThreadID(loaded(t, rig)))
		name = th.Name
		return err == nil && th.Name != ""
	})
	if name != "sim: say hello ;; say and a longer…" {
		t.Errorf("the thread is named %q", name)
	}
	rows, err := rig.Store().Executors().Live(context.Background(), "", 10)
	if err != nil || len(rows) != 1 {
		t.Errorf("%d executors for one conversation: %v", len(rows), err)
	}
}
