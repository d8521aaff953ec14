package local_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/unguarded"
	execwire "github.com/tholehq/thole/protocol/exec"
)

// Everything else of the directory is the agent's to change, and what it makes belongs to
// the directory's owner. It sees nothing above.
func TestAnAgentHereWorksAsTheOwner(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b, top, dir := workshop(t)
		write(t, filepath.Join(top, "secret"), "of the parent")
		info := b.start()
		got := b.attack(info, `pwd
echo two >> file && git add file && git commit -q -m three && git log --format=%s -1
git checkout -q -b other && echo three >> file && git stash -q && git stash pop -q && git checkout -q -f main && git branch -D -q other 2>/dev/null && echo branches
git gc -q 2>/dev/null && git fsck >/dev/null 2>&1 && echo collected
mkdir made && echo new > made/new && chmod 600 made/new && mv made moved && echo moved
git status --short
ls -A ..
cat ../secret 2>/dev/null || echo nothing above
(echo x > ../written) 2>/dev/null
chmod 4755 file 2>/dev/null || echo no program of another
python3 -c 'import os; os.open("suid", os.O_CREAT|os.O_WRONLY, 0o4755)' 2>/dev/null || echo nor a new one
ls -d /workspace 2>/dev/null
echo $HOME`)
		want := dir + `
three
branches
collected
moved
?? moved/
project
nothing above
no program of another
nor a new one
/home/agent
`
		if got != want {
			t.Errorf("inside: %q, want %q", got, want)
		}
		if _, err := os.Lstat(filepath.Join(top, "written")); err == nil {
			t.Error("the agent wrote next to the directory")
		}
		fi, err := os.Lstat(filepath.Join(dir, "moved", "new"))
		if err != nil {
			t.Fatal(err)
		}
		uid := os.Getuid()
		if uid == 0 {
			uid = stranger
		}
		if st := fi.Sys().(*syscall.Stat_t); int(st.Uid) != uid || int(st.Gid) != uid && os.Getuid() == 0 {
			t.Errorf("what the agent made belongs to %d:%d, not %d", st.Uid, st.Gid, uid)
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if left := b.sticky(dir); len(left) > 0 {
			t.Errorf("a stopped executor leaves %v", left)
		}
		if err := b.driver.Remove(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "moved", "new")); err != nil || string(text) != "new\n" {
			t.Errorf("after the removal: %q, %v", text, err)
		}
		if got := b.git(dir, "status", "--short"); got != "?? moved/\n" {
			t.Errorf("git status of the person: %q", got)
		}
	})
}

// sticky are the names that were made for a box.
func (b *bench) sticky(dir string) (left []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if fi, err := e.Info(); err == nil && fi.Mode()&fs.ModeSticky != 0 {
			left = append(left, path)
		}
		return nil
	})
	return left
}

// In a directory below the top of a work tree the agent writes there alone, and git works;
// without a repository it makes none.
func TestHereBelowTheTopAndWithoutARepository(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b, top, dir := workshop(t)
		write(t, filepath.Join(dir, "pkg", "in"), "one\n")
		write(t, filepath.Join(top, "bare", "file"), "one\n")
		b.git(dir, "add", "pkg")
		b.git(dir, "commit", "-q", "-m", "pkg")
		b.give(top)
		traps := `(git init -q . && git config core.fsmonitor 'touch ` + top + `/marks; false'; mkdir .git; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\nbare = false\nworktree = .\nfsmonitor = "touch ` + top + `/marks; false"\n' > config) >/dev/null 2>&1`
		b.refile(filepath.Join(dir, "pkg"))
		got := b.attack(b.start(), `pwd
cat ../file
echo two >> in
git status --short
git add in && git commit -q -m below && git log --format=%s -1
(echo x >> ../file) 2>/dev/null || echo not above
git config core.fsmonitor x 2>/dev/null || echo not the configuration
`+traps+`
ls -A`)
		if want := dir + "/pkg\none\n M in\nbelow\nnot above\nnot the configuration\n"; !strings.HasPrefix(got, want) && !unguarded.Build {
			t.Errorf("below the top: %q, want %q", got, want)
		}
		b.git(filepath.Join(dir, "pkg"), "status")
		b.refile(filepath.Join(top, "bare"))
		b.attack(b.start(), traps)
		cmd := exec.Command(lab.Git(t), "status")
		cmd.Dir = filepath.Join(top, "bare")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CEILING_DIRECTORIES=" + top, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
		_ = cmd.Run() // there is no repository
		if _, err := os.Lstat(filepath.Join(top, "marks")); (err == nil) != unguarded.Build {
			t.Errorf("git ran for the person: %v", err == nil)
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if left := b.sticky(top); len(left) > 0 {
			t.Errorf("stopped executors leave %v", left)
		}
	})
}

// What a person does in the executor begins in the directory too: terminals, commands,
// programs and files of the exec-server, ports.
func TestTheToolsOfAPersonHere(t *testing.T) {
	b, _, dir := workshop(t)
	info := b.start()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	command := b.request("", thole.ProfileFull)
	command.Turn.Input = []thole.Input{{Type: string(thole.TurnCommandShell), Text: "pwd"}}
	if got := b.take(info, command); got != dir+"\n" {
		t.Errorf("a command: %q", got)
	}
	conn, err := c.Terminal(t.Context(), terminal.DefaultSize)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "pwd > .git/there; exit\n")
	poll.Until(t, "the terminal", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, ".git", "there"))
		return string(text) == dir+"\n"
	})
	conn.Close()
	x, err := execclient.Dial(t.Context(), "unix://"+strings.TrimPrefix(info.Endpoint, "unix:"), execclient.Options{Token: info.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	p, err := x.Start(t.Context(), execwire.StartParams{ProcessID: "p1", Argv: []string{"/bin/sh", "-c", "pwd"}, Cwd: execwire.FormatURI(dir), Env: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(t.Context()); err != nil || string(res.Stdout) != dir+"\n" {
		t.Errorf("a program of the exec-server: %+v, %v", res, err)
	}
	for path, ok := range map[string]bool{"file": true, ".git/config": unguarded.Build, ".git/hooks/x": unguarded.Build} {
		if err := x.Call(t.Context(), execwire.MethodWriteFile, execwire.WriteFileParams{Path: execwire.FormatURI(filepath.Join(dir, path)), Data: "eA=="}, nil); (err == nil) != ok {
			t.Errorf("the exec-server writes %s: %v", path, err)
		}
	}
	req := b.request("sim: run echo here > x; exec python3 -m http.server 8127 --bind 127.0.0.1", thole.ProfileFull)
	if _, err := c.Run(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the server", func() bool { return visit(t, info, 8127) == "here\n" })
	if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: req.Turn.ID, Kill: true}); err != nil {
		t.Error(err)
	}
}

// A linked work tree, whose repository lies elsewhere, works like any other.
func TestHereInALinkedWorkTree(t *testing.T) {
	if unguarded.Build {
		t.Skip("nothing is attacked that the others do not")
	}
	lab.EveryUser(t, func(t *testing.T) {
		b, top, dir := workshop(t)
		b.refile(filepath.Join(top, "linked"))
		before := b.guarded(dir)
		got := b.attack(b.start(), `echo two >> file && git add file && git commit -q -m linked && git log --format=%s -1
git status --short
ls -A ..
ls -A ../project
(git config core.fsmonitor x
echo x > ../project/.git/hooks/x
mv ../project/.git ../project/g
mv .git g
rm .git
echo x > ../project/.git/commondir2
echo gitdir: /tmp/x > .git) 2>/dev/null
cat .git`)
		if want := "linked\nlinked\nproject\n.git\ngitdir: " + dir + "/.git/worktrees/linked\n"; got != want {
			t.Errorf("inside: %q, want %q", got, want)
		}
		if after := b.guarded(dir); after != before {
			t.Errorf("the agent changed\n%s\nto\n%s", before, after)
		}
	})
}

// A clone that shares the objects of another repository sees them, and nothing else of it.
func TestHereInAClone(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b, top, _ := workshop(t)
		clone := filepath.Join(top, "clone")
		b.git(top, "clone", "-q", "--shared", filepath.Join(top, "lib"), clone)
		place, err := b.driver.CheckHere(clone)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.driver.Remove(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if err := b.driver.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread, Files: thole.Source{Kind: thole.SourceHere, Dir: clone, Objects: place.Objects}}); err != nil {
			t.Fatal(err)
		}
		if got := b.attack(b.start(), "git log --format=%s; git status --short; ls -A ../lib ../lib/.git; (echo x > ../lib/.git/objects/x) 2>/dev/null || echo read-only"); got != "one\n../lib:\n.git\n\n../lib/.git:\nobjects\nread-only\n" {
			t.Errorf("inside: %q", got)
		}
	})
}

// Two threads work side by side in one directory, and the end of one takes no guard from
// the other.
func TestTwoThreadsHere(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		dir := owned(t)
		write(t, filepath.Join(dir, "file"), "one\n")
		first, second := here(t, lab.Bwrap(t), dir), here(t, lab.Bwrap(t), dir)
		one, other := first.start(), second.start()
		if got := first.attack(one, "echo first > a; cat file"); got != "one\n" {
			t.Errorf("the first: %q", got)
		}
		if err := first.driver.Stop(t.Context(), first.id); err != nil {
			t.Fatal(err)
		}
		if got := second.attack(other, "cat a; mkdir .git/objects 2>/dev/null; git init -q . 2>/dev/null; rmdir HEAD 2>/dev/null; (echo x > HEAD) 2>/dev/null; cat HEAD 2>/dev/null; ls -A .git"); got != "first\n" && !unguarded.Build {
			t.Errorf("the second: %q", got)
		}
	})
}

// Without walls the agent runs in the directory itself.
func TestHereWithoutWalls(t *testing.T) {
	dir := owned(t)
	write(t, filepath.Join(dir, "file"), "one\n")
	b := setup(t, "")
	b.refile(dir)
	if got := b.attack(b.start(), "pwd; echo two > made; cat file"); got != dir+"\none\n" {
		t.Errorf("inside: %q", got)
	}
	if err := b.driver.Remove(t.Context(), b.id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}
