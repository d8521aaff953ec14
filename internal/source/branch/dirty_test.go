package branch_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func TestUncommittedFilesComeAlong(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		r, repo := newRig(t), newRepo(t)
		write(t, filepath.Join(r.user, ".config/git/ignore"), "*.swp\n", 0o644)
		for _, name := range []string{"deleted", "renamed", "both"} {
			write(t, filepath.Join(repo, name), name+"\n", 0o644)
		}
		host(t, repo, "add", "-A")
		host(t, repo, "commit", "-qm", "third")
		write(t, filepath.Join(repo, "README.md"), "changed\n", 0o644)
		write(t, filepath.Join(repo, "both"), "staged\n", 0o644)
		host(t, repo, "add", "both")
		write(t, filepath.Join(repo, "both"), "and changed\n", 0o644)
		write(t, filepath.Join(repo, "un\ntracked \xfe/deep/file"), "new\n", 0o644)
		write(t, filepath.Join(repo, "build.log"), "ignored\n", 0o644)
		write(t, filepath.Join(repo, ".x.swp"), "ignored by the user\n", 0o644)
		host(t, repo, "mv", "renamed", "moved")
		for _, err := range []error{
			os.Remove(filepath.Join(repo, "deleted")), os.Chmod(filepath.Join(repo, "run.sh"), 0o644), os.Remove(filepath.Join(repo, "in")), os.Symlink("web", filepath.Join(repo, "in")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		before := host(t, repo, "status", "--porcelain", "-z", "--no-renames")
		objects := host(t, repo, "count-objects", "-v")
		id, s := r.must(source.Request{Repo: repo, Dirty: true})
		if s.Carried == "" || len(s.Objects) != 2 || s.Commit != line(host(t, repo, "rev-parse", "HEAD")) {
			t.Errorf("source %+v", s)
		}
		if now := host(t, repo, "count-objects", "-v"); now != objects {
			t.Errorf("the repository's objects are\n%s\nand were\n%s", now, objects)
		}
		dir := r.lay(id, s)
		for _, name := range []string{"build.log", ".x.swp"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s came along", name)
			}
			if err := os.Remove(filepath.Join(repo, name)); err != nil {
				t.Fatal(err)
			}
		}
		equalTrees(t, dir, repo)
		if got := line(r.inside(dir, s, "rev-parse", "HEAD")); got != s.Commit {
			t.Errorf("HEAD is %s", got)
		}
		// Uncommitted is uncommitted; what was staged is no more.
		host(t, repo, "reset", "-q")
		want := host(t, repo, "status", "--porcelain", "-z", "--no-renames", "-uall")
		if got := r.inside(dir, s, "status", "--porcelain", "-z", "--no-renames", "-uall"); got != want {
			t.Errorf("status is\n%q\nand in the repository\n%q\nbefore\n%q", got, want, before)
		}
		host(t, repo, "stash", "-q", "-u")
		if _, s := r.must(source.Request{Repo: repo, Dirty: true}); s.Carried != "" || len(s.Objects) != 1 {
			t.Errorf("nothing to carry: %+v", s)
		}
	})
}

// The content that LFS fetched for a pointer is no change; what the user changed is.
func TestPointersOfLFSStayPointers(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	pointer := func(text string) string {
		return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(text)), len(text))
	}
	write(t, filepath.Join(repo, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n", 0o644)
	for _, name := range []string{"a.bin", "b.bin", "c.bin"} {
		write(t, filepath.Join(repo, name), pointer(name), 0o644)
	}
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "pointers")
	host(t, repo, "config", "filter.lfs.clean", "git-lfs clean -- %f")
	host(t, repo, "config", "filter.lfs.process", "git-lfs filter-process")
	host(t, repo, "config", "filter.lfs.required", "true")
	dir, _ := clean(r, source.Request{Repo: repo}, "")
	if text, err := os.ReadFile(filepath.Join(dir, "a.bin")); err != nil || string(text) != pointer("a.bin") {
		t.Errorf("a.bin is %q, %v", text, err)
	}
	write(t, filepath.Join(repo, "a.bin"), "a.bin", 0o644)     // fetched
	write(t, filepath.Join(repo, "b.bin"), "b changed", 0o644) // changed
	id, s := r.must(source.Request{Repo: repo, Dirty: true})
	dir = r.lay(id, s)
	if got := r.inside(dir, s, "status", "--porcelain"); got != " M b.bin\n" {
		t.Errorf("status: %q", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "b.bin")); err != nil || string(text) != "b changed" {
		t.Errorf("b.bin is %q, %v", text, err)
	}
}

// What a filter would encrypt does not come along as it is, new or changed; one that nobody
// configured does nothing.
func TestWhatAFilterChangesStays(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	write(t, filepath.Join(repo, ".gitattributes"), "*.key filter=crypt\n*.odd filter=none\n", 0o644)
	host(t, repo, "config", "filter.crypt.clean", "tr a-z b-za")
	host(t, repo, "config", "filter.crypt.smudge", "tr b-za a-z")
	write(t, filepath.Join(repo, "old.key"), "secret\n", 0o644)
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "encrypted")
	for _, name := range []string{"old.key", "new.key", "new.odd", "README.md"} {
		write(t, filepath.Join(repo, name), "another secret\n", 0o644)
	}
	id, s := r.must(source.Request{Repo: repo, Dirty: true})
	dir := r.lay(id, s)
	if got := r.inside(dir, s, "diff", "--name-status", s.Commit, s.Carried); got != "M\tREADME.md\nA\tnew.odd\n" {
		t.Errorf("carried are %q", got)
	}
	if got := strings.Join(s.LeftOut, ", "); got != "new.key: git's filter crypt does not run, old.key: git's filter crypt does not run" {
		t.Errorf("left out are %s", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "old.key")); err != nil || string(text) != "tfdsfu\n" {
		t.Errorf("old.key is %q, %v", text, err)
	}
}

// Whatever a repository's configuration and attributes name runs at most in a box, and
// nothing of it comes into the workspace.
func TestAHostileRepositoryRunsNothing(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		r, repo := newRig(t), newRepo(t)
		marks := filepath.Join(lab.Open(t), "marks")
		if err := os.Mkdir(marks, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(marks, 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(repo, ".gitattributes"), "* filter=evil diff=evil ident export-subst\n", 0o644)
		write(t, filepath.Join(repo, ".gitmodules"), "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c 'touch "+marks+"/submodule'\n\tupdate = !touch "+marks+"/update\n", 0o644)
		host(t, repo, "add", "-A")
		host(t, repo, "commit", "-qm", "hostile")
		for k, v := range map[string]string{
			"core.fsmonitor": "touch " + marks + "/fsmonitor; false", "core.hooksPath": filepath.Join(repo, "hooks"), "filter.evil.clean": "touch " + marks + "/clean; cat", "filter.evil.smudge": "touch " + marks + "/smudge; cat",
			"diff.evil.command": "touch " + marks + "/diff", "core.sshCommand": "touch " + marks + "/ssh", "core.worktree": "/etc", "include.path": "/etc/passwd",
			"user.name": "x\n[core]\n\tfsmonitor = touch " + marks + "/injected", "remote.origin.url": "ext::sh -c 'touch " + marks + "/ext'", "submodule.x.update": "!touch " + marks + "/update",
		} {
			if _, err := tryHost(t, t.TempDir(), "config", "--file", filepath.Join(repo, ".git/config"), k, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, hook := range []string{"reference-transaction", "post-checkout", "post-index-change", "pre-commit"} {
			write(t, filepath.Join(repo, "hooks", hook), "#!/bin/sh\ntouch "+marks+"/hook\n", 0o755)
		}
		write(t, filepath.Join(repo, "README.md"), "dirty\n", 0o644)
		for _, q := range []source.Request{{Repo: repo}, {Repo: repo, Dirty: true}, {Repo: "file://" + repo}} {
			id := newThread()
			s, err := r.resolve(id, q)
			t.Logf("%+v: %v", q, err)
			if err == nil {
				dir := r.lay(id, s)
				if config, err := os.ReadFile(filepath.Join(dir, ".git/config")); err != nil || strings.Contains(string(config), "\n\tfsmonitor") || strings.Contains(string(config), "ext::") {
					t.Errorf("the workspace's configuration is\n%s\n%v", config, err)
				}
				r.inside(dir, s, "status")
			}
			if found, err := os.ReadDir(marks); err != nil || len(found) > 0 {
				t.Fatalf("%+v ran %v, %v", q, found, err)
			}
		}
		// The attack is real.
		for _, key := range []string{"core.worktree", "include.path"} {
			host(t, t.TempDir(), "config", "--file", filepath.Join(repo, ".git/config"), "--unset", key)
		}
		host(t, repo, "add", "-A")
		if found, _ := os.ReadDir(marks); len(found) == 0 {
			t.Error("without a box nothing ran either")
		}
	})
}
