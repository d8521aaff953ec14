package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/unguarded"
)

// traps are commands for a shell in a repository that give it a configuration and hooks by
// which git starts programs. Each of these leaves a file in marks, with a prefix.
func traps(marks, prefix string) string {
	mark := func(name string) string { return "touch " + filepath.Join(marks, prefix+name) + "; " }
	var all []string
	for _, kv := range [][2]string{
		{"filter.evil.clean", mark("clean") + "cat"}, {"filter.evil.smudge", mark("smudge") + "cat"}, {"diff.evil.command", mark("diff") + "true"}, {"diff.conv.textconv", mark("textconv") + "cat"}, {"diff.external", mark("external") + "true"},
		{"merge.evil.driver", mark("merge") + "true"}, {"commit.gpgSign", "true"}, {"gpg.program", mark("gpg") + "true"}, {"uploadpack.packObjectsHook", mark("pack")}, {"alias.plainly", "!" + mark("alias")}, {"credential.helper", "!" + mark("credential")},
		{"submodule.sub.url", "ext::sh -c '" + mark("submodule") + "'"}, {"submodule.sub.update", "!" + mark("update")}, {"submodule.recurse", "true"}, {"remote.evil.url", "ext::sh -c '" + mark("remote") + "'"}, {"protocol.ext.allow", "always"},
		{"core.sshCommand", mark("ssh") + "false"}, {"core.hooksPath", ".git/evil"}, {"core.fsmonitor", mark("fsmonitor") + "false"},
	} {
		all = append(all, `git config `+kv[0]+` "`+kv[1]+`"`)
	}
	return strings.Join(append(all, "mkdir -p .git/evil .git/hooks; for h in pre-commit post-checkout post-merge pre-push reference-transaction post-index-change pre-merge-commit commit-msg; do for d in evil hooks; do "+
		`printf '#!/bin/sh\ntouch `+marks+"/"+prefix+`hook-%s\n' $h > .git/$d/$h; chmod +x .git/$d/$h; done; done`), "; ")
}

// marked lists what ran.
func (r *rig) marked(marks string) string {
	r.Helper()
	all, err := os.ReadDir(marks)
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// Nothing that a repository names runs on the machine, and nothing is written past it,
// whichever command touches it and whether its owner or an agent set the trap. Git that a
// person types there falls into it.
func TestAHostileRepository(t *testing.T) {
	r := newRig(t)
	open := lab.Open(t)
	repo, marks, remote, outside := filepath.Join(open, "repo"), filepath.Join(open, "marks"), filepath.Join(open, "remote.git"), filepath.Join(open, "outside")
	for _, dir := range []string{marks, outside} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil { // agents of root are other users
			t.Fatal(err)
		}
	}
	r.git(open, "init", "-q", "--bare", remote)
	r.npmPackage(repo)
	r.write(filepath.Join(repo, ".gitattributes"), "* filter=evil merge=evil\nREADME.md diff=evil\nlist diff=conv\n")
	r.write(filepath.Join(repo, ".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::sh -c 'touch "+marks+"/gitmodules'\n")
	r.write(filepath.Join(repo, "odd\nname"), "odd\n")
	r.write(filepath.Join(repo, "list"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	if err := os.Symlink(outside, filepath.Join(repo, "leads-out")); err != nil {
		t.Fatal(err)
	}
	r.git(repo, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(r.git(repo, "rev-parse", "HEAD"))+",sub")
	r.git(repo, "add", ".gitattributes", ".gitmodules", "odd\nname", "leads-out", "list")
	r.git(repo, "commit", "-q", "-m", "two")
	r.write(filepath.Join(repo, "list"), "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.git(repo, "commit", "-q", "-m", "three", "list")
	r.git(repo, "remote", "add", "origin", remote)
	r.tool(repo, "sh", "-c", traps(marks, ""))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("at the end had run: %s", r.marked(marks))
		}
	})
	// The agent sets a trap of its own in its copy, below it, and with a link where the user
	// may have a directory.
	agent := "sim: run git init -q below; " + traps(marks, "agent-") + "; cd below; " + traps(marks, "below-") + "; cd ..; " +
		"echo more >> README.md; sed -i s/9/nine/ list; echo odd >> \"new$(printf '\\nline')\"; find deep -delete; ln -s " + outside + " deep ;; say %tool%"
	work := func(dir string, args ...string) (thread string) {
		t.Helper()
		thread, out := r.run(dir, "codex/default", append(args, agent)...)
		if diff := r.thole(repo, "thread", "diff", thread); !strings.Contains(diff, "+more") || !strings.Contains(diff, `new\nline`) || !strings.Contains(diff, "+"+outside) {
			t.Fatalf("the diff is %s\n%s", diff, out)
		}
		r.thole(repo, "thread", "push", thread, "--remote", "file://"+remote)
		if _, errs, code := r.in(repo, "thread", "push", thread, "--remote", "ext::sh -c 'touch "+marks+"/pushed'"); code != 2 {
			t.Errorf("push to a program: exit %d %s", code, errs)
		}
		return thread
	}

	thread := work(open, "--repo", repo, "--ref", "main~1")
	r.thole(repo, "thread", "apply", thread)
	if got := text(filepath.Join(repo, "list")); got != "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" {
		t.Errorf("of both changes of a file there is %q", got)
	}
	if to, err := os.Readlink(filepath.Join(repo, "deep")); err != nil || to != outside || text(filepath.Join(repo, "new\nline")) != "odd\n" {
		t.Errorf("applied was a link to %q, %v", to, err)
	}
	for _, name := range []string{"deep", "new\nline", "README.md"} {
		if err := os.Remove(filepath.Join(repo, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.write(filepath.Join(repo, "README.md"), "# Left\n")
	r.write(filepath.Join(repo, "list"), "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.thole(repo, "thread", "merge", thread)
	r.thole(repo, "thread", "undo", thread)

	if err := os.Remove(filepath.Join(repo, "deep")); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(repo, "deep", "file"), "of the user\n")
	thread = work(repo, "--dirty")
	if _, errs, code := r.in(repo, "thread", "apply", thread); code != 4 || text(filepath.Join(repo, "deep", "file")) != "of the user\n" {
		t.Errorf("a link in the place of a directory: exit %d: %s", code, errs)
	}
	r.thole(repo, "thread", "pull", thread)
	r.thole(repo, "thread", "undo", thread)
	r.thole(repo, "--json", "thread", "diff", thread)
	if ran := r.marked(marks); ran != "" {
		t.Errorf("on this machine ran %s", ran)
	}
	if past := r.marked(outside); past != "" {
		t.Errorf("through links were written %s", past)
	}
	if heads := r.git(remote, "for-each-ref", "--format=%(refname)"); strings.Count(heads, "refs/heads/thole/") != 2 {
		t.Errorf("the remote has %s", heads)
	}

	_, _ = r.try(repo, "git", "checkout", "-q", "-b", "other")
	if ran := r.marked(marks); !strings.Contains(ran, "fsmonitor") || !strings.Contains(ran, "hook-post-checkout") {
		t.Errorf("git that a person types ran %q alone: this is no trap", ran)
	}
}

// Each command that looks at a user's repository, or writes it, would spring a trap there if
// git ran as it does for a person: the build without guards does so, and this one never.
func TestEveryCommandMeetsATrap(t *testing.T) {
	r := newRig(t)
	open := lab.Open(t)
	repo, marks := filepath.Join(open, "repo"), filepath.Join(open, "marks")
	if err := os.Mkdir(marks, 0o777); err != nil {
		t.Fatal(err)
	}
	r.npmPackage(repo)
	r.write(filepath.Join(repo, ".gitattributes"), "* filter=evil merge=evil diff=evil\n")
	r.write(filepath.Join(repo, "list"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.git(repo, "add", "-A")
	r.git(repo, "commit", "-q", "-m", "two")
	r.tool(repo, "sh", "-c", traps(marks, ""))
	r.write(filepath.Join(repo, "list"), "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
	thread := ""
	for _, c := range []struct {
		name string
		own  bool // it looks with a directory of git of its own, and meets no trap either way
		run  func()
	}{
		{"run --dirty", false, func() {
			thread, _ = r.run(repo, "test/script", "--dirty", "sim: run sed -i s/9/nine/ list; echo new > new ;; say done")
		}},
		{"apply", true, func() { r.thole(repo, "thread", "apply", thread) }},
		{"pull", false, func() { r.thole(repo, "thread", "pull", thread) }},
		{"merge", false, func() {
			for _, name := range []string{"list", "new"} { // what was applied is in the way
				if err := os.Remove(filepath.Join(repo, name)); err != nil {
					t.Fatal(err)
				}
			}
			r.write(filepath.Join(repo, "list"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
			r.thole(repo, "thread", "merge", thread)
		}},
	} {
		c.run()
		ran := r.marked(marks)
		if (unguarded.Build && !c.own) != (ran != "") {
			t.Errorf("%s: on this machine ran %q", c.name, ran)
		}
		t.Logf("%s: %s", c.name, ran)
		for mark := range strings.FieldsSeq(ran) {
			if err := os.Remove(filepath.Join(marks, mark)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
