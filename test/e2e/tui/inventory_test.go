package tui

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// The TUI shows what the agent of its thread has by its own word, whichever agent it is:
// its skills, also where the thread's files are not in the directory of the TUI, its servers of
// tools and its hooks.
func TestWhatAnAgentHas(t *testing.T) {
	h := home.New(t)
	codex := lab.Codex(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex, "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	repo := t.TempDir()
	for _, dir := range []string{".agents", ".claude"} {
		dir = filepath.Join(repo, dir, "skills", "dye")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: dye\ndescription: Colours wool\n---\nUse madder.\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"init -q", "add .", "-c user.name=x -c user.email=x@example.com commit -qm x"} {
		if out, err := exec.Command(lab.Git(t), append([]string{"-C", repo}, strings.Fields(line)...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", line, err, out)
		}
	}
	h.Up()
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			out, errs, code := h.Run("thread", "start", "--repo", repo, "--profile", "ask", "--model", agent+"/default", "sim: say made by a script")
			if code != 0 {
				t.Fatalf("%d %s%s", code, out, errs)
			}
			s := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", checkedCodex(t, h), strings.Fields(out)[1])
			s.wait("• made by a script")
			s.say("/skills")
			s.wait("List skills")
			s.keys("Enter")
			s.wait("Colours wool")
			s.keys("Escape", "BSpace")
			s.say("/mcp")
			s.wait("MCP Tools", "thole: connected (6 tools)")
			s.say("/hooks")
			s.wait("Lifecycle hooks", "PreToolUse")
		})
	}
}
