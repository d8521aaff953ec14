package branch_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/branch"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// rig is a home with branches, and the threads that are there.
type rig struct {
	t     *testing.T
	home  string
	user  string // the home directory of the user
	cfg   branch.Config
	b     *branch.Branches
	alive []thole.Source
	now   time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Now()}
	r.home, r.user = filepath.Join(t.TempDir(), "home"), t.TempDir()
	if err := os.Mkdir(r.home, 0o700); err != nil {
		t.Fatal(err)
	}
	bwrap := lab.Bwrap(t)
	r.cfg = branch.Config{
		Home: r.home, UserHome: r.user, Now: func() time.Time { return r.now },
		Git:   &git.Runner{Program: lab.Git(t), Self: lab.Thole(t), Box: func(context.Context) (string, error) { return bwrap, nil }},
		Alive: func(context.Context) ([]thole.Source, error) { return r.alive, nil },
	}
	r.b = branch.New(r.cfg)
	return r
}

func newThread() thole.ThreadID { return thole.NewID[thole.ThreadID](time.Now()) }

// resolve resolves what is asked for, by the user of this machine.
func (r *rig) resolve(id thole.ThreadID, q source.Request) (thole.Source, error) {
	r.t.Helper()
	q.Kind, q.Actor, q.Local = thole.SourceBranch, thole.LocalActor, true
	return r.b.Resolve(r.t.Context(), id, q)
}

func (r *rig) must(q source.Request) (thole.ThreadID, thole.Source) {
	r.t.Helper()
	id := newThread()
	s, err := r.resolve(id, q)
	if err != nil {
		r.t.Fatalf("resolve %+v: %v (%s)", q, err, thole.HintOf(err))
	}
	return id, s
}

// lay makes the files of a source in a directory of an agent's user.
func (r *rig) lay(id thole.ThreadID, s thole.Source) string {
	r.t.Helper()
	dir := r.workspace()
	if err := r.b.Lay(r.t.Context(), id, s, dir); err != nil {
		r.t.Fatalf("lay %+v: %v (%s)", s, err, thole.HintOf(err))
	}
	return dir
}

// agentUser is a user of the range that agents of root run as.
const agentUser = 1_900_000_321

// workspace is an empty directory of an agent's user below one that nobody else enters.
func (r *rig) workspace() string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "workspace")
	if err := os.Mkdir(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, agentUser, agentUser); err != nil {
			r.t.Fatal(err)
		}
	}
	return dir
}

// inside runs git in a workspace as its agent does: as the owner of the files, which sees
// the shared objects read-only.
func (r *rig) inside(dir string, s thole.Source, args ...string) string {
	r.t.Helper()
	uid := 0
	if os.Geteuid() == 0 {
		uid = agentUser
	}
	out, err := r.cfg.Git.Run(r.t.Context(), git.Cmd{Dir: dir, Args: args, Show: s.Objects, Write: []string{dir}, UID: uid})
	if err != nil {
		r.t.Fatalf("git %v in the workspace: %v", args, err)
	}
	return string(out)
}

// host runs git as the user does.
func host(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryHost(t, dir, args...)
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func tryHost(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(lab.Git(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func line(s string) string { return strings.TrimSpace(s) }

func write(t testing.TB, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// newRepo is a repository with two commits and files of every sort that git knows.
func newRepo(t *testing.T) string {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	host(t, repo, "init", "-q", "-b", "main")
	host(t, repo, "config", "user.name", "Ada \"L\" \\ [x]")
	host(t, repo, "config", "user.email", "ada@example.com")
	write(t, filepath.Join(repo, "README.md"), "one\n", 0o644)
	write(t, filepath.Join(repo, "web/src/app.js"), "app\n", 0o644)
	write(t, filepath.Join(repo, "run.sh"), "#!/bin/sh\n", 0o755)
	write(t, filepath.Join(repo, "new\nline \xff\x01 \"q\""), "odd\n", 0o644)
	write(t, filepath.Join(repo, ".gitignore"), "*.log\n", 0o644)
	for name, to := range map[string]string{"in": "README.md", "out": "/etc/passwd", "up": "../../../../etc", "nowhere": "none"} {
		if err := os.Symlink(to, filepath.Join(repo, name)); err != nil {
			t.Fatal(err)
		}
	}
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "first")
	write(t, filepath.Join(repo, "README.md"), "two\n", 0o644)
	host(t, repo, "commit", "-qam", "second")
	return repo
}

// tree lists the files of a directory as text: names, modes, content; without .git.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if rel == ".git" {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all = append(all, rel+" "+info.Mode().String()[3:4]+" "+string(text))
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			all = append(all, rel+" -> "+to)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func equalTrees(t testing.TB, got, want string) {
	t.Helper()
	a, b := tree(t, got), tree(t, want)
	if !slices.Equal(a, b) {
		t.Errorf("the files are\n%q\nand should be\n%q", a, b)
	}
}
