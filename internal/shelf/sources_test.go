package shelf_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/gitremote"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// A thread that began with nothing has all its files as changes; one that had files
// before it had a shelf begins with those.
func TestThreadsWithoutARepository(t *testing.T) {
	b := newBench(t, nil)
	b.files = filepath.Join(b.base, "plain")
	b.mkdir(b.files)
	b.th.Files = thole.Source{}
	b.agent(func(string) {}) // it said something and wrote nothing
	if left, _ := os.ReadDir(b.home); len(left) != 0 {
		t.Errorf("an empty thread has a shelf: %v", left)
	}
	b.agent(func(dir string) {
		b.write(filepath.Join(dir, "a"), "a\n")
		b.write(filepath.Join(dir, ".agent_data", "secret"), "of the agent\n")
	})
	if d := b.diff(shelf.Range{}); d.Total != 1 || d.Files[0].Path != "a" {
		t.Errorf("%+v", d)
	}
	if d := b.diff(shelf.Range{Turn: 1}); d.Total != 0 {
		t.Errorf("%+v", d)
	}
	to := filepath.Join(b.base, "to")
	b.mkdir(to)
	if a, err := b.shelf.Apply(b.ctx(), b.th, b.at(), to, shelf.ApplyNow); err != nil || !a.Done || b.read(filepath.Join(to, "a")) != "a\n" {
		t.Errorf("%+v, %v", a, err)
	}
	p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false)
	if err != nil || p.Branch != "thole/make-it-better" || p.Commits != 1 || b.git(b.repo, "ls-tree", "--name-only", p.Branch) != "a" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := b.shelf.Merge(b.ctx(), b.th, b.at(), b.repo, ""); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("a merge of strangers: %v", err)
	}

	old := newBench(t, nil)
	old.files = filepath.Join(old.base, "plain")
	old.write(filepath.Join(old.files, "before"), "before\n")
	old.th.Files, old.th.Turns = thole.Source{}, 7
	old.agent(func(dir string) { old.write(filepath.Join(dir, "after"), "after\n") })
	if d := old.diff(shelf.Range{}); d.Total != 1 || d.Files[0].Path != "after" {
		t.Errorf("%+v", d)
	}
	if _, err := old.shelf.Diff(old.ctx(), old.th, old.at(), shelf.Range{Turn: 3}); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("a turn before there was a shelf: %v", err)
	}
	if _, err := old.shelf.Undoable(old.ctx(), old.th, old.at(), 3); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("%v", err)
	}
	gone := func(_ context.Context, id thole.ThreadID) bool { return id == old.th.ID }
	old.shelf.Sweep(old.ctx(), func(context.Context, thole.ThreadID) bool { return false })
	if left, _ := os.ReadDir(old.home); len(left) == 0 {
		t.Error("a thread that is there lost its shelf")
	}
	old.shelf.Sweep(old.ctx(), gone)
	if left, _ := os.ReadDir(old.home); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// What the user took along uncommitted is no change of the thread, and a commit of its own
// in its branch; a co-author is named in the agent's alone.
func TestCarriedFilesAndCoAuthor(t *testing.T) {
	b := newBench(t, plainFiles)
	b.shelf = shelf.New(shelf.Config{Dir: b.home, Git: runner(t), CoAuthor: "An Agent <agent@example.test>"})
	b.write(filepath.Join(b.repo, "a.txt"), "one\ntwo, not committed\nthree\n")
	b.git(b.repo, "stash", "push", "-q")
	b.th.Files.Carried = b.git(b.repo, "rev-parse", "stash")
	b.git(b.repo, "stash", "apply", "-q")
	b.write(filepath.Join(b.files, "a.txt"), "one\ntwo, not committed\nthree\n")
	b.own()
	if d := b.diff(shelf.Range{}); d.Total != 0 {
		t.Errorf("%+v", d)
	}
	b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), "new\n") })
	if d := b.diff(shelf.Range{}); d.Total != 1 {
		t.Errorf("%+v", d)
	}
	p, err := b.shelf.Pull(b.ctx(), b.th, b.at(), b.repo, "", false)
	if err != nil || b.git(b.repo, "log", "--format=%s|%(trailers:separator=%x2C)", "main.."+p.Branch) != "Make it better|Co-authored-by: An Agent <agent@example.test>\nUncommitted changes that were taken along|" {
		t.Errorf("%+v, %v: %s", p, err, b.git(b.repo, "log", "--format=%s|%(trailers)", "main.."+p.Branch))
	}
	if b.git(b.repo, "diff", "--name-only", p.Branch+"^", p.Branch) != "new" {
		t.Error("the agent's commit has what the user did")
	}
	if a := b.apply(shelf.ApplyNow); !a.Done || a.Total != 1 {
		t.Errorf("%+v", a)
	}
}

// The server pushes as its own user and asks nobody; paths of this machine are for the
// command line.
func TestPushOfTheServer(t *testing.T) {
	b := newBench(t, plainFiles)
	remote := filepath.Join(b.base, "remote.git")
	b.git(b.base, "init", "-q", "--bare", remote)
	b.git(remote, "config", "http.receivepack", "true")
	b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), "new\n") })
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("NO_PROXY", "127.0.0.1")
	b.write(filepath.Join(home, ".gitconfig"), "[safe]\n\tdirectory = *\n")
	if _, _, err := b.shelf.Push(b.ctx(), b.th, b.at(), "", false); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("without a remote: %v", err)
	}
	b.git(b.repo, "remote", "add", "origin", remote)
	if w, _, err := b.shelf.Push(b.ctx(), b.th, b.at(), "", false); thole.CodeOf(err) != thole.CodeUnsupported || w.Remote != remote {
		t.Errorf("to a path: %+v, %v", w, err)
	}
	http := gitremote.HTTP(t, b.base) + "/remote.git"
	if _, _, err := b.shelf.Push(b.ctx(), b.th, b.at(), http, false); thole.CodeOf(err) != thole.CodeUnavailable || thole.HintOf(err) == "" {
		t.Errorf("without a password: %v", err)
	}
	b.write(filepath.Join(home, ".gitconfig"), "[safe]\n\tdirectory = *\n[credential]\n\thelper = \"!f() { echo username="+gitremote.User+"; echo password="+gitremote.Password+"; }; f\"\n")
	sshd := gitremote.SSH(t)
	t.Setenv("GIT_SSH_COMMAND", sshd.Command())
	for i, to := range []string{http, sshd.URL + remote} {
		b.agent(func(dir string) { b.write(filepath.Join(dir, "new"), strings.Repeat("newer\n", i+1)) })
		w, _, err := b.shelf.Push(b.ctx(), b.th, b.at(), to, false)
		if err != nil || b.git(remote, "rev-parse", w.Branch) != w.Commit {
			t.Errorf("%s: %+v, %v", to, w, err)
		}
	}
	for _, to := range []string{"ext::sh -c touch", "-uevil", "fd::7", "http://x y", "gopher://h/p"} {
		if err := shelf.CheckRemote(to); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// Waiting for a shelf that another call holds ends with its context.
func TestWaitingEnds(t *testing.T) {
	b := newBench(t, plainFiles)
	held, release := make(chan struct{}), make(chan struct{})
	bwrap := lab.Bwrap(t)
	slow := shelf.New(shelf.Config{Dir: b.home, Git: &git.Runner{Program: lab.Git(t), Box: func(ctx context.Context) (string, error) {
		select {
		case <-held:
		default:
			close(held)
			<-release
		}
		return bwrap, nil
	}, Self: lab.Thole(t)}})
	over := make(chan error, 1)
	go func() { _, err := slow.Diff(context.Background(), b.th, b.at(), shelf.Range{}); over <- err }()
	<-held
	ctx, cancel := context.WithTimeout(b.ctx(), 10*time.Millisecond)
	defer cancel()
	if _, err := slow.Diff(ctx, b.th, b.at(), shelf.Range{}); err == nil || ctx.Err() == nil {
		t.Errorf("%v", err)
	}
	close(release)
	if err := <-over; err != nil {
		t.Error(err)
	}
}
