package channel

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// A job for a thread that does not exist is refused with the command that lists threads.
// A result whose thread was deleted meanwhile is held.
func TestUnknownOwnThreadIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var th struct{ Thread struct{ ID string } }
	d.up()
	d.thole(&th, "thread", "start")
	for _, id := range []string{"01a1dd87-43ed-7176-ad96-f0dfb0acb3e3", "none"} {
		if words, err := d.try("job", "submit", "--target", "thole", "--thread-id", id); err == nil || !strings.Contains(words, "thole thread list") {
			t.Errorf("thread %s: %v: %s", id, err, words)
		}
	}
	var j struct {
		JobID string `json:"job_id"`
	}
	d.thole(&j, "job", "submit", "--target", "thole", "--thread-id", th.Thread.ID)
	d.thole(nil, "thread", "delete", "--yes", th.Thread.ID)
	if words, err := d.try("job", "submit", "--target", "thole", "--thread-id", th.Thread.ID); err == nil {
		t.Errorf("a deleted thread: %s", words)
	}
	d.thole(nil, "job", "complete", "--job-id", j.JobID, "--summary", "done")
	b := d.fate()
	if b.HeldFor != "no_thread" || b.Attempts != 0 {
		t.Errorf("%+v", b)
	}
	// What inspect-head says to type ends it.
	d.thole(&b, "batch", "inspect-head", "--source-thread-id", b.Thread)
	if len(b.Next) != 3 || !strings.Contains(b.Next[0], "job query "+j.JobID) || !strings.Contains(b.Next[1], "batch deliver") {
		t.Fatalf("next: %q", b.Next)
	}
	for _, line := range b.Next {
		command, _, _ := strings.Cut(line, "#")
		if out, err := exec.Command("env", append(append([]string{"-i"}, d.env()...), "sh", "-c", binary+strings.TrimPrefix(command, "thole"))...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
	if b = d.fate(); b.CloseReason != "operator_closed_unconfirmed" {
		t.Errorf("%+v", b)
	}
}

// A thread of thole's own, whichever agent runs it: a job ends elsewhere, and its
// result is one turn that the agent answered.
func TestResultReachesOwnThreadsOfEachAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.up("THOLE_PROVIDERS_CODEX="+d.codex, "THOLE_PROVIDERS_CLAUDE="+lab.Claude(t), "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(t))
	threads := map[string]string{}
	for agent, model := range map[string]string{"codex": "", "claude": "claude/default", "opencode": "opencode/default"} {
		var th struct{ Thread struct{ ID string } }
		d.thole(&th, "thread", "start", "--model", model)
		d.job("thole", th.Thread.ID, "sim: say the result was read by "+agent)
		threads[agent] = th.Thread.ID
	}
	for agent, id := range threads {
		var all []batch
		d.until("the result for "+agent, func() bool {
			all = nil
			d.thole(&all, "batch", "list", "--source-thread-id", id)
			return len(all) == 1 && (all[0].CloseReason != "" || all[0].HeldFor != "")
		})
		if all[0].CloseReason != "delivered" || all[0].Attempts != 1 {
			t.Errorf("%s: %+v", agent, all[0])
		}
		var shown struct{ Turns []struct{ Status string } }
		d.thole(&shown, "thread", "show", id)
		text, err := d.try("thread", "show", id)
		if err != nil || len(shown.Turns) != 1 || shown.Turns[0].Status != "completed" || !strings.Contains(text, "the result was read by "+agent) {
			t.Errorf("%s: %+v, %v: %s", agent, shown, err, text)
		}
	}
}

// up owns the home with the scripted model for every agent.
func (d *desk) up(settings ...string) {
	d.t.Helper()
	cmd := exec.Command(binary, "up", "--demo", "--no-browser", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Dir = append(d.env(), settings...), d.path("work")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		driver := local.New(local.Config{Root: d.path("thole", "x"), Binary: binary})
		list, err := driver.List(context.Background())
		if err != nil {
			d.t.Log(err)
		}
		for _, x := range list {
			if err := driver.Remove(context.Background(), x.ID); err != nil {
				d.t.Error(err)
			}
		}
	})
	d.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		if d.t.Failed() {
			d.t.Logf("thole up said:\n%s", said.String())
		}
	})
	d.until("thole up", func() bool {
		_, err := os.Stat(daemon.Socket(d.path("thole")))
		return err == nil
	})
}
