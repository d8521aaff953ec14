package acp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a home that is up, with the agents on the scripted model, and a directory of its
// user.
type rig struct {
	*home.Home
	kill func() // ends the owner without a warning
	dir  string
}

func newRig(t testing.TB, agents ...string) *rig {
	t.Helper()
	lab.Bwrap(t)
	r := &rig{Home: home.New(t), dir: filepath.Join(lab.Open(t), "project")}
	for _, name := range agents {
		path := map[string]func(testing.TB) string{"codex": lab.Codex, "claude": lab.Claude, "opencode": lab.Opencode}[name](t)
		r.Vars = append(r.Vars, config.Variable("providers."+name)+"="+path)
	}
	r.kill = r.Up()
	if err := os.MkdirAll(r.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.dir, 0o777); err != nil { // agents of root are other users
		t.Fatal(err)
	}
	for _, agent := range []string{"codex", "claude", "opencode"} {
		file := filepath.Join(r.dir, agent+".txt")
		if err := os.WriteFile(file, []byte(begun), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// begun is what each agent's file has at first.
const begun = "one\ntwo\nthree\n"

// sameDiff compares what an editor makes of the changes that it was shown with the file, and
// thole thread diff with what git says of both.
func (r *rig) sameDiff(t *testing.T, thread, name, shown string) {
	t.Helper()
	if is, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(is) != shown {
		t.Errorf("the editor shows %q, the file has %q, %v", shown, is, err)
	}
	was := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(was, []byte(begun), 0o644); err != nil {
		t.Fatal(err)
	}
	git := exec.Command("git", "diff", "--no-index", "--", was, filepath.Join(r.dir, name))
	git.Env = r.Env()
	plain, err := git.Output()
	if git.ProcessState.ExitCode() != 1 { // they differ
		t.Fatalf("git diff: %v", err)
	}
	out, errs, code := r.Run("thread", "diff", thread, name)
	_, want, _ := strings.Cut(string(plain), "\n@@ ")
	if _, got, _ := strings.Cut(out, "\n@@ "); code != 0 || got == "" || got != want {
		t.Errorf("thread diff has %q %s, git says %q", got, errs, want)
	}
}

// acp is thole acp with arguments.
func (r *rig) acp(args ...string) *exec.Cmd { return r.Command(append([]string{"acp"}, args...)...) }

func encoded(v any) []byte {
	raw, _ := json.Marshal(v) // of values that were JSON
	return raw
}

// sameInAnotherWindow loads a session in an editor of its own, which is shown what the
// first was shown.
func (r *rig) sameInAnotherWindow(t *testing.T, e *editor, session string) {
	t.Helper()
	other := open(t, r.acp())
	other.greet(forms)
	listed := false
	for _, s := range other.call("session/list", obj{"cwd": r.dir})["sessions"].([]any) {
		listed = listed || s.(obj)["sessionId"] == session
	}
	if !listed {
		t.Errorf("%s is not listed", session)
	}
	other.call("session/load", obj{"sessionId": session, "cwd": r.dir, "mcpServers": []any{}})
	for _, kind := range []string{"agent_message_chunk", "agent_thought_chunk"} {
		if was, is := e.text(session, kind), other.text(session, kind); was != is {
			t.Errorf("%s of the history is %q, was %q", kind, is, was)
		}
	}
	was, is := e.tools(session), other.tools(session)
	if len(was) != len(is) {
		t.Fatalf("the history has %d tool calls, there were %d", len(is), len(was))
	}
	for i := range was {
		for _, member := range []string{"toolCallId", "title", "kind", "status", "content", "locations", "rawInput", "rawOutput"} {
			if a, b := string(encoded(was[i][member])), string(encoded(is[i][member])); a != b {
				t.Errorf("%s of tool call %d of the history is %s, was %s", member, i, b, a)
			}
		}
	}
	if len(other.of(session, "user_message_chunk")) == 0 {
		t.Error("the history has no message of the user")
	}
}
