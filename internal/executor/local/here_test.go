package local_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/unguarded"
	execwire "github.com/tholehq/thole/protocol/exec"
)

// stranger owns a directory in which root's agents work.
const stranger = 4242

// owned is a directory of a person: for root, of another one.
func owned(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(lab.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (b *bench) give(dir string) {
	b.Helper()
	if os.Getuid() != 0 {
		return
	}
	if err := filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(at, stranger, stranger)
	}); err != nil {
		b.Fatal(err)
	}
}

// here makes an executor whose agents work in a directory.
func here(t *testing.T, bwrap, dir string) *bench {
	t.Helper()
	b := setup(t, bwrap)
	b.give(dir)
	b.refile(dir)
	return b
}

// workshop makes one whose agents work in a project, which has neighbours.
func workshop(t *testing.T) (b *bench, top, dir string) {
	t.Helper()
	b, top = setup(t, lab.Bwrap(t)), owned(t)
	dir = b.project(top)
	b.give(top)
	b.refile(dir)
	return b, top, dir
}

// git runs it on the host, as the person whose files they are.
func (b *bench) git(dir string, args ...string) string {
	b.Helper()
	cmd := exec.Command(lab.Git(b.T), append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=p", "-c", "user.email=p@p"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	if fi, err := os.Stat(dir); err == nil && os.Getuid() == 0 {
		st := fi.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %v in %s: %v %s", args, dir, err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// project is a repository with a submodule, a linked work tree and a nested repository.
func (b *bench) project(top string) string {
	b.Helper()
	dir, lib := filepath.Join(top, "project"), filepath.Join(top, "lib")
	for _, repo := range []string{lib, dir, filepath.Join(dir, "vendor", "dep")} {
		if err := os.MkdirAll(repo, 0o755); err != nil {
			b.Fatal(err)
		}
		b.git(repo, "init", "-q", "-b", "main")
		write(b.T, filepath.Join(repo, "file"), "one\n")
		b.git(repo, "add", "file")
		b.git(repo, "commit", "-q", "-m", "one")
	}
	write(b.T, filepath.Join(dir, ".gitignore"), "vendor\n")
	b.git(dir, "submodule", "--quiet", "add", lib, "sub")
	b.git(dir, "add", ".gitignore")
	b.git(dir, "commit", "-q", "-m", "two")
	b.git(dir, "worktree", "add", "-q", filepath.Join(top, "linked"))
	b.git(dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(b.git(lib, "rev-parse", "HEAD"))+",none") // one that is not there
	b.git(dir, "commit", "-q", "-m", "two")
	if err := os.Mkdir(filepath.Join(dir, "none"), 0o755); err != nil {
		b.Fatal(err)
	}
	b.git(dir, "config", "user.name", "p")
	b.git(dir, "config", "user.email", "p@p")
	return dir
}

// seizures are what an agent does to a repository so that git runs a program for whom
// works in it, and where the person then runs git. MARK is the program.
var seizures = map[string]struct{ script, at string }{
	"configuration":          {`git config core.fsmonitor 'MARK'`, ""},
	"configuration replaced": {`cp .git/config n; git config -f n core.fsmonitor 'MARK'; mv -f n .git/config`, ""},
	"configuration removed":  {`cp .git/config /tmp/n; git config -f /tmp/n core.fsmonitor 'MARK'; rm -f .git/config; cp /tmp/n .git/config`, ""},
	"hard link":              {`ln .git/config h; git config -f h core.fsmonitor 'MARK'; cp .git/config n; git config -f n core.fsmonitor 'MARK'; ln -f n .git/config`, ""},
	"hook":                   {`printf '#!/bin/sh\nMARK\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change; touch file`, ""},
	"hooks moved":            {`mv .git/hooks .git/h; mkdir .git/hooks; printf '#!/bin/sh\nMARK\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*; touch file`, ""},
	"repository moved":       {`mv .git g; cp -r g .git; git config core.fsmonitor 'MARK'`, ""},
	"repository exchanged":   {`cp -r .git g; git config -f g/config core.fsmonitor 'MARK'; python3 -c 'import ctypes,os; ctypes.CDLL(None).renameat2(-100,b"g",-100,b".git",2)'`, ""},
	"submodule":              {`git config -f .git/modules/sub/config core.fsmonitor 'MARK'`, ""},
	"submodule moved":        {`mv .git/modules/sub .git/modules/s; cp -r .git/modules/s .git/modules/sub; git config -f .git/modules/sub/config core.fsmonitor 'MARK'`, ""},
	"submodules moved":       {`mv .git/modules .git/m; cp -r .git/m .git/modules; git config -f .git/modules/sub/config core.fsmonitor 'MARK'`, ""},
	"submodule led away":     {`cp -r .git/modules/sub /tmp/e; mv /tmp/e e; git config -f e/config core.fsmonitor 'MARK'; git config -f e/config --unset core.worktree; rm -f sub/.git; echo 'gitdir: ../e' > sub/.git`, ""},
	"submodule exchanged":    {`cp -r .git/modules/sub e; git config -f e/config core.fsmonitor 'MARK'; git config -f e/config --unset core.worktree; cp -r sub s; mv sub t; mv s sub; rm -f sub/.git; echo 'gitdir: ../e' > sub/.git`, ""},
	"linked work tree":       {`cp -r .git e; git config -f e/config core.fsmonitor 'MARK'; rm -f .git/worktrees/linked/commondir; echo ../../../e > .git/worktrees/linked/commondir`, "../linked"},
	"linked work tree moved": {`cp -r .git e; git config -f e/config core.fsmonitor 'MARK'; mv .git/worktrees/linked .git/worktrees/l; cp -r .git/worktrees/l .git/worktrees/linked; echo ../../../e > .git/worktrees/linked/commondir`, "../linked"},
	"submodule made":         {`mkdir none 2>/dev/null; git init -q none; git -C none commit -q --allow-empty -m none; git -C none config core.fsmonitor 'MARK'`, ""},
	"nested repository":      {`git config -f vendor/dep/.git/config core.fsmonitor 'MARK'`, "vendor/dep"},
	"nested moved":           {`mv vendor v; cp -r v vendor; git config -f vendor/dep/.git/config core.fsmonitor 'MARK'`, "vendor/dep"},
}

// An agent that works in a person's directory cannot make git run anything for that
// person, by whichever way, and can do everything else to the repository.
func TestAnAgentHereCannotSeizeTheRepository(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		together := ""
		names := []string{}
		for name := range seizures {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if !unguarded.Build { // none has an effect, so that one box is enough
				together += "(" + strings.ReplaceAll(seizures[name].script, "MARK", "touch %[1]s/"+strings.ReplaceAll(name, " ", "-")+"; false") + ") >/dev/null 2>&1; "
				continue
			}
			t.Run(name, func(t *testing.T) {
				script := strings.ReplaceAll(seizures[name].script, "MARK", "touch %[1]s/mark; false")
				if marks := seize(t, script, seizures[name].at); len(marks) == 0 {
					t.Error("without the guard the attack does not work: nothing is proven")
				}
			})
		}
		if unguarded.Build {
			return
		}
		if marks := seize(t, together+":", "", "../linked", "vendor/dep", "sub"); len(marks) > 0 {
			t.Errorf("git ran for the person: %v", marks)
		}
	})
}

// seize lets an agent run a script in a project, then git on the host, and returns what ran.
func seize(t *testing.T, script string, at ...string) (marks []string) {
	b, top, dir := workshop(t)
	mark := filepath.Join(top, "marks")
	if err := os.Mkdir(mark, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(mark, 0o777); err != nil {
		t.Fatal(err)
	}
	before := b.guarded(dir)
	if got := b.attack(b.start(), fmt.Sprintf(script, mark)+"; echo tried"); !strings.HasSuffix(got, "tried\n") {
		t.Fatalf("nothing was tried: %q", got)
	}
	if after := b.guarded(dir); after != before && !unguarded.Build {
		t.Errorf("the agent changed\n%s\nto\n%s", before, after)
	}
	for _, where := range at {
		b.git(filepath.Join(dir, where), "status")
		b.git(filepath.Join(dir, where), "commit", "-q", "--allow-empty", "-m", "after")
	}
	found, err := os.ReadDir(mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		marks = append(marks, e.Name())
	}
	return marks
}

// snares are what no mount prevents: an agent that does that is ended, and git runs nothing.
var snares = map[string]string{
	"another configuration": `cp -r .git e; git config -f e/config core.fsmonitor 'MARK'; echo ../e > .git/commondir`,
	"a further repository":  `git init -q e; git -C e -c user.name=a -c user.email=a@a commit -q --allow-empty -m e; git -C e config core.fsmonitor 'MARK'; git add e`,
	"one by its number":     `git init -q e; git -C e -c user.name=a -c user.email=a@a commit -q --allow-empty -m e; git -C e config core.fsmonitor 'MARK'; git update-index --index-version 4; git update-index --split-index; git update-index --add --cacheinfo 160000,$(git -C e rev-parse HEAD),e`,
	"a hook of one":         `git init -q e; git -C e -c user.name=a -c user.email=a@a commit -q --allow-empty -m e; printf '#!/bin/sh\nMARK\n' > e/.git/hooks/post-index-change; chmod +x e/.git/hooks/post-index-change; touch e/new; git -C e add new; git add e`,
}

func TestAnAgentHereThatSetsATrapIsEnded(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		for name, script := range snares {
			t.Run(name, func(t *testing.T) {
				b, top, dir := workshop(t)
				mark := filepath.Join(top, "mark")
				script = strings.ReplaceAll(script, "MARK", "touch "+mark+"; false")
				wait := "; sleep 60" // for its end
				if unguarded.Build {
					wait = ""
				}
				message := b.doomed(b.start(), script+wait)
				b.git(dir, "status")
				b.git(dir, "status") // refreshes what the first one read
				if _, err := os.Lstat(mark); (err == nil) != unguarded.Build {
					t.Errorf("git ran for the person: %v", err == nil)
				}
				if !unguarded.Build && !strings.Contains(message, "the agent was ended") {
					t.Errorf("the turn ended with %q", message)
				}
			})
		}
	})
}

// A person who adds a repository, or changes the configuration, while an agent works ends
// the agent, whose next turn finds all of it guarded, and keeps what was done.
func TestAPersonChangesTheRepositoryMeanwhile(t *testing.T) {
	if unguarded.Build {
		t.Skip("there is no guard to lose")
	}
	b, top, dir := workshop(t)
	info := b.start()
	for what, do := range map[string]func(){
		"configuration": func() { b.git(dir, "config", "remote.x.url", "/x") },
		"submodule":     func() { b.git(dir, "submodule", "--quiet", "add", filepath.Join(top, "lib"), "more") },
	} {
		begun := filepath.Join(dir, "begun")
		ended := make(chan string, 1)
		go func() { ended <- b.doomed(info, "touch begun; sleep 60") }()
		poll.Until(t, "the agent works", func() bool { _, err := os.Lstat(begun); return err == nil })
		do()
		if got := <-ended; !strings.Contains(got, "the agent was ended") {
			t.Errorf("%s: the turn ended with %q", what, got)
		}
		_ = os.Remove(begun)
	}
	if got := b.attack(info, "(git config core.fsmonitor x || git config -f .git/modules/more/config core.fsmonitor x || echo x > more/.git) 2>/dev/null || echo guarded"); got != "guarded\n" {
		t.Errorf("the next turn: %q", got)
	}
	if got := b.git(filepath.Join(dir, "more"), "rev-parse", "--git-dir"); got != dir+"/.git/modules/more\n" {
		t.Errorf("the person's submodule: %q", got)
	}
	if got := b.git(dir, "config", "remote.x.url"); got != "/x\n" {
		t.Errorf("the person's configuration: %q", got)
	}
}

// doomed takes a command to the end of its turn and returns why that failed, if it did.
func (b *bench) doomed(info executor.Info, script string) (message string) {
	b.Helper()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	req := b.request("sim: run "+script, thole.ProfileFull)
	if _, err := c.Run(b.Context(), req); err != nil {
		b.Error(err)
		return ""
	}
	err := c.Events(b.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
		for _, ev := range batch {
			if e := ev.Event; e.Kind == event.TurnEnded && e.Error != nil {
				message = e.Error.Message
			}
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
	return message
}

// refile lets the executor begin again with another directory.
func (b *bench) refile(dir string) {
	b.Helper()
	if err := b.driver.Remove(context.Background(), b.id); err != nil {
		b.Fatal(err)
	}
	if err := b.driver.Create(b.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread, Files: thole.Source{Kind: thole.SourceHere, Dir: dir}}); err != nil {
		b.Fatal(err)
	}
}

// guarded is what of a project's repositories agents must not change.
func (b *bench) guarded(dir string) string {
	b.Helper()
	var out strings.Builder
	for _, at := range []string{".git/config", ".git/config.worktree", ".git/hooks", ".git/info", ".git/objects/info/alternates", ".git/modules/sub/config", ".git/modules/sub/hooks", ".git/modules/sub/info",
		"sub/.git", ".git/worktrees/linked/commondir", ".git/worktrees/linked/gitdir", ".git/worktrees/linked/config.worktree", "vendor/dep/.git/config", "vendor/dep/.git/hooks"} {
		_ = filepath.WalkDir(filepath.Join(dir, at), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.Type()&fs.ModeType&^fs.ModeDir != 0 {
				fmt.Fprintf(&out, "%s missing or of another type\n", path)
				return nil //nolint:nilerr // which is what is to be known
			}
			if fi, err := e.Info(); err != nil || fi.Mode()&fs.ModeSticky != 0 {
				return err // made for the box
			}
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&out, "%s %s %x\n", path, e.Type(), text)
			return nil
		})
	}
	lines := strings.Split(out.String(), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasSuffix(l, "missing or of another type") }), "\n")
}

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

// A directory that is gone, or another one by now, is an error and never an empty place.
func TestADirectoryThatIsGone(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		top := owned(t)
		dir := filepath.Join(top, "project")
		write(t, filepath.Join(dir, "file"), "one\n")
		b := here(t, lab.Bwrap(t), dir)
		b.give(top)
		b.start()
		if err := b.driver.CheckFiles(t.Context(), b.id); err != nil {
			t.Errorf("it is there: %v", err)
		}
		for what, do := range map[string]func() error{
			"gone":     func() error { return os.Rename(dir, dir+".away") },
			"replaced": func() error { return os.Mkdir(dir, 0o755) },
		} {
			_ = os.Rename(dir+".away", dir)
			if what == "replaced" {
				_ = os.Rename(dir, dir+".away")
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
			b.give(top)
			err := b.driver.CheckFiles(t.Context(), b.id)
			if thole.CodeOf(err) != thole.CodeGone || !strings.Contains(err.Error(), what) || thole.HintOf(err) == "" {
				t.Errorf("%s, while it runs: %v (%s)", what, err, thole.HintOf(err))
			}
			if err := b.driver.Stop(t.Context(), b.id); err != nil {
				t.Fatal(err)
			}
			if _, err := b.driver.Start(t.Context(), b.id); thole.CodeOf(err) != thole.CodeGone || !strings.Contains(err.Error(), what) {
				t.Errorf("%s, at a start: %v", what, err)
			}
			if what == "replaced" {
				_ = os.Remove(dir)
			}
		}
		_ = os.Rename(dir+".away", dir)
		if got := b.attack(b.start(), "cat file"); got != "one\n" {
			t.Errorf("it is back: %q", got)
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

// Where a person may not have agents work.
func TestCheckHere(t *testing.T) {
	top := owned(t)
	home := filepath.Join(top, "person")
	t.Setenv("HOME", home)
	for _, dir := range []string{".ssh/x", ".config/nvim", ".config/gcloud/x", "project/gcloud", "project/.git/objects", "project/.git/refs", ".thole/x", "bare/objects", "bare/refs", "lies", "dot/claude", "dot/x", ".opencode/skill", ".codex"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(home, "file"), "")
	write(t, filepath.Join(home, "project/.git/HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(home, "project/.git/config"), "")
	write(t, filepath.Join(home, "project/.env"), "KEY=1\n")
	write(t, filepath.Join(home, "bare/HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(home, "lies/.git"), "gitdir: "+home+"/project/.git\n")
	if err := os.Symlink(".ssh", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("project", filepath.Join(home, "other")); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{".claude": "dot/claude", ".codex/AGENTS.md": "../notes/agents.md"} {
		if err := os.Symlink(to, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(home, "notes/agents.md"), "")
	for path, want := range map[string]string{
		home + "/dot": "configuration of agents", home + "/dot/claude": "configuration of agents", home + "/.opencode/skill": "configuration of agents", home + "/notes": "configuration of agents", home + "/dot/x": "",
		"/": "whole home directory", "/srv": "shared by everybody", "/etc": "belongs to the system", "/usr/local": "belongs to the system", "/proc/self": "belongs to the system", top: "whole home directory", home: "whole home directory",
		home + "/.ssh": "holds keys", home + "/.ssh/x": "holds keys", home + "/link": "holds keys", home + "/.config": "keys of many programs", home + "/.config/gcloud": "holds keys", home + "/.config/gcloud/x": "holds keys",
		home + "/.thole": "thole's own files", home + "/.thole/x": "thole's own files", home + "/file": "not a directory", home + "/none": "does not exist", "project": "not an absolute path",
		home + "/bare": "bare repository", home + "/bare/refs": "bare repository", home + "/project/.git": "lies in a git directory", home + "/lies": "does not say that it belongs here",
		home + "/project": "", home + "/project/gcloud": "", home + "/other": "", home + "/.config/nvim": "",
	} {
		place, err := local.CheckHere(path, filepath.Join(home, ".thole"))
		if (want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || path != "project" && !strings.Contains(path, "none") && thole.HintOf(err) == "") {
			t.Errorf("%s: %v (%s), want %q", path, err, thole.HintOf(err), want)
		}
		if err == nil && strings.Contains(place.Dir, "other") {
			t.Errorf("%s is %s: a link", path, place.Dir)
		}
	}
	if os.Getuid() == 0 {
		return
	}
	if _, err := local.CheckHere("/root", home+"/.thole"); err == nil {
		t.Error("another user's directory")
	}
}
