package tui

import (
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// The owner is killed while agents answer. The terminals reconnect to the next one by
// themselves, and each answer is shown once and whole, there and when the thread is resumed.
func TestOwnerKilledInMidAnswer(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("runs with THOLE_SOAK")
	}
	codex := lab.Codex(t)
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex, "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	kill := h.Up()
	screens, open := map[string]*screen{}, map[string]func() *screen{}
	for _, agent := range []string{"codex", "claude", "opencode"} {
		out, errs, code := h.Run("thread", "start", "--model", models[agent], first)
		if code != 0 {
			t.Fatalf("%d %s%s", code, out, errs)
		}
		open[agent] = func() *screen {
			return show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", checkedCodex(t, h), strings.Fields(out)[1])
		}
		screens[agent] = open[agent]()
		screens[agent].wait("• made by a script")
	}
	for _, s := range screens {
		s.say(`sim: slow 400ms 6 ;; say Early words.\n\nThen come others.\n\nAnd others still.\n\nLate words.`)
	}
	for _, s := range screens {
		s.wait("• Early words.")
	}
	kill()
	h.Up()
	for agent, s := range screens {
		shown := s.until("the rest of the answer", func(shown string) bool {
			i := strings.LastIndex(shown, "• Early words.")
			return i >= 0 && strings.Contains(shown[i:], "Late words.") && strings.Contains(shown[i:], "Worked for")
		})
		if n := strings.Count(shown, "• Early words."); n != 1 || strings.Count(shown, "  Then come others.") != 1 {
			t.Errorf("%s: the answer is shown %d times:\n%s", agent, n, shown)
		}
		again := open[agent]().wait("• made by a script", "• Early words.", "Late words.")
		if n := strings.Count(again, "• Early words."); n != 1 {
			t.Errorf("%s: resumed, the answer is shown %d times:\n%s", agent, n, again)
		}
	}
}
