package up

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// Where no agent can run, thole says so when it starts and not at the first turn.
func TestUpSaysThatNoTurnCanRun(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	h.Vars = []string{"PATH=" + t.TempDir()} // without bubblewrap
	cmd := h.Command("up", "--demo", "--no-browser", "--listen", "127.0.0.1:0")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	var said []string
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "no turn can run") {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if last := said[len(said)-1]; !strings.Contains(last, "no turn can run") || !strings.Contains(last, "install bubblewrap") {
		t.Errorf("it said %q", said)
	}
}

// A mistake is answered with what to do next, and what was typed is shown again in
// the words of the one who typed it.
func TestWhatToDoNext(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	h.Up()
	file := filepath.Join(h.Dir, "a-file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, words, code := h.Run("thread", "start", "sim: say hello")
	if code != 0 {
		t.Fatal(words)
	}
	thread := strings.Fields(out)[1]
	for try, args := range map[string][]string{
		"thole thread list": {"thread", "show", "none"},
		"thread list":       {"thread", "network", "00000000-0000-7000-8000-00000000000a"},
		"list shows the":    {"thread", "send", "00000000-0000-7000-8000-00000000000a", "hello"},
		"thole login list":  {"login", "revoke", "none"},
		"thole token list":  {"token", "revoke", "none"},
		"sh -c":             {"job", "run", "--thread-id", thread, "--", "no-such-program"},
		"--home or":         {"thread", "list", "--home", file},
		"with --home":       {"thread", "list", "--home", filepath.Join(file, "below")},
	} {
		if _, words, code := h.Run(args...); code == 0 || !strings.Contains(words, "\n  try: ") || !strings.Contains(words, try) {
			t.Errorf("thole %s: exit %d: %s", strings.Join(args, " "), code, words)
		}
	}
	if words, _, code := h.Run("thread", "interrupt", thread); code != 0 || !strings.Contains(words, "no turn is running") {
		t.Errorf("interrupt of an idle thread: exit %d: %s", code, words)
	}
	if _, words, code := h.Run("job", "run", "--wait", "--thread-id", thread, "--summary", "unit tests", "--", "true"); code != 0 {
		t.Fatal(words)
	}
	if out, _, _ := h.Run("job", "list"); !strings.Contains(out, "unit tests: exit status 0") {
		t.Errorf("job list:\n%s", out)
	}
	if out, words, code := h.Run("thread", "start", "--profile", "full", "sim: fail 400 no"); code == 0 {
		t.Errorf("%s%s", out, words)
	} else if out, _, _ := h.Run("thread", "show", strings.Fields(out)[1]); !strings.Contains(out, ", failed\n") {
		t.Errorf("thread show:\n%s", out)
	}
}

// Who never ran codex can open a session: its home is made, as codex itself does.
// A home that CODEX_HOME names and that is not there is a mistake.
func TestTheFirstCodexSession(t *testing.T) {
	t.Parallel()
	codex := lab.Codex(t)
	h := home.New(t)
	h.Up()
	// There is no terminal here, so codex itself refuses: its server ran.
	if _, words, _ := h.Run("codex", "run", "--new-thread", "--codex", codex); strings.Contains(words, "did not start") || !strings.Contains(words, "terminal") {
		t.Errorf("without a home: %s", words)
	}
	named := filepath.Join(h.Dir, "named")
	h.Vars = []string{"CODEX_HOME=" + named}
	_, words, code := h.Run("codex", "run", "--new-thread", "--codex", codex)
	if code != 7 || !strings.Contains(words, named) || !strings.Contains(words, "unset CODEX_HOME") {
		t.Errorf("a home that is not there: exit %d: %s", code, words)
	}
}
