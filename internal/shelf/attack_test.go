package shelf_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// trap gives a repository a configuration, hooks and attributes that start programs in
// every way that git knows. Each of them leaves a file in marks.
func (b *bench) trap(repo, marks string) {
	b.t.Helper()
	mark := func(name string) string { return "touch " + filepath.Join(marks, name) + "; " }
	for k, v := range map[string]string{
		"core.fsmonitor": mark("fsmonitor") + "false", "core.hooksPath": filepath.Join(repo, ".git", "evil"), "core.sshCommand": mark("ssh") + "false", "core.pager": mark("pager") + "cat",
		"core.editor": mark("editor") + "true", "core.askPass": mark("askpass") + "true", "filter.evil.clean": mark("clean") + "cat", "filter.evil.smudge": mark("smudge") + "cat", "filter.evil.process": mark("process") + "false",
		"diff.evil.command": mark("diff") + "true", "diff.evil.textconv": mark("textconv") + "cat", "diff.external": mark("external") + "true", "merge.evil.driver": mark("merge") + "true", "credential.helper": "!" + mark("credential"),
		"gpg.program": mark("gpg") + "true", "commit.gpgSign": "true", "uploadpack.packObjectsHook": mark("pack"), "alias.status": "!" + mark("alias"), "alias.readably": "!" + mark("readably"),
	} {
		b.git(repo, "config", k, v)
	}
	for _, hook := range []string{"pre-commit", "post-checkout", "post-merge", "pre-push", "reference-transaction", "post-index-change", "pre-auto-gc", "post-rewrite", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "update", "pre-receive"} {
		for _, dir := range []string{"evil", "hooks"} {
			path := filepath.Join(repo, ".git", dir, hook)
			b.write(path, "#!/bin/sh\n"+mark("hook-"+hook)+"\nexit 0\n")
			if err := os.Chmod(path, 0o755); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.write(filepath.Join(repo, ".git", "info", "attributes"), "* filter=evil diff=evil merge=evil\n")
}

// marked lists what ran.
func (b *bench) marked(marks string) string {
	b.t.Helper()
	all, err := os.ReadDir(marks)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func (b *bench) openDir(name string) string {
	b.t.Helper()
	dir := filepath.Join(b.base, name)
	b.mkdir(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// Nothing that a repository of an agent, or of a user, names runs on this machine,
// whichever command touches it. Git that a person types there runs it.
func TestHostileRepositoriesRunNothing(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := newBench(t, plainFiles)
		marks := b.openDir("marks")
		hostile := func(dir string) {
			b.write(filepath.Join(dir, ".gitattributes"), "* filter=evil diff=evil merge=evil\n")
			b.write(filepath.Join(dir, "a.txt"), "one\ntwo of the agent\nthree\n")
			b.write(filepath.Join(dir, "sub", "f"), "f\n")
			b.git(filepath.Join(dir, "sub"), "init", "-q")
			b.git(filepath.Join(dir, "sub"), "add", "f")
			b.git(filepath.Join(dir, "sub"), "commit", "-q", "-m", "below")
			b.trap(filepath.Join(dir, "sub"), marks)
			b.trap(dir, marks)
		}
		b.agent(hostile)
		b.trap(b.repo, marks)
		b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), "new\n") })
		for _, r := range []shelf.Range{{Patches: true}, {Turn: 1, Patches: true}, {Turn: 2}} {
			if d := b.diff(r); d.Total == 0 {
				t.Errorf("%+v: %+v", r, d)
			}
		}
		if p := b.patch(shelf.Range{}); !strings.Contains(p, "two of the agent") {
			t.Errorf("%s", p)
		}
		if a := b.apply(shelf.ApplyCheck); len(a.Conflicts) != 0 {
			t.Errorf("%+v", a)
		}
		if a := b.apply(shelf.ApplyNow); !a.Done {
			t.Errorf("%+v", a)
		}
		if err := b.gitQuietly(b.repo, "reset", "-q", "--hard"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"new", "sub"} {
			if err := os.RemoveAll(filepath.Join(b.repo, name)); err != nil {
				t.Fatal(err)
			}
		}
		if m, err := b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, ""); thole.CodeOf(err) != thole.CodeConflict || m.Commit == "" { // its filter fails, in the box
			t.Errorf("%+v, %v", m, err)
		}
		b.th.Turns++
		if said, err := b.shelf.Undo(b.ctx(), b.th, b.at(), 3, 1); err != nil || b.read(filepath.Join(b.files, "a.txt")) != plainFiles["a.txt"] {
			t.Errorf("%s, %v", said, err)
		}
		if ran := b.marked(marks); ran != "" {
			t.Errorf("on this machine ran %s", ran)
		}
		// As a person would be caught.
		for _, dir := range []string{b.files, b.repo} {
			b.write(filepath.Join(dir, "a.txt"), "another\n")
			b.raw(dir, "diff")
			b.raw(dir, "commit", "-q", "-a", "-m", "x", "--no-gpg-sign")
			if ran := b.marked(marks); ran == "" {
				t.Errorf("in %s nothing is hostile", dir)
			}
			if err := os.RemoveAll(marks); err != nil {
				t.Fatal(err)
			}
			b.openDir("marks")
		}
	})
}

// gitQuietly runs git without anything that the repository names.
func (b *bench) gitQuietly(dir string, args ...string) error {
	_, err := runner(b.t).Own(b.ctx(), dir, append([]string{"-c", "filter.evil.clean=", "-c", "filter.evil.smudge=", "-c", "filter.evil.process="}, args...)...)
	return err
}

// raw runs git as it is and does not care how that ends.
func (b *bench) raw(dir string, args ...string) {
	cmd := command(b.t, dir, args...)
	_, _ = cmd.CombinedOutput()
}

// What an agent writes into its repository to hide a change hides it from git, and not
// from the thread's diff.
func TestNothingHidesAChange(t *testing.T) {
	b := newBench(t, plainFiles)
	b.agent(func(dir string) { b.write(filepath.Join(dir, "kept"), "kept\n") })
	b.turn(func(dir string) {
		b.git(dir, "update-index", "--assume-unchanged", "a.txt")
		b.git(dir, "update-index", "--skip-worktree", "m.go")
		b.write(filepath.Join(dir, "a.txt"), "hidden\n")
		b.write(filepath.Join(dir, "m.go"), "hidden\n")
		// Of the size and time of the one that the index knows.
		st, err := os.Stat(filepath.Join(dir, "run.sh"))
		if err != nil {
			t.Fatal(err)
		}
		b.write(filepath.Join(dir, "run.sh"), "#!/bin/zz\n")
		if err := os.Chtimes(filepath.Join(dir, "run.sh"), st.ModTime(), st.ModTime()); err != nil {
			t.Fatal(err)
		}
		b.git(dir, "config", "core.fileMode", "false")
		b.git(dir, "config", "core.trustctime", "false")
		b.git(dir, "config", "core.checkStat", "minimal")
		b.git(dir, "config", "core.worktree", "/nonexistent")
	})
	var got []string
	for _, f := range b.diff(shelf.Range{Turn: 2}).Files {
		got = append(got, f.Path)
	}
	if strings.Join(got, " ") != "a.txt m.go run.sh" {
		t.Errorf("%q", got)
	}
	b.git(b.files, "config", "--unset", "core.worktree")
	if shown := b.git(b.files, "diff", "--name-only"); strings.Contains(shown, "a.txt") || strings.Contains(shown, "m.go") {
		t.Errorf("git itself shows %s: the attack does not work", shown)
	}
}

// Objects that an agent forged are not taken for the files, and commits of them are left
// out and named.
func TestForgedObjects(t *testing.T) {
	b := newBench(t, plainFiles)
	forge := func(dir, id, text string) {
		b.t.Helper()
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		fmt.Fprintf(w, "blob %d\x00%s", len(text), text)
		w.Close()
		path := filepath.Join(dir, ".git", "objects", id[:2], id[2:])
		_ = os.Remove(path)
		b.write(path, z.String())
	}
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "x"), "real content\n")
		b.write(filepath.Join(dir, "y"), "committed\n")
		id := b.git(dir, "hash-object", "x")
		b.git(dir, "add", "y")
		b.git(dir, "commit", "-q", "-m", "y")
		if err := os.Remove(filepath.Join(dir, "y")); err != nil {
			t.Fatal(err)
		}
		forge(dir, id, "forged content\n")
		forge(dir, b.git(dir, "rev-parse", "HEAD:y"), "forged too\n")
	})
	d := b.diff(shelf.Range{Patches: true})
	if len(d.Files) != 1 || !strings.Contains(string(d.Files[0].Patch), "+real content") {
		t.Errorf("%+v", d.Files)
	}
	if len(d.Left) != 1 || !strings.Contains(d.Left[0], "the repository's commits") {
		t.Errorf("left out: %q", d.Left)
	}
	p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false)
	if err != nil || p.Commits != 1 || b.git(b.repo, "show", p.Branch+":x") != "real content" {
		t.Errorf("%+v, %v", p, err)
	}
}

// What git's check refuses does not come onto the shelf, and the refusal says what it is.
func TestRefusedByTheCheck(t *testing.T) {
	b := newBench(t, plainFiles)
	b.turn(func(dir string) {
		b.write(filepath.Join(dir, ".gitmodules"), "[submodule \"x\"]\n\tpath = x\n\turl = -uevil\n")
	})
	err := b.shelf.After(b.ctx(), b.th, 1, b.at())
	if thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), "gitmodulesUrl") || thole.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	if _, err := b.shelf.Diff(b.ctx(), b.th, b.at(), shelf.Range{}); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("%v", err)
	}
	if err := os.Remove(filepath.Join(b.files, ".gitmodules")); err != nil {
		t.Fatal(err)
	}
	if d := b.diff(shelf.Range{}); d.Total != 0 {
		t.Errorf("afterwards: %+v", d)
	}
}

// Links lead nobody out of the directory that is written.
func TestLinksLeadNowhere(t *testing.T) {
	b := newBench(t, map[string]string{"d/file": "old\n", "e/file": "old\n"})
	canary := b.openDir("canary")
	b.write(filepath.Join(canary, "file"), "canary\n")
	swap := func(dir, name string) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		b.link(canary, filepath.Join(dir, name))
	}
	b.agent(func(dir string) { b.write(filepath.Join(dir, "d", "file"), "of the agent\n") })
	swap(b.repo, "d") // the user's own link where the thread changed a file
	if a := b.apply(shelf.ApplyNow); a.Done || len(a.Conflicts) == 0 {
		t.Errorf("%+v", a)
	}
	b.agent(func(dir string) { swap(dir, "e"); swap(dir, "d") })
	b.th.Turns++
	if said, err := b.shelf.Undo(b.ctx(), b.th, b.at(), 3, 2); err != nil || b.read(filepath.Join(b.files, "e", "file")) != "old\n" || b.read(filepath.Join(b.files, "d", "file")) != "of the agent\n" {
		t.Errorf("%s, %v", said, err)
	}
	if b.read(filepath.Join(canary, "file")) != "canary\n" {
		t.Error("the canary was written")
	}
	if all, _ := os.ReadDir(canary); len(all) != 1 {
		t.Errorf("the canary has %v", all)
	}
}

// A file that costs an agent nothing and a reader an hour is left out by name, and
// more files than can be looked at are refused.
func TestBounds(t *testing.T) {
	b := newBench(t, plainFiles)
	small := shelf.New(shelf.Config{Dir: b.home, Git: runner(t), MaxFiles: 20, MaxFile: 1 << 20})
	b.shelf = small
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "fits"), "fits\n")
		for _, name := range []string{"huge", "deep/er/hu[ge] *"} {
			b.write(filepath.Join(dir, name), "")
			if err := os.Truncate(filepath.Join(dir, name), 1<<40); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
			t.Fatal(err)
		}
		b.git(dir, "init", "-q", "unborn")
	})
	d := b.diff(shelf.Range{})
	left := strings.Join(d.Left, "|")
	if d.Total != 1 || !strings.Contains(left, "huge: larger than") || !strings.Contains(left, "deep/er/hu[ge] *: larger than") || !strings.Contains(left, "unborn: a repository without") {
		t.Errorf("%+v", d)
	}
	b.turn(func(dir string) {
		for i := range 30 {
			b.write(filepath.Join(dir, "many", fmt.Sprint(i)), "x")
		}
	})
	if err := small.After(b.ctx(), b.th, 2, b.at()); thole.CodeOf(err) != thole.CodeUnsupported || thole.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(b.home, string(b.th.ID)+".git")); err != nil {
		t.Error(err)
	}
}

// Files that the agent made unreadable are named, and the rest is kept.
func TestUnreadableFiles(t *testing.T) {
	b := newBench(t, plainFiles)
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "closed"), "closed\n")
		b.write(filepath.Join(dir, "open"), "open\n")
		if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
			t.Fatal(err)
		}
	})
	d := b.diff(shelf.Range{})
	if d.Total != 1 || d.Files[0].Path != "open" || len(d.Left) == 0 || !strings.Contains(d.Left[0], "closed: Permission denied") {
		t.Errorf("%+v", d)
	}
}
