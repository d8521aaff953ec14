package appserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Whatever form an agent reports a change in, git can apply the turn's diff.
func TestTurnDiffApplies(t *testing.T) {
	git := lab.Git(t)
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("changed.txt", "one\ntwo\nthree\n")
	put("headed.txt", "a\n")
	put("gone.txt", "x\ny\n")
	put("old.txt", "kept\n")
	diff := turnDiff([]event.FileChange{
		{Path: "new.txt", Kind: "add", Diff: "+first\n+second\n"},
		{Path: "changed.txt", Kind: "update", Diff: "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"},
		{Path: "headed.txt", Kind: "update", Diff: "--- a/headed.txt\n+++ b/headed.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"},
		{Path: "fresh.txt", Kind: "add", Diff: "--- /dev/null\n+++ b/fresh.txt\n@@ -0,0 +1,1 @@\n+hi\n"},
		{Path: "gone.txt", Kind: "delete", Diff: "-x\n-y\n"},
		{Path: "cut.txt", Kind: "add", Diff: "+no newline\n\\ No newline at end of file\n"},
		{Path: "old.txt", Kind: "update", Move: "moved.txt"},
	})
	cmd := exec.Command(git, "apply", "--unsafe-paths", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
	}
	for name, want := range map[string]string{"new.txt": "first\nsecond\n", "changed.txt": "one\n2\nthree\n", "headed.txt": "b\n", "fresh.txt": "hi\n", "cut.txt": "no newline", "moved.txt": "kept\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"gone.txt", "old.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if big := turnDiff([]event.FileChange{{Path: "b", Kind: "add", Diff: strings.Repeat("+x\n", maxDiff)}}); big != "" {
		t.Errorf("a diff of %d bytes was told", len(big))
	}
}

// A thread that this server lets go of is reported as closed; one that another process
// has is not.
func TestClosedThreads(t *testing.T) {
	s := &Server{}
	for _, c := range []struct {
		actor thole.Actor
		st    event.Status
		want  string
	}{
		{thole.SystemActor, event.Status{}, "thread/status/changed thread/closed"},
		{thole.SystemActor, event.Status{Loaded: true}, "thread/status/changed"},
		{thole.LocalActor, event.Status{}, "thread/status/changed"},
	} {
		var got []string
		for _, f := range s.coarse(nil, &event.Event{Kind: event.ThreadStatus, Actor: c.actor, Data: event.Data{Status: &c.st}}, "") {
			got = append(got, f.method)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
