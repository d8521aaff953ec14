package tui

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// Each agent works at a goal that a user of the TUI gives it, turn after turn, until it says
// itself that it is reached; the user pauses, resumes and clears goals.
func TestGoalOfEveryAgent(t *testing.T) {
	h := home.New(t)
	codex := lab.Codex(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex, "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	for agent, prefix := range map[string]string{"codex": "mcp__thole__", "claude": "mcp__thole__", "opencode": "thole_"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			out, errs, code := h.Run("thread", "start", "--profile", "full", "--model", agent+"/default", "sim: say made by a script")
			if code != 0 {
				t.Fatalf("%d %s%s", code, out, errs)
			}
			s := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", checkedCodex(t, h), strings.Fields(out)[1])
			s.wait("made by a script")
			s.say("/goal sim: call " + prefix + `goal_update {"status":"complete"} ;; say told: %tool%`)
			s.wait("The goal is complete. End your turn now.", "Goal achieved (", "• told:")
			s.lacks("esc to interrupt") // the turn itself ends later
			s.say("/goal clear")
			s.lacks("Goal achieved (")
			s.say("/goal sim: hang")
			s.wait("Objective: sim: hang", "esc to interrupt")
			s.say("/goal pause")
			s.wait("Goal paused (")
			s.keys("Escape")
			s.wait("Conversation interrupted")
			s.run("send-keys", "-l", "/goal resume")
			s.until("what was typed, next to the hint", func(shown string) bool { return strings.Count(squeeze(shown), "/goalresume") == 2 })
			s.keys("Enter")
			s.lacks("Goal paused (")
			s.wait("esc to interrupt")
			s.keys("Escape") // who stops the turn stops the goal
			s.wait("Goal paused (")
			s.say("/goal clear")
			s.lacks("Goal paused (")
		})
	}
}

// lacks waits until the screen does not show a text any more.
func (s *screen) lacks(text string) {
	s.t.Helper()
	s.until("the end of "+text, func(shown string) bool { return !strings.Contains(shown, text) })
}
