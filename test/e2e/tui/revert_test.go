package tui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

// Esc Esc and Enter take a message back, with every agent: it is in the prompt again, the
// thread and its agent are without it, and files stay as they are.
func TestTakeBack(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			c := started(t, h, agent)
			c.say("the word is heliotrope sim: say kept it")
			c.wait("• kept it")
			c.rests("• kept it")
			c.say("the word is marzipan sim: say took it")
			c.wait("• took it")
			c.rests("• took it")
			client := dial(t, "unix://"+daemon.Socket(h.Dir))
			if err := client.Call(t.Context(), "thread/shellCommand", app.ShellCommandParams{ThreadID: c.thread, Command: "echo made > made.txt"}, nil); err != nil {
				t.Fatal(err)
			}
			c.exists("made.txt")
			c.rests("made.txt")
			c.rewinds()
			c.keys("Enter")
			c.wait("Conversation reverted to this point. File changes are unchanged.", "› the word is marzipan")
			if shown := c.text(); strings.Contains(shown, "• took it") || strings.Contains(shown, "You ran echo made") {
				t.Errorf("still shown:\n%s", shown)
			}
			c.keys("C-u")
			c.until("an empty prompt", func(shown string) bool { return !strings.Contains(shown, "marzipan") })
			c.say("what was it sim: say I read: %user%")
			shown := c.wait("• I read:", "> User: the word is heliotrope", "> You: kept it")
			c.rests("• I read:")
			if strings.Contains(shown, "marzipan") {
				t.Errorf("the agent remembers:\n%s", shown)
			}
			c.say("and now sim: say prompts %prompts%") // the agent's own session goes on
			c.wait("• prompts 2")
			if made, err := os.ReadFile(filepath.Join(c.dir, "made.txt")); err != nil || string(made) != "made\n" {
				t.Errorf("files: %q, %v", made, err)
			}
			again := showIn(t, c.dir, nil, lab.Codex(t), "resume", c.thread, "--remote", checkedAddress(t, h))
			if all := again.wait("• made by a script", "• kept it", "• prompts 2"); strings.Contains(all, "marzipan") {
				t.Errorf("resumed:\n%s", all)
			}
			page, err := client.Turns(t.Context(), app.TurnsListParams{ThreadID: c.thread})
			if err != nil || len(page.Data) != 4 {
				t.Errorf("%d turns, %v", len(page.Data), err)
			}
			out, _, _ := h.Run("thread", "transcript", c.thread)
			if strings.Contains(out, "marzipan") || !strings.Contains(out, "heliotrope") {
				t.Errorf("transcript:\n%s", out)
			}
			// A busy thread keeps its turns.
			c.say("sim: hang")
			c.wait(working)
			var refused *appclient.Error
			err = client.Call(t.Context(), "thread/revert", app.ThreadRevertParams{ThreadID: c.thread, BeforeTurnID: page.Data[0].ID}, nil)
			if !errors.As(err, &refused) || !strings.Contains(refused.Message, "is running") {
				t.Errorf("a busy thread: %v", err)
			}
			c.keys("Escape")
			c.wait("Conversation interrupted")
		})
	}
}

// rewinds presses Esc until the TUI offers to go back to a message: it may still be busy with
// the end of a turn, or have forgotten the first one.
func (s *screen) rewinds() {
	s.t.Helper()
	var pressed time.Time
	s.until("the choice of a message", func(shown string) bool {
		if strings.Contains(shown, "↵ rewind") {
			return true
		}
		if time.Since(pressed) > time.Second {
			s.keys("Escape")
			pressed = time.Now()
		}
		return false
	})
}
