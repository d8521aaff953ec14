package chat_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// rows are those of agents.mjs.
var rows = []string{"answer", "stock approval", "stock denial", "answer again", "stock approvals", "approved command", "declined command", "edit", "question", "plan", "stop"}

// failing are the rows that do not work yet, with the reason. One that begins to
// work turns the test red: take it out.
var failing = map[string]string{
	"claude: plan": "the CLI offers the scripted model no tool for a list of tasks",
}

// The official client on threads of each real agent, through the program as it is
// shipped. The first rows run always, the others with THOLE_SOAK.
func TestEveryAgent(t *testing.T) {
	bin := node(t)
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	var page struct{ Base string }
	if err := json.Unmarshal([]byte(run(t, h, "login", "--json")), &page); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(run(t, h, "token", "create", "test"))
	todo := rows[:4]
	if os.Getenv("THOLE_SOAK") != "" {
		todo = rows
	}
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			cmd := exec.Command(bin, "agents.mjs")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "THOLE_URL=" + page.Base, "THOLE_TOKEN=" + token, "THOLE_AGENT=" + agent, "THOLE_ROWS=" + strings.Join(todo, ",")}
			cmd.Stderr = t.Output()
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			results := map[string]string{}
			for line := range strings.Lines(string(out)) {
				var row struct{ Name, Wrong string }
				if err := json.Unmarshal([]byte(line), &row); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				results[row.Name] = row.Wrong
			}
			for _, name := range todo {
				wrong, done := results[name]
				why, expected := failing[agent+": "+name]
				switch {
				case !done:
					t.Errorf("%s was not done", name)
				case wrong == "" && expected:
					t.Errorf("%s works now, and is listed as failing because %s: take it out of the list", name, why)
				case wrong != "" && expected:
					t.Logf("%s fails as listed, because %s: %s", name, why, wrong)
				case wrong != "":
					t.Errorf("%s: %s", name, wrong)
				}
			}
		})
	}
}

func run(t *testing.T, h *home.Home, args ...string) string {
	t.Helper()
	out, errs, code := h.Run(args...)
	if code != 0 {
		t.Fatalf("thole %v: %d %s%s", args, code, out, errs)
	}
	return out
}
