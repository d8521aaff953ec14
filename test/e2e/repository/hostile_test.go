package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// trap gives a repository a configuration, hooks and attributes by which git starts
// programs. Each of them leaves a file in marks.
func (r *rig) trap(repo, marks string) {
	r.Helper()
	mark := func(name string) string { return "touch " + filepath.Join(marks, name) + "; " }
	for _, kv := range [][2]string{
		{"core.fsmonitor", mark("fsmonitor") + "false"}, {"core.hooksPath", filepath.Join(repo, ".git", "evil")}, {"core.sshCommand", mark("ssh") + "false"}, {"core.pager", mark("pager") + "cat"}, {"core.editor", mark("editor") + "true"},
		{"filter.evil.clean", mark("clean") + "cat"}, {"filter.evil.smudge", mark("smudge") + "cat"}, {"diff.evil.command", mark("diff") + "true"}, {"diff.evil.textconv", mark("textconv") + "cat"}, {"diff.external", mark("external") + "true"},
		{"merge.evil.driver", mark("merge") + "true"}, {"credential.helper", "!" + mark("credential")}, {"gpg.program", mark("gpg") + "true"}, {"uploadpack.packObjectsHook", mark("pack")}, {"alias.plainly", "!" + mark("alias")},
		{"submodule.sub.url", "ext::sh -c '" + mark("submodule") + "'"}, {"submodule.sub.update", "!" + mark("update")}, {"submodule.recurse", "true"}, {"remote.evil.url", "ext::sh -c '" + mark("remote") + "'"}, {"protocol.ext.allow", "always"},
	} {
		r.git("/", "config", "--file", filepath.Join(repo, ".git", "config"), kv[0], kv[1])
	}
	for _, hook := range []string{"pre-commit", "post-checkout", "post-merge", "pre-push", "reference-transaction", "post-index-change", "pre-merge-commit", "commit-msg", "pre-receive", "update"} {
		for _, dir := range []string{"evil", "hooks"} {
			path := filepath.Join(repo, ".git", dir, hook)
			r.write(path, "#!/bin/sh\n"+mark("hook-"+hook)+"\n")
			if err := os.Chmod(path, 0o755); err != nil {
				r.Fatal(err)
			}
		}
	}
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
	r.write(filepath.Join(repo, ".gitattributes"), "* filter=evil diff=evil merge=evil\n")
	r.write(filepath.Join(repo, ".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::sh -c 'touch "+marks+"/gitmodules'\n")
	r.write(filepath.Join(repo, "odd\nname"), "odd\n")
	if err := os.Symlink(outside, filepath.Join(repo, "leads-out")); err != nil {
		t.Fatal(err)
	}
	r.git(repo, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(r.git(repo, "rev-parse", "HEAD"))+",sub")
	r.git(repo, "add", ".gitattributes", ".gitmodules", "odd\nname", "leads-out")
	r.git(repo, "commit", "-q", "-m", "two")
	r.git(repo, "remote", "add", "origin", remote)
	r.trap(repo, marks)
	// The agent sets a trap of its own in its copy, below it, and with a link where the user
	// may have a directory.
	agent := "sim: run git config core.fsmonitor 'touch " + marks + "/agent; false'; git config filter.evil.clean 'touch " + marks + "/agent-clean; cat'; mkdir -p .git/hooks; " +
		"printf '#!/bin/sh\\ntouch " + marks + "/agent-hook\\n' > .git/hooks/pre-push; chmod +x .git/hooks/*; git init -q below; git -C below config core.fsmonitor 'touch " + marks + "/below'; " +
		"echo more >> README.md; echo odd >> \"new$(printf '\\nline')\"; find deep -delete; ln -s " + outside + " deep ;; say %tool%"
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

	thread := work(open, "--repo", repo)
	r.thole(repo, "thread", "apply", thread)
	if to, err := os.Readlink(filepath.Join(repo, "deep")); err != nil || to != outside || text(filepath.Join(repo, "new\nline")) != "odd\n" {
		t.Errorf("applied was a link to %q, %v", to, err)
	}
	for _, name := range []string{"deep", "new\nline", "README.md"} {
		if err := os.Remove(filepath.Join(repo, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.write(filepath.Join(repo, "README.md"), "# Left\n")
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

	_, _ = r.try(repo, "git", "status")
	if ran := r.marked(marks); !strings.Contains(ran, "fsmonitor") || !strings.Contains(ran, "hook-post-index-change") {
		t.Errorf("git that a person types ran %q alone: this is no trap", ran)
	}
}
