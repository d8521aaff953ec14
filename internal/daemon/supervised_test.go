package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/testkit/forks"
	"github.com/tholehq/thole/internal/testkit/poll"
)

func TestRunSupervised(t *testing.T) {
	s := newSite(t)
	t.Run("exit status and output", func(t *testing.T) {
		out, errs, code := s.run("job", "run", "--target", "desktop", "--thread-id", "t", "--wait", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
		var j []wire.Job
		if code != 7 || json.Unmarshal([]byte(out), &j) != nil || j[0].Status != "failed" || j[0].ExitCode == nil || *j[0].ExitCode != 7 {
			t.Fatalf("exit %d: %s %s", code, out, errs)
		}
		if text, _, _ := s.run("artifact", "read", "--artifact-id", j[0].ArtifactID); text != "out\nerr\n" {
			t.Errorf("captured %q", text)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		out, _, _ := s.run("job", "run", "--target", "desktop", "--thread-id", "t", "--wait", "--timeout", "200ms", "--", "sleep", "600")
		if !strings.Contains(out, "timed out") {
			t.Errorf("%s", out)
		}
	})
	t.Run("no such command", func(t *testing.T) {
		if _, errs, code := s.run("job", "run", "--target", "desktop", "--thread-id", "t", "--", "/no/such"); code != 2 {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
	t.Run("cancel kills every descendant", func(t *testing.T) {
		pids := filepath.Join(t.TempDir(), "pids")
		script := fmt.Sprintf(`echo $$ >> %[1]s; (setsid sh -c 'echo $$ >> %[1]s; trap "" TERM; while :; do sleep 1; done' &) ; sleep 600`, pids)
		var r wire.Submitted
		s.must(&r, "job", "run", "--target", "desktop", "--thread-id", "t", "--", "sh", "-c", script)
		var lines []string
		poll.Until(t, "both processes run", func() bool {
			b, _ := os.ReadFile(pids)
			lines = strings.Fields(string(b))
			return len(lines) == 2
		})
		s.must(nil, "job", "cancel", "--job-id", r.JobID)
		for _, p := range lines {
			poll.Until(t, "process "+p+" is gone", func() bool {
				b, err := os.ReadFile("/proc/" + p + "/stat")
				return err != nil || strings.Contains(string(b), ") Z ")
			})
		}
	})
	t.Run("cancel ends a chain of forks", func(t *testing.T) {
		chain := forks.New(t)
		var r wire.Submitted
		s.must(&r, "job", "run", "--target", "desktop", "--thread-id", "t", "--", "sh", "-c", chain.Command()+" sleep 600")
		chain.Await(t)
		s.must(nil, "job", "cancel", "--job-id", r.JobID)
		poll.Until(t, "the supervisor has ended it", func() bool {
			_, err := os.Stat(filepath.Join(s.home, "run", r.JobID+".json"))
			return err != nil
		})
		chain.Gone(t)
	})
	for _, successor := range [][]string{{"daemon", "run", "--takeover", "--home", s.home}, {"up", "--no-browser", "--listen", "127.0.0.1:0"}} {
		t.Run("outlives the daemon, succeeded by "+successor[0], func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			var r wire.Submitted
			s.must(&r, "job", "run", "--target", "desktop", "--thread-id", "t", "--", "sh", "-c", "while [ ! -e "+gate+" ]; do sleep 0.05; done; echo done")
			var after wire.Status
			s.must(nil, "daemon", "status")
			cmd := s.command(successor...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go func() { _ = cmd.Wait() }()
			poll.Until(t, "the successor owns the home", func() bool {
				out, _, code := s.run("daemon", "status", "--json")
				return code == 0 && json.Unmarshal([]byte(out), &after) == nil && after.PID == cmd.Process.Pid
			})
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out, _, code := s.run("job", "wait", r.JobID, "--timeout", "60s")
			if code != 0 || !strings.Contains(out, "ready") {
				t.Errorf("exit %d: %s", code, out)
			}
		})
	}
	t.Run("supervisor killed", func(t *testing.T) {
		var r wire.Submitted
		s.must(&r, "job", "run", "--target", "desktop", "--thread-id", "t", "--", "sleep", "300")
		var id struct{ PID int }
		b, err := os.ReadFile(filepath.Join(s.home, "run", r.JobID+".json"))
		if err != nil || json.Unmarshal(b, &id) != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.must(nil, "daemon", "stop") // the next start sweeps first
		var j wire.Job
		s.must(&j, "job", "query", r.JobID)
		if j.Status != "failed" || !strings.Contains(j.ResultSummary, "supervisor") {
			t.Errorf("%s: %s", j.Status, j.ResultSummary)
		}
	})
	s.must(nil, "check")
}
