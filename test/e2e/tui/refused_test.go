package tui

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// What thole refuses does not end the terminal, on a thread of any agent: it says why, and the
// next message is sent. Permissions that its user chooses are confirmed, and what the thread
// cannot have is not offered.
func TestRefusalsKeepTheTerminal(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			c := started(t, h, agent)
			c.say("/permissions")
			c.wait("Approve for me (disabled)")
			c.keys("3")
			c.wait("Permission selection requested: Read Only")
			c.say("sim: say only reads")
			c.wait("• only reads") // a TUI that waits for its permissions sends nothing
			c.rests("• only reads")

			out, errs, code := h.Run("--json", "budget", "set", "thread:"+c.thread, "1 tokens", "--action", "block_new")
			var limit struct{ ID string }
			if err := json.Unmarshal([]byte(out), &limit); err != nil || code != 0 {
				t.Fatalf("%d %s%s %v", code, out, errs, err)
			}
			refused := func(times int) {
				t.Helper()
				c.until("why", func(shown string) bool {
					return strings.Count(shown, "■ the budget of this thread is spent") == times
				})
			}
			c.say("sim: say never said")
			refused(1)
			c.say("/compact")
			refused(2)
			c.say("/review")
			c.wait("2. Review uncommitted changes")
			c.keys("2")
			refused(3)
			if out, errs, code := h.Run("budget", "rm", limit.ID); code != 0 {
				t.Fatalf("%s%s", out, errs)
			}
			c.say("sim: say still here")
			c.wait("• still here")

			c.say("/model")
			offered := c.wait("Select Model and Effort")
			for other, title := range map[string]string{"codex": ". Codex", "claude": "Claude Code:", "opencode": "opencode:", "": "Scripted agent:"} {
				if has := strings.Contains(offered[strings.LastIndex(offered, "Select Model"):], title); has != (other == agent) {
					t.Errorf("models of %s are offered: %v", title, has)
				}
			}
		})
	}
}
