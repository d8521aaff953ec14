package commands_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// must runs a command that succeeds, or ends with the code that is given.
func must(t *testing.T, h *home.Home, want int, args ...string) (out, errs string) {
	t.Helper()
	out, errs, code := h.Run(args...)
	if code != want {
		t.Fatalf("thole %s: exit %d, want %d: %s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out, errs
}

// A job's ending may be reported twice: the same is no error, another one is a conflict
// that says what is there.
func TestJobEndsOnce(t *testing.T) {
	h := home.New(t)
	thread, _ := must(t, h, 0, "thread", "start", "--empty", "-q")
	job, _ := must(t, h, 0, "job", "submit", "--thread-id", strings.TrimSpace(thread), "-q")
	id := strings.TrimSpace(job)
	file := filepath.Join(t.TempDir(), "report.txt")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("412 passed")
	first, _ := must(t, h, 0, "--json", "job", "complete", id, "--summary", "green", "--result-file", file)
	again, _ := must(t, h, 0, "--json", "job", "complete", "--job-id", id, "--summary", "green", "--result-file", file)
	artifact := func(text string) string {
		var j struct {
			ID string `json:"artifact_id"`
		}
		if err := json.Unmarshal([]byte(text), &j); err != nil || j.ID == "" {
			t.Fatalf("%v %s", err, text)
		}
		return j.ID
	}
	if artifact(first) != artifact(again) {
		t.Errorf("a repeat made another artifact: %s%s", first, again)
	}
	write("411 passed")
	for differs, args := range map[string][]string{
		"another result file": {"job", "complete", id, "--summary", "green", "--result-file", file},
		`the summary "green"`: {"job", "complete", id, "--summary", "red", "--result-file", file},
		"with a result file":  {"job", "complete", id, "--summary", "green"},
		"not failed":          {"job", "fail", id, "--reason", "green"},
	} {
		if _, errs := must(t, h, 4, args...); !strings.Contains(errs, "already ready, ") || !strings.Contains(errs, differs) || !strings.Contains(errs, "try: thole job query "+id) {
			t.Errorf("%v: %s", args, errs)
		}
	}
}

// batch inspect is what the README types: without an id it shows what is held.
func TestBatchInspectWithoutAnID(t *testing.T) {
	h := home.New(t)
	if out, _ := must(t, h, 0, "batch", "inspect"); !strings.Contains(out, "no batch waits for a human") {
		t.Error(out)
	}
	// Nothing delivers into a desktop here, so the batches are held; one is closed again.
	for _, thread := range []string{"one", "two", "three"} {
		job, _ := must(t, h, 0, "job", "submit", "--target", "desktop", "--thread-id", thread, "-q")
		must(t, h, 0, "job", "complete", strings.TrimSpace(job), "--summary", "result of "+thread)
	}
	poll.Until(t, "three held batches", func() bool {
		out, _ := must(t, h, 0, "batch", "list", "--held", "--json")
		return strings.Count(out, `"no_channel"`) == 3
	})
	var held []struct {
		ID     string   `json:"batch_id"`
		Thread string   `json:"source_thread_id"`
		Next   []string `json:"next"`
	}
	inspect := func(want int) {
		t.Helper()
		held = nil
		out, _ := must(t, h, 0, "batch", "inspect", "--json")
		if err := json.Unmarshal([]byte(out), &held); err != nil || len(held) != want {
			t.Fatalf("%v: %s", err, out)
		}
	}
	// They stand before nothing, so none is a head: they are named, as what to do next says.
	if _, errs := must(t, h, 3, "batch", "close-head", "three", "--reason", "operator_closed_unconfirmed"); !strings.Contains(errs, "--batch-id") {
		t.Error(errs)
	}
	inspect(3)
	for _, b := range held {
		if b.Thread == "three" {
			must(t, h, 0, "batch", "close-head", "three", "--batch-id", b.ID, "--reason", "operator_closed_unconfirmed")
		}
	}
	inspect(2)
	all, _ := must(t, h, 0, "batch", "inspect")
	for _, b := range held {
		one, _ := must(t, h, 0, "batch", "inspect", b.ID)
		if !strings.Contains(all, one) || !strings.Contains(one, "result of "+b.Thread) || !strings.Contains(one, "thole batch deliver "+b.ID) {
			t.Errorf("%s is shown as\n%s\namong\n%s", b.ID, one, all)
		}
	}
	if strings.Contains(all, "result of three") {
		t.Error(all)
	}
}

func TestTokenRevokeByName(t *testing.T) {
	h := home.New(t)
	secret, _ := must(t, h, 0, "token", "create", "ci", "-q")
	if !strings.HasPrefix(secret, "thole_") {
		t.Errorf("-q hides the token: %s", secret)
	}
	must(t, h, 0, "token", "create", "two")
	must(t, h, 0, "token", "create", "two")
	if _, errs := must(t, h, 4, "token", "revoke", "two"); strings.Count(errs, "-") < 8 {
		t.Errorf("two of a name: %s", errs)
	}
	if _, errs := must(t, h, 3, "token", "revoke", "cj"); !strings.Contains(errs, "did you mean ci?") {
		t.Error(errs)
	}
	if out, _ := must(t, h, 0, "token", "revoke", "ci"); !strings.HasPrefix(out, "revoked ci, ") {
		t.Error(out)
	}
	must(t, h, 3, "token", "revoke", "ci")
}

// What cannot be is refused before anything starts, with what was meant.
func TestRefusedBeforeAnythingStarts(t *testing.T) {
	h := home.New(t)
	for _, c := range []struct {
		variable, want string
		args           []string
	}{
		{"THOLE_HTPP_LISTEN=127.0.0.1:0", "did you mean THOLE_HTTP_LISTEN?", []string{"up", "--no-browser"}},
		{"", `invalid port "99999"`, []string{"up", "--no-browser", "--listen", "127.0.0.1:99999"}},
		{"", `invalid port "abc"`, []string{"demo-model", "--listen", "127.0.0.1:abc"}},
	} {
		h.Vars = nil
		if c.variable != "" {
			h.Vars = []string{c.variable}
		}
		if out, errs := must(t, h, 2, c.args...); !strings.Contains(errs, c.want) || strings.Contains(out+errs, "starting thole") {
			t.Errorf("%v: %s%s", c.args, out, errs)
		}
	}
	if left, _ := os.ReadDir(h.Dir); len(left) > 0 {
		t.Errorf("the home has %v", left)
	}
}

// Without an agent the first run says so before anything is made, with how to get one.
func TestFirstRunWithoutAnAgent(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
	for _, args := range [][]string{{"run", "--empty", "hello"}, {"thread", "start", "--empty", "hello"}} {
		_, errs := must(t, h, 7, args...)
		for _, want := range []string{"no agent on this machine", "nothing was made", "@openai/codex", "@anthropic-ai/claude-code", "opencode-ai", "thole up --demo"} {
			if !strings.Contains(errs, want) {
				t.Errorf("%v does not say %q: %s", args, want, errs)
			}
		}
	}
	if left, _ := os.ReadDir(h.Dir); len(left) > 0 {
		t.Errorf("the home has %v", left)
	}
	if _, errs := must(t, h, 7, "provider", "list"); !strings.Contains(errs, "no agent is installed") {
		t.Error(errs)
	}
	if out, errs := must(t, h, 7, "doctor"); !strings.Contains(errs, "thole: agents: no agent is installed") || !strings.Contains(out, "\noptional agent ") || !strings.Contains(out, "\nmissing  agents ") {
		t.Errorf("%s%s", out, errs)
	}
}

// thole up without an agent serves the page, and says first that no turn can run; messages
// to it are refused before a thread or a branch is made.
func TestUpWithoutAnAgent(t *testing.T) {
	h := home.New(t)
	h.Vars = []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
	cmd := h.Command("up", "--no-browser", "--listen", "127.0.0.1:0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "thole is up"); {
	}
	if _, said := must(t, h, 7, "run", "--empty", "hello"); !strings.Contains(said, "nothing was made") || !strings.Contains(said, "opencode-ai") {
		t.Error(said)
	}
	if list, _ := must(t, h, 0, "-q", "thread", "list"); list != "" {
		t.Errorf("a thread was made: %s", list)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	warned, started := strings.Index(errs.String(), "no turn can run yet"), strings.Index(errs.String(), "starting thole")
	if warned < 0 || warned > started || !strings.Contains(errs.String(), "@openai/codex") {
		t.Errorf("it said %s", errs.String())
	}
}

func TestUnknownAgentOfAModel(t *testing.T) {
	h := home.New(t)
	for _, args := range [][]string{{"run", "--model", "foo/bar", "hello"}, {"thread", "start", "--empty", "--model", "foo/bar"}, {"acp", "--model", "foo/bar"}} {
		if _, errs := must(t, h, 2, args...); !strings.Contains(errs, `unknown agent "foo"`) || !strings.Contains(errs, "claude/") || !strings.Contains(errs, "codex/foo/bar") {
			t.Errorf("%v: %s", args, errs)
		}
	}
	if left, _ := os.ReadDir(h.Dir); len(left) > 0 {
		t.Errorf("the home has %v", left)
	}
}
