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

// inPlace makes the thread one that works in a directory of the user.
func (b *bench) inPlace(dir string) {
	b.files = dir
	b.th.Files = thole.Source{Kind: thole.SourceHere, Dir: dir}
}

// A thread in the user's own directory has a state before each turn, borrows the
// repository's objects, writes nothing there but a ref, and takes back what its turns did.
func TestInPlace(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := newBench(t, plainFiles)
		b.inPlace(b.repo)
		b.write(filepath.Join(b.repo, "mine"), "of the user\n")
		b.write(filepath.Join(b.repo, "a.txt"), "staged by the user\n")
		b.git(b.repo, "add", "a.txt")
		before, head := b.git(b.repo, "status", "--porcelain"), b.git(b.repo, "rev-parse", "HEAD")
		b.agent(func(dir string) {
			b.write(filepath.Join(dir, "m.go"), "package agent\n")
			b.write(filepath.Join(dir, "new"), "new\n")
			b.git(dir, "add", "m.go")
			b.git(dir, "commit", "-q", "-m", "by the agent", "--", "m.go")
		})
		if d := b.diff(shelf.Range{}); d.Total != 2 {
			t.Errorf("%+v", d)
		}
		b.write(filepath.Join(b.repo, "between"), "by the user, between the turns\n")
		b.agent(func(dir string) { b.write(filepath.Join(dir, "mine"), "taken over\n") })
		if d := b.diff(shelf.Range{Turn: 2}); d.Total != 1 || d.Files[0].Path != "mine" {
			t.Errorf("the user's own changes count as the turn's: %+v", d.Files)
		}
		for what, err := range map[string]error{
			"apply": second(b.shelf.Apply(b.ctx(), b.th, "", b.repo, shelf.ApplyNow)), "pull": second(b.shelf.Pull(b.ctx(), b.th, "", b.repo, "", false)), "merge": second(b.shelf.Merge(b.ctx(), b.th, "", b.repo, "")),
		} {
			if thole.CodeOf(err) != thole.CodeConflict || thole.HintOf(err) == "" {
				t.Errorf("%s: %v", what, err)
			}
		}
		b.th.Turns++
		if said, err := b.shelf.Undo(b.ctx(), b.th, "", 3, 2); err != nil || b.read(filepath.Join(b.repo, "mine")) != "of the user\n" || b.read(filepath.Join(b.repo, "between")) == "" {
			t.Errorf("%s, %v", said, err)
		}
		b.after(3)
		// What the user did since is in the way only where the turn's own changes are.
		b.write(filepath.Join(b.repo, "new"), "new, and changed by the user\n")
		b.th.Turns++
		if said, err := b.shelf.Undo(b.ctx(), b.th, "", 4, 1); thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), "new") || thole.HintOf(err) == "" {
			t.Errorf("%s, %v", said, err)
		}
		b.write(filepath.Join(b.repo, "new"), "new\n")
		said, err := b.shelf.Undo(b.ctx(), b.th, "", 4, 1)
		if err != nil || b.git(b.repo, "rev-parse", "HEAD") != head || b.git(b.repo, "branch", "--show-current") != "main" {
			t.Errorf("%s, %v", said, err)
		}
		if b.read(filepath.Join(b.repo, "between")) != "by the user, between the turns\n" {
			t.Error("the user's own work went too")
		}
		if err := os.Remove(filepath.Join(b.repo, "between")); err != nil {
			t.Fatal(err)
		}
		if got := b.git(b.repo, "status", "--porcelain"); got != before {
			t.Errorf("status %q, was %q", got, before)
		}
		if got := b.git(b.repo, "show", ":a.txt"); got != "staged by the user" {
			t.Errorf("the index has %q", got)
		}
		if refs := b.git(b.repo, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main\nrefs/thole/base/"+string(b.th.ID) {
			t.Errorf("refs %s", refs)
		}
		if n := objectsIn(t, b.home); n > 40 {
			t.Errorf("the shelf has %d objects of its own", n)
		}
		if err := b.shelf.Remove(b.ctx(), b.th.ID); err != nil {
			t.Fatal(err)
		}
		if refs := b.git(b.repo, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
			t.Errorf("refs after the end %s", refs)
		}
		if left, _ := os.ReadDir(b.home); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// objectsIn counts objects that are files of their own.
func objectsIn(t *testing.T, dir string) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.git", "objects", "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Below the top of a repository only the directory counts, by the rules from above it; a
// directory in no repository and a second working tree do as well.
func TestInPlaceElsewhere(t *testing.T) {
	files := map[string]string{".gitignore": "*.log\n/sub/made/\n/other/\nsub/deep/**/x\n# no\n", "sub/a": "a\n", "sub/.gitignore": "!keep.log\n", "top": "top\n"}
	for what, prepare := range map[string]func(b *bench){
		"below the top": func(b *bench) {
			b.inPlace(filepath.Join(b.repo, "sub"))
		},
		"a second working tree": func(b *bench) {
			b.git(b.repo, "worktree", "add", "-q", filepath.Join(b.base, "second"))
			b.inPlace(filepath.Join(b.base, "second", "sub"))
		},
		"no repository": func(b *bench) {
			dir := filepath.Join(b.base, "plain")
			b.write(filepath.Join(dir, "a"), "a\n")
			b.write(filepath.Join(dir, ".gitignore"), "*.log\n!keep.log\n/made/\n/deep/**/x\n")
			b.inPlace(dir)
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, files)
			prepare(b)
			head := b.git(b.repo, "rev-parse", "HEAD")
			b.agent(func(dir string) {
				for _, name := range []string{"a", "new", "x.log", "keep.log", "made/y", "other/z", "deep/er/x", "deep/er/y"} {
					b.write(filepath.Join(dir, name), "changed\n")
				}
			})
			var got []string
			for _, f := range b.diff(shelf.Range{}).Files {
				got = append(got, string(f.Kind)+" "+f.Path)
			}
			if all := strings.Join(got, ","); all != "modified a,added deep/er/y,added keep.log,added new,added other/z" {
				t.Errorf("%s", all)
			}
			b.th.Turns++
			if said, err := b.shelf.Undo(b.ctx(), b.th, "", 2, 1); err != nil || b.read(filepath.Join(b.files, "a")) != "a\n" || b.read(filepath.Join(b.files, "x.log")) != "changed\n" {
				t.Errorf("%s, %v", said, err)
			}
			if _, err := os.Lstat(filepath.Join(b.files, "new")); err == nil || b.git(b.repo, "rev-parse", "HEAD") != head || b.git(b.repo, "status", "--porcelain") != "" {
				t.Errorf("%v; status %s", err, b.git(b.repo, "status", "--porcelain"))
			}
		})
	}
}

// A directory of the user in which an agent makes a file that leads git to another
// repository brings nothing of that one onto the shelf.
func TestInPlaceFollowsNobody(t *testing.T) {
	for what, plant := range map[string]func(b *bench, private, dir string){
		"a file": func(b *bench, private, dir string) { b.write(filepath.Join(dir, ".git"), "gitdir: "+private+"/.git\n") },
		"a link": func(b *bench, private, dir string) {
			b.link(filepath.Join(private, ".git"), filepath.Join(dir, ".git"))
		},
		"commondir": func(b *bench, private, dir string) {
			b.write(filepath.Join(dir, ".git", "HEAD"), b.git(private, "rev-parse", "HEAD")+"\n")
			b.write(filepath.Join(dir, ".git", "commondir"), private+"/.git\n")
		},
		"a false working tree": func(b *bench, private, dir string) {
			b.write(filepath.Join(dir, ".git"), "gitdir: fake\n")
			b.write(filepath.Join(dir, "fake", "HEAD"), b.git(private, "rev-parse", "HEAD")+"\n")
			b.write(filepath.Join(dir, "fake", "gitdir"), dir+"/.git\n")
			b.write(filepath.Join(dir, "fake", "commondir"), private+"/.git\n")
		},
		"alternates": func(b *bench, private, dir string) {
			b.git(dir, "init", "-q")
			b.write(filepath.Join(dir, ".git", "objects", "info", "alternates"), private+"/.git/objects\n")
			b.write(filepath.Join(dir, ".git", "HEAD"), b.git(private, "rev-parse", "HEAD")+"\n")
		},
		"objects": func(b *bench, private, dir string) {
			b.git(dir, "init", "-q")
			if err := os.RemoveAll(filepath.Join(dir, ".git", "objects")); err != nil {
				b.t.Fatal(err)
			}
			b.link(filepath.Join(private, ".git", "objects"), filepath.Join(dir, ".git", "objects"))
			b.write(filepath.Join(dir, ".git", "HEAD"), b.git(private, "rev-parse", "HEAD")+"\n")
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, map[string]string{"secret": "of another project\n"})
			dir := filepath.Join(b.base, "here")
			b.write(filepath.Join(dir, "a"), "a\n")
			b.inPlace(dir)
			b.agent(func(dir string) {
				plant(b, b.repo, dir)
				b.write(filepath.Join(dir, "b"), "b\n")
			})
			if d := b.diff(shelf.Range{}); d.Total == 0 {
				t.Errorf("%+v", d)
			}
			shelves, _ := filepath.Glob(b.home + "/*.git")
			if len(shelves) != 1 {
				t.Fatalf("%v", shelves)
			}
			if objects := b.git(shelves[0], "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"); strings.Contains(objects, b.git(b.repo, "rev-parse", "HEAD")) || strings.Contains(objects, b.git(b.repo, "rev-parse", "HEAD:secret")) {
				t.Error("the shelf has what another repository has")
			}
			if refs := b.git(b.repo, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
				t.Errorf("refs %s", refs)
			}
		})
	}
}

func (b *bench) link(to, at string) {
	b.t.Helper()
	if err := os.Symlink(to, at); err != nil {
		b.t.Fatal(err)
	}
}

// An undo of the first commit that a repository has leaves it without any, as it was.
func TestUndoOfAFirstCommit(t *testing.T) {
	b := newBench(t, plainFiles)
	dir := filepath.Join(b.base, "young")
	b.mkdir(dir)
	b.git(dir, "init", "-q", "-b", "main")
	b.write(filepath.Join(dir, "mine"), "of the user\n")
	b.inPlace(dir)
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "new"), "new\n")
		b.git(dir, "add", "new")
		b.git(dir, "commit", "-q", "-m", "by the agent")
	})
	if said, err := b.shelf.Undo(b.ctx(), b.th, "", 2, 1); err != nil {
		t.Fatalf("%s, %v", said, err)
	}
	if got := b.git(dir, "status", "--porcelain"); got != "?? mine" {
		t.Errorf("git says %q", got)
	}
	if refs := b.git(dir, "for-each-ref", "refs/heads"); refs != "" {
		t.Errorf("there is %s", refs)
	}
}

// Where the state before a turn could not be kept, nobody knows what the turn did: the
// user's files are not taken for its work, and an undo says so.
func TestInPlaceWithoutTheStateBefore(t *testing.T) {
	b := newBench(t, plainFiles)
	b.inPlace(b.repo)
	if d := b.diff(shelf.Range{}); d.Total != 0 {
		t.Errorf("before the first turn there are %+v", d.Files)
	}
	b.write(filepath.Join(b.repo, "a.txt"), "changed\n")
	b.th.Turns++
	b.after(1)
	if d := b.diff(shelf.Range{}); d.Total != 0 {
		t.Errorf("changed are %+v", d.Files)
	}
	before := b.git(b.repo, "status", "--porcelain")
	if said, err := b.shelf.Undo(b.ctx(), b.th, "", 2, 1); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("%s, %v", said, err)
	}
	if got := b.git(b.repo, "status", "--porcelain"); got != before {
		t.Errorf("git says %q", got)
	}
	b.agent(func(dir string) { b.write(filepath.Join(dir, "more"), "more\n") })
	if d := b.diff(shelf.Range{}); d.Total != 1 || d.Files[0].Path != "more" {
		t.Errorf("changed are %+v", d.Files)
	}
}
