//go:build linux

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/test/e2e/home"
)

// Threads are found by the beginning of an id, by name and by --last, and what is ambiguous is
// listed; every change prints one line.
func TestThreadsByName(t *testing.T) {
	r := &rig{T: t, Home: home.New(t)}
	r.Up()
	r.repo = r.repository("app")
	elsewhere := t.TempDir()
	fails := func(want int, say string, args ...string) {
		t.Helper()
		if out, errs, code := r.in(r.repo, args...); code != want || !strings.Contains(errs, say) {
			t.Errorf("thole %q: exit %d: %s%s", args, code, out, errs)
		}
	}
	if out := r.must(); !strings.Contains(out, `thole run "…"`) {
		t.Errorf("thole alone, without threads: %s", out)
	}
	first := strings.Fields(r.must("run", "--model", "test/script", "Paint the wall sim: say it is red"))[1]
	second := strings.Fields(r.must("run", "--model", "test/script", "--profile", "ask", "Paint the door sim: write door.txt red ;; say it is blue", "--on-ask", "allow"))[1]
	shown := r.must()
	if !strings.Contains(shown, "threads of app") || !strings.Contains(shown, "Paint the wall") || !strings.Contains(shown, "thole thread diff ") || strings.Contains(shown, "notLoaded") {
		t.Errorf("thole alone: %s", shown)
	}
	if out, _, _ := r.in(elsewhere); !strings.Contains(out, `thole run "…"`) || strings.Contains(out, "Paint") {
		t.Errorf("thole outside of a repository: %s", out)
	}
	for _, name := range []string{"paint-the-wall", first[:len(first)-1], "PAINT-THE-WALL"} {
		if out := r.must("thread", "show", name); !strings.Contains(out, first) {
			t.Errorf("show %s: %s", name, out)
		}
	}
	if out := r.must("thread", "show", "--last"); !strings.Contains(out, second) {
		t.Errorf("--last: %s", out)
	}
	if out := r.must("thread", "diff", "--last", "--name-only"); out != "door.txt\n" {
		t.Errorf("diff --last: %q", out)
	}
	fails(2, "could be any of 2 threads", "thread", "show", "paint")
	fails(2, "Paint the wall", "thread", "show", "paint")
	fails(3, "no thread is called", "thread", "show", "nothing-like-it")

	if out := r.must("__complete", "thread", "show", "paint-the-w"); !strings.HasPrefix(out, "paint-the-wall-") || strings.Contains(out, "door") {
		t.Errorf("completion of threads: %s", out)
	}
	for flag, want := range map[string]string{"--profile": "plan", "--model": "test/", "--on-ask": "fail"} {
		if out := r.must("__complete", "run", flag, ""); !strings.Contains(out, want) {
			t.Errorf("completion of %s: %s", flag, out)
		}
	}
	if out := r.must("__complete", "batch", "close-head", "--reason", ""); !strings.Contains(out, "operator_confirmed_delivery") {
		t.Errorf("completion of reasons: %s", out)
	}

	for _, c := range []struct {
		say  string
		args []string
	}{
		{"is called A new wall", []string{"thread", "rename", "paint-the-wall", "A new wall"}}, {"no turn is running", []string{"thread", "interrupt", first}},
		{"is archived", []string{"thread", "archive", first}}, {"back in the list", []string{"thread", "unarchive", first}}, {"is completed", []string{"thread", "wait", first}},
		{"asked 0 turns", []string{"thread", "interrupt", "--all"}}, {"nothing waits", []string{"thread", "queue", "list", first}}, {"TURNS", []string{"thread", "usage", first}},
	} {
		if out := r.must(c.args...); !strings.Contains(out, c.say) || strings.Count(out, "\n") > 4 {
			t.Errorf("thole %q: %s", c.args, out)
		}
	}
	fork := strings.Fields(r.must("thread", "fork", "--title", "Another", first))[1]
	if out := r.must("thread", "show", "another"); !strings.Contains(out, fork) || !strings.Contains(out, "it is red") {
		t.Errorf("the fork: %s", out)
	}
	fails(9, "the turn failed", "thread", "send", fork, "sim: crash")
	if out := r.must("ps", "--all"); !strings.Contains(out, "failed") {
		t.Errorf("ps: %s", out)
	}

	r.must("thread", "send", "--detach", first, "sim: wait 60s ;; say late")
	for _, text := range []string{"one", "two", "three"} {
		r.must("thread", "queue", "add", first, "sim: say "+text)
	}
	r.must("thread", "queue", "move", first, "3", "1")
	r.must("thread", "queue", "remove", first, "2")
	var queue []struct{ Input []struct{ Text string } }
	if err := json.Unmarshal([]byte(r.must("--json", "thread", "queue", "list", first)), &queue); err != nil || len(queue) != 2 || queue[0].Input[0].Text != "sim: say three" || queue[1].Input[0].Text != "sim: say two" {
		t.Errorf("the queue is %v %v", queue, err)
	}
	if out := r.must("thread", "interrupt", "--all"); !strings.Contains(out, "asked 1 turn to stop") {
		t.Errorf("interrupt --all: %s", out)
	}
}
