package gateway_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// A thread is paid with the key of the shell that started it, also where the owner of the
// home has another one. The key is in no file of the home, and the user's own instructions
// are in the same call.
func TestTheKeyOfTheShell(t *testing.T) {
	lab.Bwrap(t)
	sim := modelsim.Start(t)
	h := home.New(t)
	cli, err := filepath.EvalSymlinks(lab.Claude(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.Dir, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Dir, ".claude", "CLAUDE.md"), []byte("WIRE-memory"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := []string{config.Variable("providers.claude") + "=" + cli, "ANTHROPIC_BASE_URL=" + sim.URL(), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	run := func(vars []string, args ...string) string {
		t.Helper()
		h.Vars = vars
		out, errs, code := h.Run(args...)
		if code != 0 {
			t.Fatalf("thole %v: exit %d: %s%s", args, code, out, errs)
		}
		return out
	}
	run(append(own, "ANTHROPIC_API_KEY=sk-of-the-owner"), "thread", "list") // starts the owner
	const key = "sk-of-the-shell-0123456789"
	out := run(append(own, "ANTHROPIC_API_KEY="+key), "run", "--model", "claude/"+modelsim.ClaudeModel, "sim: say hello")
	_, id, _ := strings.Cut(out, "thread ")
	id, _, _ = strings.Cut(id, "\n")
	calls := sim.Turns()
	if len(calls) == 0 {
		t.Fatal("no call reached the model")
	}
	for _, c := range calls {
		if got := c.Header.Get("X-Api-Key"); got != key {
			t.Errorf("a call was paid with %q", got)
		}
	}
	if !bytes.Contains(calls[0].Body, []byte("WIRE-memory")) {
		t.Error("the user's instructions did not reach the model")
	}
	if shown := run(own, "thread", "show", id); !strings.Contains(shown, "variable ANTHROPIC_API_KEY of your shell") || strings.Contains(shown, key) {
		t.Errorf("who pays: %s", shown)
	}
	searched := 0
	_ = filepath.WalkDir(h.Dir, func(path string, e fs.DirEntry, _ error) error { // some files end meanwhile
		if e == nil || !e.Type().IsRegular() {
			return nil
		}
		body, err := os.ReadFile(path)
		if err == nil {
			searched++
		}
		if bytes.Contains(body, []byte(key)) {
			t.Errorf("the key is in %s", path)
		}
		return nil
	})
	if searched < 10 {
		t.Errorf("%d files were searched", searched)
	}
}
