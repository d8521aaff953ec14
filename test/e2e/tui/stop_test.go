package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

// /ps of the installed TUI lists what codex and claude left running, as the contract does, and
// /stop ends it.
func TestStop(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t)}
	h.Up()
	for agent, leaves := range map[string]string{
		"codex":  "run sleep 2718", // codex goes on without a command that takes longer than ten seconds
		"claude": `call Bash {"command":"sleep 2718","description":"wait","run_in_background":true}`,
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			stops(t, h, agent, leaves)
		})
	}
}

func stops(t *testing.T, h *home.Home, agent, leaves string) {
	out, errs, code := h.Run("thread", "start", "--empty", "--profile", "full", "--model", agent+"/default", "sim: "+leaves+" ;; say left it")
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	thread := strings.Fields(out)[1]
	s := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", checkedCodex(t, h), thread)
	s.wait("• left it")
	c := dial(t, "unix://"+daemon.Socket(h.Dir))
	left := func() []app.BackgroundTerminal {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var list app.BackgroundTerminalsResult
		if err := c.Call(ctx, "thread/backgroundTerminals/list", app.BackgroundTerminalsParams{ThreadID: thread}, &list); err != nil {
			t.Fatal(err)
		}
		return list.Data
	}
	if l := left(); len(l) != 1 || l[0].Command != "sleep 2718" || l[0].Cwd != "/workspace" || l[0].ItemID == "" || l[0].ProcessID == "" {
		t.Fatalf("left running: %+v", l)
	}
	s.wait("1 background terminal running")
	s.types("/ps")
	s.wait("Background terminals", "sleep 2718")
	s.types("/stop")
	s.wait("Stopping all background terminals")
	poll.Until(t, "its end", func() bool { return len(left()) == 0 })
	s.types("/ps")
	s.wait("No background terminals running")
}

// types is say for what the screen shows elsewhere too.
func (s *screen) types(text string) {
	s.t.Helper()
	s.run("send-keys", "-l", text)
	s.wait("› " + text)
	s.keys("Enter")
}
