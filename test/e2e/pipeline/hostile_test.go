package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/memory"
	"github.com/tholehq/thole/internal/testkit/usurper"
)

// Whatever an executord says that its agent has taken over in the middle of a turn,
// the owner holds at most 64 MiB more, another thread's turns run to their ends and are
// nobody else's, the turn ends by itself or when a person says so, and the program ends
// at a signal. With THOLE_SOAK=1 in every way that we know.
func TestTheOwnerOfAHostileExecutord(t *testing.T) {
	type way struct{ how, outcome, code string }
	ways := []way{{"endless line", "failed", "executor_limit"}}
	if os.Getenv("THOLE_SOAK") != "" {
		ways = append(ways, []way{
			{"many events", "failed", "executor_limit"}, {"future cursor", "failed", "executor_limit"},
			{"wrong ids", "failed", ""}, {"tree bomb", "completed", ""},
			// These could be an executord that has a bad day: only a person ends them.
			{"redirect", "interrupted", ""}, {"huge headers", "interrupted", ""}, {"drip", "interrupted", ""},
		}...)
	}
	for _, way := range ways {
		t.Run(way.how, func(t *testing.T) {
			r := newRig(t)
			r.begin(t)
			other, victim := r.session(t, "test"), r.session(t, "test")
			first := other.start("sim: say warm", "")
			other.settle(first, "completed")
			run := victim.start("sim: run echo begun ;; hang", "")
			victim.shows(run, command("begun"))
			info, ok := r.executor(t, victim.id)
			if !ok {
				t.Fatal("no executor runs")
			}
			pid := r.cmd.Process.Pid
			before := memory.PeakOf(t, pid, true)
			usurper.Usurper{How: way.how, Socket: strings.TrimPrefix(info.Endpoint, "unix:"), Boot: info.Boot, Executor: info.ID, Elsewhere: "http://127.0.0.1:1/", Turn: first, Thread: other.id}.Start(t)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			r.killThose(t, info, func(proc string) bool { exe, _ := os.Readlink(filepath.Join(proc, "exe")); return exe != self })
			for range 5 {
				if said := other.play("sim: run echo $((40+2))"); !strings.Contains(said, "42") {
					t.Errorf("the other thread said %q", said)
				}
			}
			if way.outcome == "interrupted" {
				victim.call(t, "POST", "/runs/"+run+"/cancel", nil, nil)
			}
			for i := 0; way.how == "many events" && i < 10 && victim.get(run).Outcome == ""; i++ {
				_ = other.play("sim: run sleep 60") // two million take minutes, and others go on meanwhile
			}
			got := victim.settle(run, way.outcome)
			if code := ""; way.code != "" {
				if got.Error != nil {
					code = got.Error.Code
				}
				if code != way.code {
					t.Errorf("the turn ended with %+v", got.Error)
				}
			}
			if now := other.get(first); now.Outcome != "completed" || strings.Contains(other.said(first), "forged") {
				t.Errorf("the other thread's turn is now %+v and says %q", now, other.said(first))
			}
			if way.how == "tree bomb" {
				r.explode(t, victim.id)
			}
			grew := memory.PeakOf(t, pid, false) - before
			if grew > 64<<10 {
				t.Errorf("the owner took %d MiB", grew>>10)
			}
			t.Logf("the owner took %d MiB", grew>>10)
			r.stop()
			if status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signaled() {
				t.Errorf("thole up had to be killed: %s", r.cmd.ProcessState)
			}
		})
	}
}

// explode has the owner read the tree that an executor stored: to write its files out,
// and to save those that the executor left when it stops.
func (r *rig) explode(t *testing.T, thread string) {
	t.Helper()
	if said := r.says(t, "workspace", "export", thread, filepath.Join(t.TempDir(), "out"), "--no-wait"); !strings.Contains(said, "249000 more") {
		t.Errorf("thole workspace export says %.500q", said)
	}
	if said := r.says(t, "thread", "close", thread, "--wait"); strings.Contains(said, "error") {
		t.Errorf("thole thread close says %.500q", said)
	}
}
