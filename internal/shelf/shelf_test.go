package shelf_test

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/lab"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agentUser is a user of the range that agents of root run as.
const agentUser = 1_900_000_321

// bench is a shelf, a repository of a user, and a workspace that an agent writes, as the
// server lays one for a branch of that repository.
type bench struct {
	t     *testing.T
	shelf *shelf.Shelf
	base  string
	home  string // with all shelves
	repo  string // the user's
	files string // the agent's
	th    fold.Thread
}

func runner(t *testing.T) *git.Runner {
	t.Helper()
	bwrap := lab.Bwrap(t)
	return &git.Runner{Program: lab.Git(t), Self: lab.Thole(t), Box: func(context.Context) (string, error) { return bwrap, nil }}
}

// newBench makes a repository with a first commit of the files that are given.
func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, base: lab.Open(t)}
	b.home, b.repo, b.files = filepath.Join(b.base, "home"), filepath.Join(b.base, "repo"), filepath.Join(b.base, "files")
	b.shelf = shelf.New(shelf.Config{Dir: b.home, Git: runner(t), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	b.mkdir(b.repo)
	b.git(b.repo, "init", "-q", "-b", "main")
	for name, text := range files {
		b.write(filepath.Join(b.repo, name), text)
	}
	b.git(b.repo, "add", "-A")
	b.git(b.repo, "commit", "-q", "--allow-empty", "-m", "first")
	b.th = fold.Thread{ID: thole.NewID[thole.ThreadID](time.Now()), Owner: thole.DefaultOwner, Name: "Make it better", Files: thole.Source{
		Kind: thole.SourceBranch, Repo: b.repo, Ref: "HEAD", Commit: b.git(b.repo, "rev-parse", "HEAD"), Branch: "thole/make-it-better", Objects: []string{filepath.Join(b.repo, ".git", "objects")},
	}}
	b.lay()
	return b
}

// lay makes the workspace.
func (b *bench) lay() {
	b.t.Helper()
	b.git(b.base, "clone", "-q", "--shared", b.repo, b.files)
	b.git(b.files, "checkout", "-q", "-b", b.th.Files.Branch)
	b.git(b.files, "config", "user.name", "User")
	b.git(b.files, "config", "user.email", "user@example.test")
	b.own()
}

// own gives the workspace to the agent.
func (b *bench) own() {
	b.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(b.files, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, agentUser, agentUser)
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// git runs it as a person does, with nobody's configuration.
func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	return strings.TrimSpace(string(b.gitRaw(dir, args...)))
}

func (b *bench) gitRaw(dir string, args ...string) []byte {
	b.t.Helper()
	cmd := command(b.t, dir, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, said.String())
	}
	return out
}

// command is git as a person types it.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(lab.Git(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=core.quotePath", "GIT_CONFIG_VALUE_1=false", "GIT_CONFIG_KEY_2=protocol.file.allow", "GIT_CONFIG_VALUE_2=always"}
	return cmd
}

func (b *bench) mkdir(dir string) {
	b.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(path, text string) {
	b.t.Helper()
	b.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// agent changes the workspace as a turn does, and ends the turn.
func (b *bench) agent(change func(dir string)) {
	b.t.Helper()
	b.turn(change)
	b.after(b.th.Turns)
}

// after ends a turn.
func (b *bench) after(turn int) {
	b.t.Helper()
	if err := b.shelf.After(b.ctx(), b.th, turn, b.at()); err != nil {
		b.t.Fatal(err)
	}
}

// turn begins a turn that changes the workspace.
func (b *bench) turn(change func(dir string)) {
	b.t.Helper()
	b.th.Turns++
	if err := b.shelf.Before(b.ctx(), b.th, b.th.Turns, b.at()); err != nil {
		b.t.Fatal(err)
	}
	change(b.files)
	b.own()
}

func (b *bench) ctx() context.Context { return b.t.Context() }
func (b *bench) at() string           { return b.files }

func (b *bench) diff(r shelf.Range) shelf.Diff {
	b.t.Helper()
	d, err := b.shelf.Diff(b.ctx(), b.th, b.at(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

func (b *bench) patch(r shelf.Range) string {
	b.t.Helper()
	var out strings.Builder
	if err := b.shelf.Patch(b.ctx(), b.th, b.at(), r, &out); err != nil {
		b.t.Fatal(err)
	}
	return out.String()
}

// gitDiff is what git says of a copy of the workspace.
func (b *bench) gitDiff(base string) string {
	b.t.Helper()
	copied := filepath.Join(b.t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", b.files, copied).CombinedOutput(); err != nil {
		b.t.Fatalf("%v %s", err, out)
	}
	b.git(copied, "add", "-A")
	return string(b.gitRaw(copied, "diff", "--cached", "-M", "--full-index", "--binary", base))
}

// odd changes a workspace in every way that is hard to write down.
func (b *bench) odd(dir string) {
	b.write(filepath.Join(dir, "a.txt"), "one\ntwo changed\nthree\n")
	b.write(filepath.Join(dir, "new dir", "new \"file\"\nwith\ttabs"), "text\n")
	b.write(filepath.Join(dir, "bytes-\xff\xfe"), "text")
	b.write(filepath.Join(dir, "binary"), "\x00\x01\x02")
	b.write(filepath.Join(dir, "ignored", "x"), "not seen")
	b.write(filepath.Join(dir, ".git", "info", "exclude"), "/excluded\n")
	b.write(filepath.Join(dir, "excluded"), "not seen")
	for _, err := range []error{
		os.Rename(filepath.Join(dir, "moved"), filepath.Join(dir, "moved there")), os.Remove(filepath.Join(dir, "gone")), os.Chmod(filepath.Join(dir, "run.sh"), 0o755),
		os.Symlink("../../../etc/passwd", filepath.Join(dir, "link")), os.Remove(filepath.Join(dir, "becomes")), os.Symlink("a.txt", filepath.Join(dir, "becomes")),
	} {
		if err != nil {
			b.t.Error(err)
		}
	}
	b.mkdir(filepath.Join(dir, "below"))
	b.git(filepath.Join(dir, "below"), "init", "-q")
	b.write(filepath.Join(dir, "below", "f"), "f")
	b.git(filepath.Join(dir, "below"), "add", "-A")
	b.git(filepath.Join(dir, "below"), "commit", "-q", "-m", "below")
}

var plainFiles = map[string]string{
	"a.txt": "one\ntwo\nthree\n", "gone": "gone\n", "moved": strings.Repeat("a line that stays\n", 20), "run.sh": "#!/bin/sh\n", "becomes": "a file\n", ".gitignore": "/ignored/\n",
	".gitattributes": "*.go diff=golang\n*.lock -diff\n", "m.go": "package m\n\nfunc A() {\n\t_ = 1\n\t_ = 2\n\t_ = 3\n\t_ = 4\n\t_ = 5\n}\n", "x.lock": "a\n",
}

// The diff of a thread is that of git in a copy of its files, whatever they are called.
func TestDiffIsThatOfGit(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := newBench(t, plainFiles)
		if d := b.diff(shelf.Range{}); d.Total != 0 || !d.Live || len(d.Turns) != 0 {
			t.Errorf("before the first turn: %+v", d)
		}
		b.agent(func(dir string) {
			b.odd(dir)
			b.write(filepath.Join(dir, "m.go"), strings.Replace(plainFiles["m.go"], "5", "6", 1))
			b.write(filepath.Join(dir, "x.lock"), "b\n")
		})
		want := b.gitDiff("HEAD")
		for what, r := range map[string]shelf.Range{"all": {Context: 3}, "of the turn": {Turn: 1, Context: 3}} {
			if got := b.patch(r); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
			}
		}
		d := b.diff(shelf.Range{Patches: true, Context: 3})
		kinds := map[string]shelf.Kind{}
		joined := ""
		for _, f := range d.Files {
			kinds[f.Path] = f.Kind
			joined += string(f.Patch)
			if (f.Path == "binary" || f.Path == "x.lock") != f.Binary || f.Path == "moved there" && f.Old != "moved" || f.Path == "below" && f.Mode != "160000" ||
				f.Path == "run.sh" && (f.OldMode != "100644" || f.Mode != "100755") || f.Path == "a.txt" && (f.Added != 1 || f.Removed != 1) {
				t.Errorf("%+v", f)
			}
		}
		for path, kind := range map[string]shelf.Kind{
			"a.txt": shelf.Modified, "gone": shelf.Deleted, "moved there": shelf.Renamed, "run.sh": shelf.Modified, "link": shelf.Added, "becomes": shelf.TypeChange,
			"new dir/new \"file\"\nwith\ttabs": shelf.Added, "bytes-\xff\xfe": shelf.Added, "binary": shelf.Added, "below": shelf.Added, "m.go": shelf.Modified, "x.lock": shelf.Modified,
		} {
			if kinds[path] != kind {
				t.Errorf("%q: %q, want %q", path, kinds[path], kind)
			}
		}
		if len(kinds) != 12 || d.Total != 12 || d.Truncated || len(d.Left) != 0 || len(d.Turns) != 1 || !d.Turns[0].Changed {
			t.Errorf("%+v", d)
		}
		if strings.Count(joined, "diff --git") != 11 || !strings.Contains(joined, "+two changed") {
			t.Errorf("patches: %s", joined)
		}
		if one := b.diff(shelf.Range{Path: "a.txt", Patches: true}); len(one.Files) != 1 || !strings.Contains(string(one.Files[0].Patch), "@@ -2 +2 @@") {
			t.Errorf("one file: %+v", one)
		}
	})
}
