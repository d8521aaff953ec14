package shelf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func (b *bench) read(path string) string {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Error(err)
	}
	return string(text)
}

func (b *bench) apply(mode shelf.Mode) shelf.Applied {
	b.t.Helper()
	a, err := b.shelf.Apply(b.ctx(), b.th, b.at(), b.repo, mode)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// Changes go into a tree that has others, and leave its index alone.
func TestApply(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := newBench(t, plainFiles)
		b.agent(b.odd)
		b.write(filepath.Join(b.repo, "a.txt"), "one\ntwo of the user\nthree\n")
		b.write(filepath.Join(b.repo, "m.go"), "package m // of the user\n")
		b.write(filepath.Join(b.repo, "staged"), "staged\n")
		b.git(b.repo, "add", "staged")
		b.write(filepath.Join(b.repo, "untracked"), "untracked\n")
		before := b.git(b.repo, "status", "--porcelain")
		index := b.git(b.repo, "ls-files", "-s")
		a := b.apply(shelf.ApplyCheck)
		if a.Done || len(a.Conflicts) != 1 || a.Conflicts[0].Path != "a.txt" || a.Conflicts[0].Why == "" {
			t.Errorf("%+v", a)
		}
		if a = b.apply(shelf.ApplyNow); a.Done || len(a.Conflicts) != 1 || b.git(b.repo, "status", "--porcelain") != before {
			t.Errorf("with a conflict: %+v", a)
		}
		b.write(filepath.Join(b.repo, "a.txt"), "zero of the user\none\ntwo\nthree\n")
		b.write(filepath.Join(b.repo, ".git", "info", "exclude"), "/binary\n")
		b.write(filepath.Join(b.repo, "binary"), "of the user")
		if a = b.apply(shelf.ApplyNow); a.Done || len(a.Conflicts) != 1 || a.Conflicts[0].Path != "binary" || b.read(filepath.Join(b.repo, "binary")) != "of the user" {
			t.Errorf("with an ignored file in the way: %+v", a)
		}
		if err := os.Remove(filepath.Join(b.repo, "binary")); err != nil {
			t.Fatal(err)
		}
		b.write(filepath.Join(b.repo, ".git", "info", "exclude"), "/new dir\n")
		b.write(filepath.Join(b.repo, "new dir"), "of the user")
		if a = b.apply(shelf.ApplyNow); a.Done || len(a.Conflicts) != 1 || a.Conflicts[0].Path != "new dir" || b.read(filepath.Join(b.repo, "new dir")) != "of the user" {
			t.Errorf("with an ignored file in the place of a directory: %+v", a)
		}
		if err := os.Remove(filepath.Join(b.repo, "new dir")); err != nil {
			t.Fatal(err)
		}
		b.write(filepath.Join(b.repo, ".git", "info", "exclude"), "/binary\n")
		before = b.git(b.repo, "status", "--porcelain")
		if a = b.apply(shelf.ApplyCheck); a.Done || len(a.Conflicts) != 0 || a.Total != 10 || b.git(b.repo, "status", "--porcelain") != before {
			t.Errorf("a check that nothing is in the way of: %+v", a)
		}
		if a = b.apply(shelf.ApplyNow); !a.Done || a.Dir != b.repo || a.Total != 10 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "below") {
			t.Errorf("%+v", a)
		}
		for name, want := range map[string]string{
			"a.txt": "zero of the user\none\ntwo changed\nthree\n", "m.go": "package m // of the user\n", "staged": "staged\n", "untracked": "untracked\n",
			"new dir/new \"file\"\nwith\ttabs": "text\n", "bytes-\xff\xfe": "text", "binary": "\x00\x01\x02", "moved there": plainFiles["moved"],
		} {
			if got := b.read(filepath.Join(b.repo, name)); got != want {
				t.Errorf("%q: %q", name, got)
			}
		}
		if to, err := os.Readlink(filepath.Join(b.repo, "link")); to != "../../../etc/passwd" {
			t.Error(to, err)
		}
		if st, err := os.Stat(filepath.Join(b.repo, "run.sh")); err != nil || st.Mode() != 0o755 {
			t.Error(st, err)
		}
		for _, name := range []string{"gone", "moved", "ignored", "excluded", "below"} {
			if _, err := os.Lstat(filepath.Join(b.repo, name)); err == nil {
				t.Errorf("%s is there", name)
			}
		}
		if got := b.git(b.repo, "ls-files", "-s"); got != index {
			t.Errorf("the index became\n%s", got)
		}
		b.write(filepath.Join(b.repo, ".git", "info", "exclude"), "")
		if a = b.apply(shelf.ApplyNow); !a.Done || a.Total != 0 {
			t.Errorf("again: %+v", a)
		}
		if _, err := b.shelf.Apply(b.ctx(), b.th, b.at(), b.repo, shelf.ApplyAbort); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("abort of nothing: %v", err)
		}
		if left, _ := filepath.Glob(b.home + "/*.apply"); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

// A thread that makes more files than are listed writes over none of the user's either.
func TestApplyLooksAtMoreThanItLists(t *testing.T) {
	shelf.ListAtMost(t, 1)
	b := newBench(t, plainFiles)
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "new"), "of the agent")
		b.write(filepath.Join(dir, "own"), "of the agent")
	})
	b.write(filepath.Join(b.repo, ".git", "info", "exclude"), "/own\n")
	b.write(filepath.Join(b.repo, "own"), "of the user")
	if a := b.apply(shelf.ApplyNow); a.Done || a.Total != 2 || len(a.Conflicts) != 1 || b.read(filepath.Join(b.repo, "own")) != "of the user" {
		t.Errorf("%d files, done %t: %v", a.Total, a.Done, a.Conflicts)
	}
}

// Uncommitted work becomes one commit of the user on top of the agent's own.
func TestPullAndMerge(t *testing.T) {
	b := newBench(t, plainFiles)
	b.git(b.repo, "config", "user.name", "The User")
	b.git(b.repo, "config", "user.email", "user@example.test")
	if _, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("pull of nothing: %v", err)
	}
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "a.txt"), "one\ntwo committed\nthree\n")
		b.git(dir, "commit", "-q", "-a", "-m", "by the agent")
		b.write(filepath.Join(dir, "new"), "new\n")
	})
	p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false)
	if err != nil || p.Branch != "thole/make-it-better" || p.Old != "" || p.Commits != 2 || p.Repo != b.repo {
		t.Fatalf("%+v, %v", p, err)
	}
	if got := b.git(b.repo, "log", "--format=%s|%an|%ae|%b", "main.."+p.Branch); got != "Make it better|The User|user@example.test|\nby the agent|a|a@b|" {
		t.Errorf("%s", got)
	}
	if b.git(b.repo, "status", "--porcelain") != "" || b.git(b.repo, "show", p.Branch+":new") != "new" {
		t.Error("the pull changed files, or not the branch")
	}
	b.git(b.repo, "fsck", "--strict")
	again, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false)
	if err != nil || again.Commit != p.Commit || again.Old != p.Commit {
		t.Errorf("again: %+v, %v", again, err)
	}
	other, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "mine/too", false)
	if err != nil || b.git(b.repo, "rev-parse", "mine/too^{tree}") != b.git(b.repo, "rev-parse", p.Branch+"^{tree}") {
		t.Errorf("another name: %+v, %v", other, err)
	}
	for _, name := range []string{"../x", "a..b", "-x y", "a.lock", "x\ny"} {
		if _, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, name, false); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	// The agent goes on: the branch moves forward.
	b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), "newer\n") })
	if p, err = b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false); err != nil || p.Old != again.Commit || p.Commits != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	// It commits what was pulled: that takes the place of the commits that were made of it.
	b.agent(func(dir string) { b.git(dir, "add", "new"); b.git(dir, "commit", "-q", "-m", "new, by the agent") })
	if q, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false); thole.CodeOf(err) != thole.CodeConflict || thole.HintOf(err) == "" {
		t.Errorf("a commit that takes another's place: %+v, %v", q, err)
	}
	if p, err = b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", true); err != nil || p.Old == "" || p.Commits != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	// The user's own work meets it.
	b.write(filepath.Join(b.repo, "m.go"), "package m // of the user\n")
	b.git(b.repo, "commit", "-q", "-a", "-m", "by the user")
	b.write(filepath.Join(b.repo, "new"), "in the way\n")
	var m shelf.Merged
	for _, ignored := range []string{"", "/new\n"} {
		b.write(filepath.Join(b.repo, ".git", "info", "exclude"), ignored)
		m, err = b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, "")
		if err != nil || m.Done || len(m.Conflicts) != 1 || m.Conflicts[0].Path != "new" || b.read(filepath.Join(b.repo, "new")) != "in the way\n" {
			t.Errorf("ignored: %q: %+v, %v", ignored, m, err)
		}
	}
	if err := os.Remove(filepath.Join(b.repo, "new")); err != nil {
		t.Fatal(err)
	}
	m, err = b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, "")
	if err != nil || !m.Done || m.FastForward || m.Into != "main" || len(m.Conflicts) != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	if b.git(b.repo, "status", "--porcelain") != "" || b.read(filepath.Join(b.repo, "new")) != "newer\n" || b.read(filepath.Join(b.repo, "m.go")) != "package m // of the user\n" {
		t.Error("the merge is not whole")
	}
	if got := b.git(b.repo, "log", "-1", "--format=%s|%an"); got != "Merge branch 'thole/make-it-better'|The User" {
		t.Errorf("%s", got)
	}
	if m, err = b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, ""); err != nil || !m.Done {
		t.Errorf("again: %+v, %v", m, err)
	}
	b.agent(func(dir string) { b.write(filepath.Join(dir, "a.txt"), "one\ntwo of the agent\nthree\n") })
	b.write(filepath.Join(b.repo, "a.txt"), "one\ntwo of the user\nthree\n")
	b.git(b.repo, "commit", "-q", "-a", "-m", "by the user too")
	head := b.git(b.repo, "rev-parse", "HEAD")
	b.git(b.repo, "branch", "-D", m.Branch)
	m, err = b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, "")
	if err != nil || m.Done || len(m.Conflicts) != 1 || m.Conflicts[0].Path != "a.txt" || m.Conflicts[0].Why != "both changed it" {
		t.Errorf("%+v, %v", m, err)
	}
	if b.git(b.repo, "rev-parse", "HEAD") != head || b.git(b.repo, "status", "--porcelain") != "" {
		t.Error("a merge that was refused changed something")
	}
	b.git(b.repo, "checkout", "-q", "--detach")
	if m, err = b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, ""); err != nil || m.Into != "HEAD ("+head[:7]+")" || len(m.Conflicts) != 1 {
		t.Errorf("into no branch: %+v, %v", m, err)
	}
	b.git(b.repo, "checkout", "-q", m.Branch)
	b.agent(func(dir string) { b.write(filepath.Join(dir, "last"), "last") })
	if _, err = b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", true); thole.CodeOf(err) != thole.CodeConflict || !strings.Contains(err.Error(), "checked out") {
		t.Errorf("into what is checked out: %v", err)
	}
}

// An undo puts files, branch and index back to what they were before a turn.
func TestUndo(t *testing.T) {
	b := newBench(t, plainFiles)
	b.agent(func(dir string) { b.write(filepath.Join(dir, "first"), "of turn 1\n") })
	want, head := b.gitDiff("HEAD"), b.git(b.files, "rev-parse", "HEAD")
	b.agent(func(dir string) {
		b.odd(dir)
		if err := os.RemoveAll(filepath.Join(dir, "below")); err != nil {
			t.Error(err)
		}
	})
	b.agent(func(dir string) {
		b.git(dir, "add", "a.txt", "link")
		b.git(dir, "commit", "-q", "-m", "by the agent")
		b.write(filepath.Join(dir, "first"), "of turn 3\n")
		b.git(dir, "add", "first")
	})
	done := b.gitDiff(head)
	if n, err := b.shelf.Undoable(b.ctx(), b.th, b.at(), 0); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, n := range []int{-1, 4} {
		if _, err := b.shelf.Undoable(b.ctx(), b.th, b.at(), n); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("%d: %v", n, err)
		}
	}
	b.th.Turns++
	u, err := b.shelf.Undo(b.ctx(), b.th, b.at(), 4, 2)
	if err != nil || !strings.HasPrefix(u, "The files are what they were before turn 2: 10 files changed") || strings.Count(u, "\n") != 10 {
		t.Fatalf("%s, %v", u, err)
	}
	b.git(b.files, "add", "-A", "-n") // its index is whole
	if got := b.gitDiff("HEAD"); got != want || b.git(b.files, "rev-parse", "HEAD") != head || b.git(b.files, "branch", "--show-current") != b.th.Files.Branch {
		t.Errorf("after the undo:\n%s\nwant\n%s", got, want)
	}
	if got := b.git(b.files, "status", "--porcelain"); got != "?? first" {
		t.Errorf("status: %s", got)
	}
	if err := b.shelf.After(b.ctx(), b.th, 4, b.at()); err != nil {
		t.Fatal(err)
	}
	// An undo is a turn, and can be undone.
	b.th.Turns++
	if u, err = b.shelf.Undo(b.ctx(), b.th, b.at(), 5, 4); err != nil || !strings.Contains(u, "before turn 4: 10 files") {
		t.Fatalf("%s, %v", u, err)
	}
	if got := b.gitDiff(head); got != done {
		t.Errorf("after both:\n%s\nwant\n%s", got, done)
	}
}

// A look at a thread that an earlier version began, before its next turn, is not taken for
// its beginning: an undo of that turn leaves what was there.
func TestUndoInAThreadOfAnEarlierVersion(t *testing.T) {
	b := newBench(t, plainFiles)
	b.th.Files, b.th.Turns = thole.Source{}, 1
	b.diff(shelf.Range{})
	b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), "new\n") })
	if said, err := b.shelf.Undo(b.ctx(), b.th, b.at(), 3, 2); err != nil || !strings.Contains(said, "1 file changed") {
		t.Errorf("%s, %v", said, err)
	}
	if got := b.read(filepath.Join(b.files, "a.txt")); got != plainFiles["a.txt"] {
		t.Errorf("a file of an earlier turn: %q", got)
	}
}
