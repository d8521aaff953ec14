package kept

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// A home is copied while turns of every agent run, its owner is killed, and the copy goes
// on in another place: with the history, with the files, with turns that were open, and
// without the logins. THOLE_SOAK=1 does it with all agents, which takes a minute.
func TestBackupGoesOnElsewhere(t *testing.T) {
	agents := map[string]string{ofCodex: "codex"}
	if os.Getenv("THOLE_SOAK") == "1" {
		agents[ofClaude], agents[ofOpencode] = "claude", "opencode"
	}
	u := newUpgrade(t)
	kill := u.Up()
	var writing, running sync.WaitGroup
	for id, agent := range agents {
		writing.Go(func() {
			if out, err := u.Command("thread", "send", id, "sim: run echo of "+agent+" > copied.txt ;; say written").CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", agent, err, out)
			}
		})
	}
	writing.Wait()

	// Turns that are open until the owner is killed, and one thread that has turn after turn.
	dir, stop := t.TempDir(), make(chan struct{})
	for id := range agents {
		running.Go(func() {
			_ = u.Command("thread", "send", id, "sim: run touch begun; while :; do date >> steps.txt; sleep 0.1; done").Run()
		})
	}
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				_ = u.Command("thread", "send", ofTest, fmt.Sprintf("sim: run echo %d >> turns.txt ;; say %d", n, n)).Run()
			}
		}
	})
	poll.Until(t, "open turns of all agents", func() bool {
		begun, err := filepath.Glob(filepath.Join(u.Dir, "x", "*", "workspace", "begun"))
		return err == nil && len(begun) == len(agents)
	})
	var report struct {
		Files  int
		Counts map[string]int64
		Notes  []string
	}
	for i := range 3 {
		u.json(&report, "backup", filepath.Join(dir, fmt.Sprint(i)))
		if report.Files == 0 || report.Counts["threads"] < 5 || report.Counts["turns"] == 0 {
			t.Errorf("report: %+v", report)
		}
	}
	if _, err := os.Stat(filepath.Join(u.Dir, "backup.tmp")); err == nil {
		t.Error("the backup left its directory")
	}
	if _, words, code := u.Run("backup", filepath.Join(dir, "0")); code != 4 || !strings.Contains(words, "already exists") {
		t.Errorf("over a file: exit %d: %s", code, words)
	}
	if _, words, code := u.Run("restore", filepath.Join(dir, "0")); code != 5 || !strings.Contains(words, "thole runs on") {
		t.Errorf("over a running home: exit %d: %s", code, words)
	}
	close(stop)
	kill()
	running.Wait()
	_, _, _ = u.Run("daemon", "stop") // the last message may have started one
	if _, words, code := u.Run("restore", filepath.Join(dir, "0")); code != 4 || !strings.Contains(words, "is in use") {
		t.Errorf("over a home: exit %d: %s", code, words)
	}

	v := &upgrade{t, home.New(t)}
	v.Vars = u.Vars
	var restored struct{ Counts map[string]int64 }
	v.json(&restored, "restore", filepath.Join(dir, "2"))
	if fmt.Sprint(restored.Counts) != fmt.Sprint(report.Counts) {
		t.Errorf("restored %v of %v", restored.Counts, report.Counts)
	}
	v.Up()
	for id, agent := range agents {
		v.thole("thread", "interrupt", id) // it is taken up again, and would never end
		poll.Until(t, "the end of the open turn of "+agent, func() bool {
			var shown struct {
				Thread struct{ Status struct{ Type string } }
			}
			v.json(&shown, "thread", "show", id)
			return shown.Thread.Status.Type == "idle" || shown.Thread.Status.Type == "failed"
		})
		if out := v.thole("thread", "send", id, "sim: run cat copied.txt ;; say it has %tool%"); !strings.Contains(out, "of "+agent) {
			t.Errorf("the next turn of %s: %s", agent, out)
		}
		if out := v.thole("thread", "show", "--turns", "100", id); !strings.Contains(out, "written") || !strings.Contains(out, "kept by "+agent) {
			t.Errorf("the history of %s: %s", agent, out)
		}
	}
	if was, is := u.thole("token", "list"), v.thole("token", "list"); !strings.Contains(was, "kept") || strings.Contains(is, "kept") {
		t.Errorf("tokens: %q, and in the copy %q", was, is)
	}
	v.thole("check")
	v.thole("audit", "verify")
}
