package contract

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// agent is a thread whose agent runs the commands it is given.
type agent struct {
	t  *testing.T
	h  *home.Home
	id string
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	h := home.New(t)
	h.Up()
	a := &agent{t: t, h: h}
	a.id = strings.Fields(a.thole(0, "thread", "start", "--model", "test/script", "--profile", "full", "sim: say hello"))[1]
	return a
}

// thole runs the program, expects how it exits and returns all that it said.
func (a *agent) thole(want int, args ...string) string {
	a.t.Helper()
	out, errs, code := a.h.Run(args...)
	if (want == 0) != (code == 0) || want > 0 && code != want {
		a.t.Fatalf("thole %s: exit %d, not %d:\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out + errs
}

const anyFailure = -1

func (a *agent) run(command string) string {
	a.t.Helper()
	out := a.thole(0, "thread", "send", a.id, "sim: run "+command)
	return strings.ReplaceAll(out, "\n| ", "\n") // the marks of what is not thole's own
}

func (a *agent) export(want int, flags ...string) (dir, said string) {
	a.t.Helper()
	dir = filepath.Join(a.t.TempDir(), "out")
	return dir, a.thole(want, append([]string{"workspace", "export", a.id, dir}, flags...)...)
}

func (a *agent) holds(path, want string) {
	a.t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		a.t.Errorf("%s is %q, %v, and not %q", filepath.Base(path), got, err, want)
	}
}

// An export right after a turn has what the turn did, links as they are; while one
// runs it says so.
func TestExportHasWhatTheLastTurnDid(t *testing.T) {
	a := newAgent(t)
	for i := range 3 {
		// Enough that the sync is not over at once.
		a.run(fmt.Sprintf("echo %d > f && head -c 30000000 /dev/urandom > big && mkdir -p empty && ln -sfn /etc way && ln -sfn f alias", i))
		dir, said := a.export(0)
		a.holds(filepath.Join(dir, "f"), fmt.Sprintf("%d\n", i))
		for link, want := range map[string]string{"way": "/etc", "alias": "f"} {
			if got, err := os.Readlink(filepath.Join(dir, link)); err != nil || got != want {
				t.Errorf("link %s says %q, %v", link, got, err)
			}
		}
		if st, err := os.Stat(filepath.Join(dir, "empty")); err != nil || !st.IsDir() {
			t.Errorf("an empty directory: %v", err)
		}
		if strings.Contains(said, "left out") {
			t.Errorf("it left out: %s", said)
		}
	}
	a.thole(0, "thread", "send", "--detach", a.id, "sim: run echo later > f && sleep 600")
	poll.Until(t, "the turn", func() bool {
		found, _ := filepath.Glob(filepath.Join(a.h.Dir, "x", "*", "workspace", "f"))
		if len(found) != 1 {
			t.Fatalf("executors: %v", found)
		}
		body, err := os.ReadFile(found[0])
		return err == nil && string(body) == "later\n"
	})
	dir, said := a.export(0)
	a.holds(filepath.Join(dir, "f"), "2\n")
	if !strings.Contains(said, "a turn runs") {
		t.Errorf("while a turn ran it said %s", said)
	}
	waits := a.h.Command("workspace", "export", "--wait", a.id, filepath.Join(t.TempDir(), "waited"))
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	a.thole(0, "thread", "interrupt", a.id)
	if err := waits.Wait(); err != nil {
		t.Fatal(err)
	}
	a.holds(filepath.Join(waits.Args[len(waits.Args)-1], "f"), "later\n")
}

// What an agent closed for itself is saved all the same, in whatever the executor
// runs in.
func TestClosedDirectoriesAreSaved(t *testing.T) {
	a := newAgent(t)
	a.run("mkdir -p shut/in && echo kept > shut/in/f && chmod 000 shut/in/f shut/in shut && echo open > g && chmod 000 .")
	dir, _ := a.export(0)
	a.holds(filepath.Join(dir, "g"), "open\n")
	a.holds(filepath.Join(dir, "shut/in/f"), "kept\n")
	if out := a.run("stat -c %a shut; cat g"); !strings.Contains(out, "\n0\nopen\n") {
		t.Errorf("the next turn sees %s", out)
	}
	a.thole(0, "thread", "close", a.id)
	a.elsewhere()
	if out := a.run("stat -c %a shut && chmod 700 shut && chmod 700 shut/in && stat -c %a shut/in/f && chmod 600 shut/in/f && cat shut/in/f"); !strings.Contains(out, "\n0\n0\nkept\n") {
		t.Errorf("elsewhere: %s", out)
	}
}

// elsewhere takes the thread's stopped executor away: the next turn restores.
func (a *agent) elsewhere() {
	a.t.Helper()
	found, err := filepath.Glob(filepath.Join(a.h.Dir, "x", "*", "workspace"))
	if err != nil || len(found) != 1 {
		a.t.Fatalf("executors: %v, %v", found, err)
	}
	if err := os.RemoveAll(filepath.Dir(found[0])); err != nil {
		a.t.Fatal(err)
	}
}

// Files that cannot be saved are no secret: the thread says so, export writes
// nothing and close fails, all with the reason; once it can be, they are saved.
func TestFilesThatAreNotSaved(t *testing.T) {
	a := newAgent(t)
	a.run("echo old > f")
	a.export(0)
	incoming := filepath.Join(a.h.Dir, "objects", "incoming")
	if err := os.Rename(incoming, incoming+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(incoming, nil, 0o600); err != nil { // or it would be made again
		t.Fatal(err)
	}
	tail := a.h.Command("thread", "tail", "--after", "0", a.id)
	heard, err := tail.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tail.Process.Kill(); _ = tail.Wait() })
	a.run("echo new > f")
	for s := bufio.NewScanner(heard); ; {
		if !s.Scan() {
			t.Fatalf("whoever follows the thread is not told: %v", s.Err())
		}
		if strings.Contains(s.Text(), "files are not saved") {
			break
		}
	}
	dir, said := a.export(anyFailure)
	if !strings.Contains(said, "not saved") || !strings.Contains(said, "thread close") || !strings.Contains(said, "--no-wait") {
		t.Errorf("export said %s", said)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("export wrote files that are old")
	}
	if out := a.thole(0, "thread", "show", a.id); !strings.Contains(out, "files of the last turn are not saved:") {
		t.Errorf("show: %s", out)
	}
	if out := a.thole(anyFailure, "thread", "close", "--wait", a.id); !strings.Contains(out, "not saved") || !strings.Contains(out, "object store is away") || !strings.Contains(out, "thread close") || strings.Contains(out, "has stopped") {
		t.Errorf("close: %s", out)
	}
	if _, said := a.export(anyFailure, "--no-wait"); !strings.Contains(said, "object directory") { // what was saved is out of reach too
		t.Errorf("export --no-wait said %s", said)
	}
	if err := errors.Join(os.Remove(incoming), os.Rename(incoming+"-away", incoming)); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the object store", func() bool { return !strings.Contains(a.thole(0, "thread", "show", a.id), "waiting: ") })
	if out := a.thole(0, "thread", "close", "--wait", a.id); !strings.Contains(out, "are saved and its executor has stopped") {
		t.Errorf("close at last: %s", out)
	}
	dir, _ = a.export(0)
	a.holds(filepath.Join(dir, "f"), "new\n")
	if out := a.thole(0, "thread", "show", a.id); strings.Contains(out, "not saved") {
		t.Errorf("show after all: %s", out)
	}
}

// An agent that takes the platform's names does not lose its thread.
func TestAgentsMayTakeThePlatformsNames(t *testing.T) {
	a := newAgent(t)
	a.run("rm -rf .kb .user-files; ln -s /tmp .kb; echo mine > .user-files; ln -s nowhere .agent_data; echo 1 > f")
	if out := a.run("cat f && cat .user-files.moved-aside && readlink .kb.moved-aside .agent_data && test -d .kb && echo in order"); !strings.Contains(out, "1\nmine\n/tmp\nnowhere\nin order\n") {
		t.Errorf("the next turn: %s", out)
	}
	// The directory of a CLI's conversations is a mount point: it cannot be taken at all.
	a.run("rm -rf .kb .user-files ~/.agent_data/codex; mkfifo .kb; ln -s f .user-files; echo mine > ~/.agent_data/codex")
	a.thole(0, "thread", "close", a.id)
	a.elsewhere()
	if out := a.run("cat f && readlink .agent_data && test -d .kb/app && test -d .user-files && test -d ~/.agent_data/codex && echo in order"); !strings.Contains(out, "1\nnowhere\nin order\n") {
		t.Errorf("elsewhere: %s", out)
	}
}

// Whether files are saved is seen, and why not; saving is asked for and its end is reported.
func TestExecutorsAreSeenAndSaved(t *testing.T) {
	a := newAgent(t)
	if out := a.thole(0, "executor", "list"); !strings.Contains(out, a.id) || !strings.Contains(out, "running") {
		t.Errorf("list: %s", out)
	}
	poll.Until(t, "the sync of the first turn", func() bool { return strings.Contains(a.thole(0, "executor", "show", a.id), "  files        saved") })
	if out := a.thole(0, "executor", "sync", a.id); !strings.Contains(out, "saved") || !strings.Contains(out, "catch-up") {
		t.Errorf("sync: %s", out)
	}
	if out := a.thole(3, "executor", "show", "0199aaaa-0000-7000-8000-000000000001"); !strings.Contains(out, "executor list") {
		t.Errorf("show of nothing: %s", out)
	}
	incoming := filepath.Join(a.h.Dir, "objects", "incoming")
	if err := errors.Join(os.Rename(incoming, incoming+".away"), os.WriteFile(incoming, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a.thole(0, "thread", "send", a.id, "sim: run echo new > new.txt")
	if out := a.thole(7, "executor", "sync", a.id); !strings.Contains(out, "not saved: ") || !strings.Contains(out, "tries again") {
		t.Errorf("sync without a store: %s", out)
	}
	if out := a.thole(0, "executor", "list"); !strings.Contains(out, "not saved: ") {
		t.Errorf("list after a failed sync: %s", out)
	}
	if out := a.thole(anyFailure, "thread", "close", a.id); !strings.Contains(out, "sav") {
		t.Errorf("close says %s", out)
	}
	if err := errors.Join(os.Remove(incoming), os.Rename(incoming+".away", incoming)); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the object store", func() bool { return !strings.Contains(a.thole(0, "thread", "show", a.id), "waiting: ") })
	if out := a.thole(0, "executor", "sync", a.id); !strings.Contains(out, "  files        saved") {
		t.Errorf("sync with the store back: %s", out)
	}
}
