package local_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/unguarded"
)

// trap is a repository e that runs MARK for whom git leads there.
const trap = `git init -q e; git -C e -c user.name=a -c user.email=a@a commit -q --allow-empty -m e; git -C e config core.fsmonitor 'MARK'; `

// snares are what no mount prevents: an agent that does that is ended, and git runs nothing.
// The agent works in one directory below the top, and the person runs git in another.
var snares = map[string]struct{ script, here, at string }{
	"another configuration":     {`cp -r .git e; git config -f e/config core.fsmonitor 'MARK'; echo ../e > .git/commondir`, "project", "project"},
	"a further repository":      {trap + `git add e`, "project", "project"},
	"one by its number":         {trap + `git update-index --index-version 4; git update-index --split-index; git update-index --add --cacheinfo 160000,$(git -C e rev-parse HEAD),e`, "project", "project"},
	"a hook of one":             {strings.Replace(trap, "config core.fsmonitor 'MARK'", "status", 1) + `printf '#!/bin/sh\nMARK\n' > e/.git/hooks/post-index-change; chmod +x e/.git/hooks/post-index-change; touch e/new; git -C e add new; git add e`, "project", "project"},
	"one of a submodule":        {`cd sub; ` + trap + `git add e`, "project", "project"},
	"one of a linked work tree": {trap + `git add e`, "linked", "linked"},
	"one of another work tree":  {`mkdir x; cd x; ` + trap + `cd ..; mv x/e e; n=$(git -C e rev-parse HEAD); export GIT_DIR=$(pwd)/.git/worktrees/linked GIT_WORK_TREE=$(pwd); git update-index --add --cacheinfo 160000,$n,aa/project/e; python3 -c 'import hashlib, os; p=".git/worktrees/linked/index"; b=open(p,"rb").read()[:-20].replace(b"aa/project/e", b"../project/e"); open(p+".lock","wb").write(b+hashlib.sha1(b).digest()); os.rename(p+".lock", p)'`, "project", "linked"},
	"one of a nested one":       {`cd vendor/dep; ` + trap + `git add e`, "project", "project/vendor/dep"},
	"one of a group":            {`cd project; ` + trap + `git add e`, ".", "project"},
	"configuration of a group":  {`cd project; cp -r .git e; git config -f e/config core.fsmonitor 'MARK'; echo ../e > .git/commondir`, ".", "project"},
}

func TestAnAgentHereThatSetsATrapIsEnded(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		for name, snare := range snares {
			t.Run(name, func(t *testing.T) {
				b, top, _ := workshop(t)
				if snare.here != "project" {
					b.refile(filepath.Join(top, snare.here))
				}
				out := owned(t) // where no agent writes
				b.give(out)
				mark := filepath.Join(out, "mark")
				script, wait := strings.ReplaceAll(snare.script, "MARK", "touch "+mark+"; false"), "60" // for its end
				if unguarded.Build {
					wait = "0"
				}
				message := b.doomed(b.start(), script+"; sleep "+wait)
				b.git(filepath.Join(top, snare.at), "status")
				b.git(filepath.Join(top, snare.at), "status") // refreshes what the first one read
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
// the agent, whose next turn finds all of it guarded, and keeps what was done. The turn goes
// on where git runs nothing because of the change.
func TestAPersonChangesTheRepositoryMeanwhile(t *testing.T) {
	if unguarded.Build {
		t.Skip("there is no guard to lose")
	}
	b, top, dir := workshop(t)
	info := b.start()
	const ends, goesOn, either = "the agent was ended", "", "either" // the scripted agent does not run in the box, and sees its command end
	for what, c := range map[string]struct {
		do   func()
		want string
	}{
		"configuration": {func() { b.git(dir, "config", "remote.x.url", "/x") }, goesOn},
		"an upstream":   {func() { b.git(dir, "branch", "--quiet", "--track", "up", "main") }, goesOn},
		"a program":     {func() { b.git(dir, "config", "core.pager", "less") }, ends},
		"a transport":   {func() { b.git(dir, "config", "remote.y.url", "ext::sh") }, ends},
		"a hook":        {func() { b.exchange(filepath.Join(dir, ".git", "hooks")) }, ends},
		"submodule":     {func() { b.git(dir, "submodule", "--quiet", "add", filepath.Join(top, "lib"), "more") }, either}, // the index comes soon after the configuration
	} {
		begun := filepath.Join(dir, "begun")
		ended := make(chan string, 1)
		go func() { ended <- b.doomed(info, "touch begun; sleep 60") }()
		poll.Until(t, "the agent works", func() bool { _, err := os.Lstat(begun); return err == nil })
		c.do()
		if got := <-ended; c.want != either && (strings.Contains(got, ends) != (c.want == ends) || c.want == "" && got != "") {
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

// What git of the person replaces in a linked work tree, or in a repository below a directory
// that is in none, ends what runs there as well: it could write there by now.
func TestAPersonChangesARepositoryBelow(t *testing.T) {
	if unguarded.Build {
		t.Skip("there is no guard to lose")
	}
	for _, where := range []struct{ here, at string }{{"linked", "linked"}, {".", "project/vendor/dep"}} {
		b, top, dir := workshop(t)
		b.git(dir, "config", "extensions.worktreeConfig", "true")
		b.refile(filepath.Join(top, where.here))
		begun := filepath.Join(top, where.here, "begun")
		ended := make(chan string, 1)
		info := b.start()
		go func() { ended <- b.doomed(info, "touch begun; sleep 60") }()
		poll.Until(t, "the agent works", func() bool { _, err := os.Lstat(begun); return err == nil })
		b.git(filepath.Join(top, where.at), "config", "--worktree", "remote.x.url", "/x")
		if got := <-ended; got != "" {
			t.Errorf("%s: the turn ended with %q", where.at, got)
		}
	}
}

// exchange puts a copy in the place of a directory.
func (b *bench) exchange(dir string) {
	b.Helper()
	if err := os.Rename(dir, dir+".old"); err != nil {
		b.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(dir+".old")); err != nil {
		b.Fatal(err)
	}
	b.give(dir)
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
