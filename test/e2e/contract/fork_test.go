package contract

import (
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/test/e2e/home"
)

// A fork that is made the moment a turn ends goes on with all of it: its agent remembers what
// was said last, and the files are there.
func TestForkRightAfterATurn(t *testing.T) {
	for name, a := range realAgents(t) {
		t.Run(name, func(t *testing.T) {
			if name != "claude" && os.Getenv("THOLE_SOAK") == "" {
				t.Skip("runs with THOLE_SOAK")
			}
			t.Parallel()
			h := home.New(t)
			h.Vars = []string{a.variable + "=" + a.path}
			h.Up()
			run := func(args ...string) string {
				t.Helper()
				out, errs, code := h.Run(args...)
				if code != 0 {
					t.Fatalf("%v: %d %s%s", args, code, out, errs)
				}
				return out
			}
			id := strings.Fields(run("thread", "start", "--empty", "--profile", "full", "--model", a.model, "sim: say one"))[1]
			for _, line := range []string{"sim: say two", "sim: say three", "sim: write last.txt kept ;; say four"} {
				run("thread", "send", id, line)
			}
			fork := strings.Fields(run("thread", "fork", id))[1]
			if out := run("thread", "send", fork, "sim: run cat last.txt ;; say heard %prompts%, read %tool%"); !strings.Contains(out, "heard 5, read ") || !strings.Contains(out, "| kept") {
				t.Errorf("the fork goes on with: %s", out)
			}
		})
	}
}
