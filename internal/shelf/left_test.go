package shelf_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// A pipe in the place of a file that git reads holds no checkpoint, and is named.
func TestPipesHoldNobody(t *testing.T) {
	b := newBench(t, map[string]string{"a": "a\n"})
	pipes := []string{".gitmodules", "below/.git/HEAD", "sub/.gitattributes", "sub/deep/.gitignore"}
	b.turn(func(dir string) {
		b.write(filepath.Join(dir, "a"), "changed\n")
		b.write(filepath.Join(dir, "sub", "deep", "new"), "new\n")
		b.mkdir(filepath.Join(dir, "below"))
		b.git(filepath.Join(dir, "below"), "init", "-q")
		if err := os.Remove(filepath.Join(dir, "below", ".git", "HEAD")); err != nil {
			t.Fatal(err)
		}
		for _, name := range pipes {
			if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	// Another process has one open and writes nothing, so that it can be opened and not be read.
	held, err := os.OpenFile(filepath.Join(b.files, "sub", "deep", ".gitignore"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // less than git's own
	defer cancel()
	if err := b.shelf.After(ctx, b.th, 1, b.at()); err != nil {
		t.Fatal(err)
	}
	d := b.diff(shelf.Range{})
	if d.Total != 2 || d.Files[0].Path != "a" || d.Files[1].Path != "sub/deep/new" {
		t.Errorf("%+v", d.Files)
	}
	for _, name := range pipes {
		if !slices.Contains(d.Left, name+": a pipe") {
			t.Errorf("%s is not in %q", name, d.Left)
		}
	}
}

// Names that git takes for its own on other machines are in no state, and the diff says so.
func TestNamesThatGitRefuses(t *testing.T) {
	b := newBench(t, map[string]string{"a": "a\n"})
	names := []string{"git~1/config", "sub/.GIT"}
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "kept"), "kept\n")
		for _, name := range names {
			b.write(filepath.Join(dir, name), "x\n")
		}
	})
	d := b.diff(shelf.Range{})
	if d.Total != 1 || d.Files[0].Path != "kept" {
		t.Errorf("%+v", d.Files)
	}
	for _, name := range names {
		if !slices.Contains(d.Left, name+": git refuses files of this name") {
			t.Errorf("%s is not in %q", name, d.Left)
		}
	}
	if a := b.apply(shelf.ApplyNow); !a.Done || len(a.Notes) != 2 || !slices.Contains(a.Notes, "left out: "+names[0]+": git refuses files of this name") {
		t.Errorf("%+v", a)
	}
	// In the user's own files they are in nobody's way.
	b.write(filepath.Join(b.repo, names[0]), "mine\n")
	b.agent(func(dir string) { b.write(filepath.Join(dir, "more"), "more\n") })
	if a := b.apply(shelf.ApplyNow); !a.Done || b.read(filepath.Join(b.repo, names[0])) != "mine\n" {
		t.Errorf("%+v", a)
	}
}

// A branch that names a commit of a repository below does not have that commit, and
// says so.
func TestCommitsOfRepositoriesBelow(t *testing.T) {
	b := newBench(t, plainFiles)
	b.agent(b.odd)
	commit := b.git(filepath.Join(b.files, "below"), "rev-parse", "HEAD")
	noted := func(notes []string) bool {
		return slices.ContainsFunc(notes, func(n string) bool {
			return strings.HasPrefix(n, "below is a repository of its own") && strings.Contains(n, commit[:12])
		})
	}
	p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false)
	if err != nil || !noted(p.Notes) {
		t.Errorf("pull: %q, %v", p.Notes, err)
	}
	w, err := b.shelf.Prepare(b.ctx(), b.th, b.at(), "")
	if err != nil || !noted(w.Notes) {
		t.Errorf("push: %q, %v", w.Notes, err)
	}
	m, err := b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, "")
	if err != nil || !m.Done || !noted(m.Notes) {
		t.Errorf("merge: %q, %v", m.Notes, err)
	}
}

// Conflicts say whose is what by names and not by hashes.
func TestConflictsNameTheSides(t *testing.T) {
	b := newBench(t, plainFiles)
	b.agent(func(dir string) {
		if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
			t.Fatal(err)
		}
	})
	b.write(filepath.Join(b.repo, "gone"), "of the user\n")
	check := func(what string, conflicts []shelf.Conflict, ours, theirs string) {
		t.Helper()
		if len(conflicts) != 1 || !strings.HasPrefix(conflicts[0].Why, "deleted in "+theirs) || !strings.Contains(conflicts[0].Why, "modified in "+ours) || regexp.MustCompile(`[0-9a-f]{40}|CONFLICT|left in tree`).MatchString(conflicts[0].Why) {
			t.Errorf("%s: %+v", what, conflicts)
		}
	}
	b.agent(func(dir string) { b.write(filepath.Join(dir, "fresh"), "of the agent\n") })
	b.write(filepath.Join(b.repo, "fresh"), "of the user\n")
	if c := b.apply(shelf.ApplyCheck).Conflicts; !slices.Contains(c, shelf.Conflict{Path: "fresh", Why: "both added it"}) {
		t.Errorf("of a file that both added: %+v", c)
	}
	if err := os.Remove(filepath.Join(b.repo, "fresh")); err != nil {
		t.Fatal(err)
	}
	check("apply", b.apply(shelf.ApplyCheck).Conflicts, "yours", `thread "Make it better"`)
	b.git(b.repo, "commit", "-qam", "by the user")
	m, err := b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, "")
	if err != nil {
		t.Fatal(err)
	}
	check("merge", m.Conflicts, "main", "thole/make-it-better")
}

// What the user has git overlook in their files is theirs all the same: it is merged with, and
// what is in its way is named. A file that is not there because they checked out others alone
// counts as unchanged.
func TestApplyOntoOverlookedFiles(t *testing.T) {
	b := newBench(t, map[string]string{"assumed": "1\n2\n3\n4\n5\n", "skipped": "1\n2\n3\n4\n5\n", "away/file": "away\n", "plain": "plain\n"})
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "assumed"), "1\n2\n3\n4\nfive\n")
		b.write(filepath.Join(dir, "skipped"), "1\n2\n3\n4\nfive\n")
		b.write(filepath.Join(dir, "plain"), "changed\n")
	})
	b.write(filepath.Join(b.repo, "assumed"), "one\n2\n3\n4\n5\n")
	b.write(filepath.Join(b.repo, "skipped"), "1\n2\n3\n4\nmine\n")
	b.git(b.repo, "update-index", "--assume-unchanged", "assumed")
	b.git(b.repo, "update-index", "--skip-worktree", "skipped", "away/file")
	if err := os.RemoveAll(filepath.Join(b.repo, "away")); err != nil {
		t.Fatal(err)
	}
	if a := b.apply(shelf.ApplyNow); a.Done || len(a.Conflicts) != 1 || a.Conflicts[0].Path != "skipped" {
		t.Errorf("%+v", a)
	}
	b.write(filepath.Join(b.repo, "skipped"), "one\n2\n3\n4\n5\n")
	if a := b.apply(shelf.ApplyNow); !a.Done || a.Total != 3 {
		t.Errorf("%+v", a)
	}
	for name, want := range map[string]string{"assumed": "one\n2\n3\n4\nfive\n", "skipped": "one\n2\n3\n4\nfive\n", "plain": "changed\n"} {
		if got := b.read(filepath.Join(b.repo, name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, err := os.Lstat(filepath.Join(b.repo, "away")); err == nil {
		t.Error("a file that was not checked out came")
	}
	if got := b.git(b.repo, "ls-files", "-v"); got != "h assumed\nS away/file\nH plain\nS skipped" {
		t.Errorf("the index has %s", got)
	}
}

// A branch of the user's can have the name of the directory that the thread's is in.
func TestPullNextToABranchOfTheSameName(t *testing.T) {
	b := newBench(t, plainFiles)
	b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), "new\n") })
	b.git(b.repo, "branch", "thole")
	if _, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false); thole.CodeOf(err) != thole.CodeConflict || !strings.Contains(thole.HintOf(err), "--as") {
		t.Errorf("%v, %s", err, thole.HintOf(err))
	}
	if p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "other", false); err != nil || p.Commits != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// The user is who git says they are in the repository, and what they have it ignore there is
// no change of a thread that works in it.
func TestTheUsersOwnConfigurationCounts(t *testing.T) {
	home := lab.Open(t)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	b := newBench(t, plainFiles)
	b.write(filepath.Join(home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@home\n[includeIf \"gitdir:"+b.repo+"/\"]\n\tpath = work\n")
	b.write(filepath.Join(home, "work"), "[user]\n\temail = ada@work\n")
	b.write(filepath.Join(home, ".config", "git", "ignore"), "*.swp")
	b.write(filepath.Join(b.repo, ".git", "info", "exclude"), "/excluded\n")
	b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), "new\n") })
	p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false)
	if err != nil || b.git(b.repo, "log", "-1", "--format=%an %ae %cn %ce", p.Branch) != "Ada ada@work Ada ada@work" {
		t.Errorf("%+v, %v: %s", p, err, b.git(b.repo, "log", "-1", "--format=%an %ae %cn %ce", p.Branch))
	}
	c := newBench(t, plainFiles)
	c.inPlace(c.repo)
	c.write(filepath.Join(c.repo, ".git", "info", "exclude"), "/excluded\n")
	c.th.Turns++ // the agent's files are the user's there
	if err := c.shelf.Before(c.ctx(), c.th, 1, c.repo); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".x.swp", "excluded", "ignored/x", "new"} {
		c.write(filepath.Join(c.repo, name), "new\n")
	}
	c.after(1)
	if d := c.diff(shelf.Range{}); d.Total != 1 || d.Files[0].Path != "new" {
		t.Errorf("changed are %+v", d.Files)
	}
}

// In a sparse checkout most files are not there, and nobody deleted them. What the agent
// fetched besides counts.
func TestASparseCopyDeletesNothing(t *testing.T) {
	b := newBench(t, map[string]string{"top": "top\n", "web/in": "in\n", "doc/out": "out\n", "doc/more": "more\n", "web/gone": "gone\n"})
	b.th.Files.Sparse = "/*\n!/*/\n/web/"
	b.git(b.files, "status") // they have another owner since they were checked out
	b.git(b.files, "sparse-checkout", "set", "web")
	if _, err := os.Lstat(filepath.Join(b.files, "doc")); err == nil {
		t.Fatal("git left files outside")
	}
	if d := b.diff(shelf.Range{}); d.Total != 0 {
		t.Errorf("a fresh copy: %+v", d.Files)
	}
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "web/in"), "changed\n")
		b.write(filepath.Join(dir, "doc/out"), "changed\n")
		b.write(filepath.Join(dir, "new/file"), "new\n")
		if err := os.Remove(filepath.Join(dir, "web/gone")); err != nil {
			t.Error(err)
		}
	})
	var got []string
	for _, f := range b.diff(shelf.Range{}).Files {
		got = append(got, string(f.Kind)+" "+f.Path)
	}
	if want := []string{"modified doc/out", "added new/file", "deleted web/gone", "modified web/in"}; !slices.Equal(got, want) {
		t.Errorf("changed are %q", got)
	}
	if p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false); err != nil || b.git(b.repo, "diff", "--name-status", "main", p.Branch) != "M\tdoc/out\nA\tnew/file\nD\tweb/gone\nM\tweb/in" {
		t.Errorf("%+v, %v", p, err)
	}
	b.th.Turns++
	if said, err := b.shelf.Undo(b.ctx(), b.th, b.at(), 2, 1); err != nil || !strings.Contains(said, "4 files changed") {
		t.Errorf("%s, %v", said, err)
	}
	if _, err := os.Lstat(filepath.Join(b.files, "doc/more")); err == nil {
		t.Error("an undo fetched a file")
	}
	if d := b.diff(shelf.Range{}); d.Total != 0 {
		t.Errorf("after the undo: %+v", d.Files)
	}
}
