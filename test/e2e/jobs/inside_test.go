package jobs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

type job struct {
	ID       string `json:"job_id"`
	Status   string `json:"status"`
	Result   string `json:"result_summary"`
	Artifact string `json:"artifact_id"`
	ExitCode *int64 `json:"exit_code"`
	Thread   string `json:"source_thread_id"`
	Kind     string `json:"task_kind"`
}

// site is a home that is up.
type site struct {
	testing.TB
	*home.Home
}

func (s site) Run(args ...string) (stdout, stderr string, code int) {
	s.Helper()
	return s.Home.Run(args...)
}

func newSite(t *testing.T, vars ...string) site {
	h := home.New(t)
	h.Vars = vars
	h.Up()
	return site{t, h}
}

// json runs a command that prints JSON.
func (s site) json(into any, args ...string) {
	s.Helper()
	out, words, code := s.Run(append([]string{"--json"}, args...)...)
	if code != 0 {
		s.Fatalf("thole %v: exit %d: %s%s", args, code, out, words)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		s.Fatalf("thole %v: %v: %s", args, err, out)
	}
}

// thread starts a thread with the scripted agent and a message.
func (s site) thread(message string) string {
	s.Helper()
	out, words, code := s.Run("thread", "start", "--model", "test/default", "--profile", "full", message)
	if code != 0 {
		s.Fatalf("exit %d: %s%s", code, out, words)
	}
	return strings.Fields(out)[1]
}

func (s site) job(id string) (j job) {
	s.Helper()
	s.json(&j, "job", "query", id)
	return j
}

func (s site) shown(thread string) string {
	s.Helper()
	out, words, code := s.Run("thread", "show", thread)
	if code != 0 {
		s.Fatal(words)
	}
	return out
}

// gate is a file by which a command in a box, which sees none of this machine's, is let go:
// it lies in the workspace, which the machine sees.
func (s site) workspace() string {
	s.Helper()
	found, err := filepath.Glob(filepath.Join(s.Dir, "x", "*", "workspace"))
	if err != nil || len(found) != 1 {
		s.Fatalf("workspaces %v: %v", found, err)
	}
	return found[0]
}

func (s site) touch(path string) {
	s.Helper()
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		s.Fatal(err)
	}
}

func (s site) until(what string, ok func() bool) {
	s.Helper()
	poll.Until(s.TB, what, ok)
}

// A command runs in the thread's box on the agent's files, also when no executor runs;
// what it says and how it ended is its result, and its files are the agent's.
func TestInThread(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	thread := s.thread("sim: write from-agent.txt hello")
	if _, words, code := s.Run("thread", "close", thread); code != 0 {
		t.Fatal(words)
	}
	out, words, code := s.Run("job", "run", "--in-thread", "--thread-id", thread, "--wait", "--", "sh", "-c", "pwd; cat from-agent.txt; echo from-job > from-job.txt; echo err >&2; exit 3")
	if code != 3 || !strings.Contains(out, "exit status 3") {
		t.Fatalf("exit %d: %s%s", code, out, words)
	}
	s.until("the turn of the result", func() bool { return strings.Contains(s.shown(thread), "exit status 3") })
	shown := s.shown(thread)
	for _, want := range []string{"/workspace", "hello", "err"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in the result:\n%s", want, shown)
		}
	}
	if out, words, code := s.Run("thread", "send", thread, "sim: run cat from-job.txt"); code != 0 || !strings.Contains(out, "from-job") {
		t.Errorf("the agent does not see the job's file: exit %d: %s%s", code, out, words)
	}
	if out, _, code := s.Run("job", "run", "--in-thread", "--thread-id", thread, "--wait", "--timeout", "300ms", "--", "sleep", "600"); code != 9 || !strings.Contains(out, "timed out after 300ms") {
		t.Errorf("a command that is too slow: exit %d: %s", code, out)
	}
	var running job
	s.json(&running, "job", "run", "--in-thread", "--thread-id", thread, "--", "sh", "-c", "touch begun; sleep 600")
	s.until("the command to begin", func() bool { _, err := os.Stat(filepath.Join(s.workspace(), "begun")); return err == nil })
	for _, verb := range []string{"complete", "fail"} {
		if _, words, code := s.Run("job", verb, "--job-id", running.ID); code == 0 || !strings.Contains(words, "job cancel") {
			t.Errorf("job %s of a command that runs: exit %d: %s", verb, code, words)
		}
	}
	if _, words, code := s.Run("job", "cancel", "--job-id", running.ID); code != 0 {
		t.Fatal(words)
	}
	s.until("the command to end", func() bool {
		out, _, _ := s.Run("thread", "send", thread, "sim: run pgrep -c -x sleep")
		return strings.Contains(out, "0")
	})
	for name, args := range map[string][]string{
		"thole thread list": {"job", "run", "--in-thread", "--thread-id", "00000000-0000-7000-8000-00000000000a", "--", "true"},
		"--target thole":    {"job", "run", "--in-thread", "--target", "desktop", "--thread-id", "t", "--", "true"},
	} {
		if _, words, code := s.Run(args...); code == 0 || !strings.Contains(words, name) {
			t.Errorf("%v: exit %d: %s", args, code, words)
		}
	}
	if out, words, code := s.Run("check"); code != 0 {
		t.Errorf("check: %s%s", out, words)
	}
}

// The command outlives the owner of the home, which is killed; its successor reads on.
// It does not outlive its executor, and then its job fails and says so.
func TestInThreadOutlivesTheOwner(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	kill := h.Up()
	s := site{t, h}
	thread := s.thread("sim: say hello")
	begin := func(mark string) string {
		var j job
		s.json(&j, "job", "run", "--in-thread", "--thread-id", thread, "--", "sh", "-c", "echo before; touch begun-"+mark+"; while [ ! -e go-"+mark+" ]; do sleep 0.05; done; echo after")
		s.until("the command to begin", func() bool { _, err := os.Stat(filepath.Join(s.workspace(), "begun-"+mark)); return err == nil })
		return j.ID
	}
	id := begin("a")
	kill()
	h.Up()
	s.touch(filepath.Join(s.workspace(), "go-a"))
	out, words, code := s.Run("job", "wait", id, "--timeout", "50s")
	if code != 0 || !strings.Contains(out, "exit status 0") {
		t.Fatalf("exit %d: %s%s", code, out, words)
	}
	s.until("the turn of the result", func() bool { return strings.Contains(s.shown(thread), "before\n  | after") })

	id = begin("b")
	if _, words, code := s.Run("thread", "close", thread); code != 0 {
		t.Fatal(words)
	}
	if out, _, code := s.Run("job", "wait", id, "--timeout", "50s"); code != 9 || !strings.Contains(out, "the executor was stopped while the command ran") {
		t.Errorf("exit %d: %s", code, out)
	}
	if j := s.job(id); j.Status != "failed" || j.Artifact == "" {
		t.Errorf("%+v", j)
	}
}
