package jobs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

func TestToolsOfCodex(t *testing.T) {
	useTools(t, "codex/default", "mcp__thole__", "THOLE_PROVIDERS_CODEX="+lab.Codex(t))
}

func TestToolsOfClaude(t *testing.T) {
	useTools(t, "claude/default", "mcp__thole__", "THOLE_PROVIDERS_CLAUDE="+lab.Claude(t))
}

func TestToolsOfAnOldClaude(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("with THOLE_SOAK")
	}
	useTools(t, "claude/default", "mcp__thole__", "THOLE_PROVIDERS_CLAUDE="+lab.ClaudeOld(t))
}

func TestToolsOfOpencode(t *testing.T) {
	useTools(t, "opencode/default", "thole_", "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(t))
}

// useTools has a real agent run a background job whose result becomes a turn, ask the user
// and read the answer, and start another agent that reports to it. prefix is before the
// names that the CLI gives thole's tools.
func useTools(t *testing.T, model, prefix, variable string) {
	t.Helper()
	t.Parallel()
	s := newSite(t, variable)
	call := func(tool, args string) string {
		return "sim: call " + prefix + tool + " " + args + " ;; say told: %tool%"
	}
	start := func(profile, message string) (thread, out string) {
		t.Helper()
		out, words, code := s.Run("thread", "start", "--model", model, "--profile", profile, message)
		if code != 0 {
			t.Fatalf("exit %d: %s%s", code, out, words)
		}
		return strings.Fields(out)[1], out
	}
	thread, out := start("full", call("job_run", `{"command":"echo the job said so; exit 5"}`))
	if !strings.Contains(out, "told: ") || !strings.Contains(out, " runs. When it has ended") {
		t.Errorf("job_run:\n%s", out)
	}
	s.until("the turn of the result", func() bool { return strings.Contains(s.shown(thread), "the job said so\n") })
	if shown := s.shown(thread); !strings.Contains(shown, "exit status 5") {
		t.Errorf("%s", shown)
	}
	if out, _, _ := s.Run("thread", "send", thread, call("job_status", `{}`)); !strings.Contains(out, "is failed: exit status 5") {
		t.Errorf("job_status:\n%s", out)
	}

	cmd := s.Command("thread", "send", thread, call("ask_user", `{"question":"which color?","options":["red","blue"]}`))
	var said strings.Builder
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ask string
	s.until("the question", func() bool {
		_, after, found := strings.Cut(s.shown(thread), "thole thread answer "+thread+" ")
		if found {
			ask = strings.Fields(after)[0]
		}
		return found
	})
	if _, words, code := s.Run("thread", "answer", thread, ask, "--answer", "q1=blue"); code != 0 {
		t.Fatal(words)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "The user answered: blue") {
		t.Errorf("ask_user: %v\n%s", err, said.String())
	}

	report := strings.ReplaceAll(fmt.Sprintf(`sim: call %sthread_send {"thread_id":%q,"message":"the child found it"}`, prefix, thread), `"`, `\"`)
	if out, _, _ := s.Run("thread", "send", thread, call("thread_start", `{"message":"`+report+`","name":"helper"}`)); !strings.Contains(out, "works on it with") {
		t.Fatalf("thread_start:\n%s", out)
	}
	s.until("the child's report", func() bool { return strings.Contains(s.shown(thread), "which you started, says") })
	if shown := s.shown(thread); !strings.Contains(shown, "the child found it") {
		t.Errorf("%s", shown)
	}
	// Who plans runs no job, also where the agent asks first and a person says yes.
	planned := make(chan string, 1)
	go func() {
		out, _, _ := s.Run("thread", "start", "--model", model, "--profile", "plan", call("job_run", `{"command":"touch planned"}`))
		planned <- out
	}()
	s.until("the end of the plan", func() bool {
		select {
		case out = <-planned:
			return true
		default:
		}
		list, _, _ := s.Run("thread", "list")
		for line := range strings.Lines(list) {
			if strings.Contains(line, "waits for") {
				s.Run("thread", "answer", strings.Fields(line)[0], "--decision", "allow")
			}
		}
		return false
	})
	if strings.Contains(out, " runs. When it has ended") {
		t.Errorf("a job ran in a turn that plans:\n%s", out)
	}
	if out, _, _ := s.Run("job", "list"); strings.Contains(out, "planned") {
		t.Errorf("jobs:\n%s", out)
	}
}
