package appserver_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/executorclient"
	executord "github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
)

// leaves is an agent that left one command running, until it is over.
type leaves struct{ over atomic.Bool }

func (l *leaves) Exec(context.Context, thole.Actor, authz.Action, thole.ThreadID, bool, func(string, json.RawMessage)) (*executorclient.Exec, func(), error) {
	return nil, nil, thole.Errorf(thole.CodeUnavailable, "no exec-server")
}

func (l *leaves) Background(context.Context, thole.Actor, authz.Action, executord.BackgroundRequest) (executord.Background, error) {
	if l.over.Load() {
		return executord.Background{Known: true}, nil
	}
	return executord.Background{Known: true, Commands: []provider.BackgroundCommand{{ID: "7", Item: "i", Line: "sleep 60", Dir: "/workspace"}}}, nil
}

// A TUI hears once of what outlives a turn, when that has ended and when it joins later, and of
// its end. Other clients ask.
func TestWhatAnAgentLeftRunning(t *testing.T) {
	agent := &leaves{}
	b := newBareWith(t, nil, nil, agent)
	tui := func() *wire {
		w := connect(t, b.stream())
		w.ok("initialize", `{"clientInfo":{"name":"codex-tui","version":"0.166.0"},"capabilities":{"experimentalApi":true}}`)
		return w
	}
	background := func(method string) func(msg) bool {
		return func(m msg) bool { return m.Method == method && m.field("item", "source") == "unifiedExecStartup" }
	}
	first, script := tui(), b.join()
	id := first.thread(`{}`)
	script.ok("thread/resume", ofThread(id))
	b.report(b.turn(id, "x"), ends())
	at, _ := first.note(0, "turn/completed")
	if _, m := first.find(at, "the command", background("item/started")); m.field("item", "id") != "i" || m.field("item", "command") != "/bin/bash -lc 'sleep 60'" {
		t.Errorf("told %s", m.Params)
	}
	second := tui()
	second.ok("thread/resume", ofThread(id))
	second.find(0, "the command", background("item/started"))
	agent.over.Store(true)
	for _, w := range []*wire{first, second} {
		end, _ := w.find(0, "its end", background("item/completed"))
		begun := 0
		for _, m := range w.since(0)[:end] {
			if background("item/started")(m) {
				begun++
			}
		}
		if begun != 1 {
			t.Errorf("told %d times", begun)
		}
	}
	for _, m := range script.since(0) {
		if background("item/started")(m) {
			t.Errorf("a script is told %s", m.Params)
		}
	}
}
