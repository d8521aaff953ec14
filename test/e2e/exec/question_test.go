package exec

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// Nobody answers an agent's question, which it hears at once: its turn goes on without.
func TestAQuestionIsDeclined(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	for _, model := range []string{"test/script", "codex/default", "claude/default", "opencode/default"} {
		t.Run(strings.ReplaceAll(model, "/", " "), func(t *testing.T) {
			out, errs, code := h.Run("exec", "-C", t.TempDir(), "--skip-git-repo-check", "-m", model, "sim: ask Which colour? | red | green ;; say went on")
			if code != 0 || !strings.Contains(out, "went on") {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}
