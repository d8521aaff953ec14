package smoke

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// prompt makes the model think, speak, run two commands at once, write, read and
// edit a file, keep a todo list and end with the last tool's result.
const prompt = `Do the scripted work.
sim: think weigh it ;; say Looking. ;; run echo first-$((40+2)) ;; and run echo second
sim: write notes.txt one\ntwo ;; read notes.txt ;; edit notes.txt two => three ;; todo [x] look | [~] write | rest ;; say All done, last result: %tool%`

const steps = 6

func TestCodexCompletesATurnOffline(t *testing.T) {
	bin, sim := lab.Codex(t), modelsim.Start(t)
	home, work := dirs(t)
	codexHome := filepath.Join(home, "codex")
	if err := modelsim.CodexConfig(codexHome, sim.URL()); err != nil {
		t.Fatal(err)
	}
	out := run(t, home, work, []string{"CODEX_HOME=" + codexHome},
		bin, "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt)
	check(t, sim, work, out, "turn.completed", "file_change", "todo_list", "first-42", "second", "All done")
}

func TestClaudeCompletesATurnOffline(t *testing.T) { claudeTurn(t, lab.Claude(t)) }

func TestOldClaudeCompletesATurnOffline(t *testing.T) { claudeTurn(t, lab.ClaudeOld(t)) }

func claudeTurn(t *testing.T, bin string) {
	sim := modelsim.Start(t)
	home, work := dirs(t)
	env := append(modelsim.ClaudeEnv(sim.URL()), "IS_SANDBOX=1", "CLAUDE_CODE_ENABLE_TASKS=0", "CLAUDE_CONFIG_DIR="+filepath.Join(home, "claude"))
	out := run(t, home, work, env, bin, "--print", "--output-format", "stream-json", "--verbose",
		"--model", modelsim.ClaudeModel, "--permission-mode", "bypassPermissions", prompt)
	check(t, sim, work, out, `"tool_result"`, "TodoWrite", "first-42", "second", "All done")
	var last struct {
		Type    string `json:"type"`
		IsError bool   `json:"is_error"`
		Result  string `json:"result"`
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatalf("last line: %v\n%s", err, out)
	}
	if last.Type != "result" || last.IsError || !strings.HasPrefix(last.Result, "All done") {
		t.Fatalf("ended with %+v", last)
	}
}

func TestOpencodeCompletesATurnOffline(t *testing.T) {
	bin, sim := lab.Opencode(t), modelsim.Start(t)
	home, work := dirs(t)
	out := run(t, home, work, modelsim.OpencodeEnv(sim.URL()), bin, "run", "--format", "json", prompt)
	check(t, sim, work, out, `"reason":"stop"`, "todowrite", "first-42", "second", "All done")
}

func TestRetriesEndInSuccess(t *testing.T) {
	bin, sim := lab.Codex(t), modelsim.Start(t)
	home, work := dirs(t)
	codexHome := filepath.Join(home, "codex")
	if err := modelsim.CodexConfig(codexHome, sim.URL()); err != nil {
		t.Fatal(err)
	}
	out := run(t, home, work, []string{"CODEX_HOME=" + codexHome}, bin, "exec", "--json", "--skip-git-repo-check",
		"sim: cut x1 ;; say this answer is long enough to be cut in the middle of it")
	if got := len(sim.Turns()); got != 2 {
		t.Errorf("the model was asked %d times, want a retry after the cut:\n%s", got, out)
	}
	if !strings.Contains(out, "turn.completed") {
		t.Errorf("the turn did not complete:\n%s", out)
	}
}

func dirs(t *testing.T) (home, work string) {
	t.Helper()
	home = t.TempDir()
	work = filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	return home, work
}

// run starts a CLI in a process group of its own and ends the whole group.
func run(t *testing.T, home, work string, env []string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = work
	cmd.Env = append(env, "HOME="+home, "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", filepath.Base(argv[0]), err, out.String(), errs.String())
	}
	return out.String()
}

func check(t *testing.T, sim *modelsim.Sim, work, out string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("the output lacks %q", w)
		}
	}
	if got, err := os.ReadFile(filepath.Join(work, "notes.txt")); err != nil || strings.TrimSpace(string(got)) != "one\nthree" {
		t.Errorf("notes.txt holds %q, %v", got, err)
	}
	for i, r := range sim.Turns() {
		if r.Step != i {
			t.Errorf("request %d was answered with step %d", i, r.Step)
		}
	}
	if got := len(sim.Turns()); got != steps {
		t.Errorf("the model was asked %d times, want %d", got, steps)
	}
	if conversations := sim.Conversations(); len(conversations) != 1 {
		t.Errorf("one turn looks like %d conversations: %v", len(conversations), conversations)
	}
	if t.Failed() {
		t.Log(out)
	}
}
