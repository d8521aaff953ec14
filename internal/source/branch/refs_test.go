package branch_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// An agent compares with other branches, and a build asks for the last tag: a copy has the
// names that its repository has, as in a worktree of it. None is in the way of its own.
func TestACopyHasTheNamesOfItsRepository(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		r, repo := newRig(t), newRepo(t)
		host(t, repo, "tag", "-a", "-m", "one", "v1", "HEAD~1")
		host(t, repo, "tag", "light")
		host(t, repo, "branch", "side/way", "HEAD~1")
		host(t, repo, "remote", "add", "-t", "main", "forge", "https://example.com/a.git")
		host(t, repo, "update-ref", "refs/remotes/forge/main", "HEAD~1")
		host(t, repo, "symbolic-ref", "refs/remotes/forge/HEAD", "refs/remotes/forge/main")
		host(t, repo, "update-ref", "refs/stash", "HEAD~1")
		host(t, repo, "branch", "thole")
		id, s := r.must(source.Request{Repo: repo, Name: "work"})
		dir := r.lay(id, s)
		want := "refs/heads/main\nrefs/heads/side/way\nrefs/heads/thole/work\nrefs/remotes/forge/HEAD\nrefs/remotes/forge/main\nrefs/tags/light\nrefs/tags/v1\n"
		if got := r.inside(dir, s, "for-each-ref", "--format=%(refname)"); got != want {
			t.Errorf("the copy has\n%s", got)
		}
		for what, want := range map[string]string{
			"describe HEAD~1":                          "v1",
			"rev-list --count side/way..HEAD":          "1",
			"symbolic-ref refs/remotes/forge/HEAD":     "refs/remotes/forge/main",
			"merge-base HEAD forge/main":               line(host(t, repo, "rev-parse", "HEAD~1")),
			"config remote.forge.url":                  "https://example.com/a.git",
			"status --porcelain --branch":              "## thole/work",
			"fsck --no-dangling --connectivity-only":   "",
			"symbolic-ref --short HEAD":                "thole/work",
			"for-each-ref --format=%(upstream) thole/": "",
		} {
			if got := line(r.inside(dir, s, strings.Fields(what)...)); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		r.inside(dir, s, "checkout", "-q", "side/way")

		// One that exists where the copy's own branch would be is left out.
		host(t, repo, "branch", "-D", "thole")
		host(t, repo, "branch", "thole/more/deep")
		id, s = r.must(source.Request{Repo: repo, Name: "more"})
		if got := r.inside(r.lay(id, s), s, "for-each-ref", "--format=%(refname:short)", "refs/heads"); got != "main\nside/way\nthole/more\n" {
			t.Errorf("the copy has\n%s", got)
		}
	})
}

// Of what is fetched, the branches are those of the remote.
func TestACopyOfAURLHasItsNames(t *testing.T) {
	direct(t)
	r, repo := newRig(t), newRepo(t)
	host(t, repo, "tag", "v1")
	host(t, repo, "branch", "old", "HEAD~1")
	id, s := r.must(source.Request{Repo: serveHTTP(t, filepath.Dir(repo)) + "/" + filepath.Base(repo), Name: "work"})
	if got := r.inside(r.lay(id, s), s, "for-each-ref", "--format=%(refname)"); got != "refs/heads/thole/work\nrefs/remotes/origin/main\nrefs/remotes/origin/old\nrefs/tags/v1\n" {
		t.Errorf("the copy has\n%s", got)
	}
}

// What cannot come along uncommitted is named, and the rest comes.
func TestWhatCannotComeAlongIsNamed(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		r, repo := newRig(t), newRepo(t)
		write(t, filepath.Join(repo, "README.md"), "changed\n", 0o644)
		write(t, filepath.Join(repo, "closed"), "closed\n", 0o000)
		write(t, filepath.Join(repo, "run.sh"), "changed\n", 0o755)
		if err := os.Chmod(filepath.Join(repo, "run.sh"), 0); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"young", "grown", "sub"} {
			if err := os.Mkdir(filepath.Join(repo, name), 0o755); err != nil {
				t.Fatal(err)
			}
			host(t, filepath.Join(repo, name), "init", "-q")
			write(t, filepath.Join(repo, name, "file"), "file\n", 0o644)
			if name != "young" {
				host(t, filepath.Join(repo, name), "add", "-A")
				host(t, filepath.Join(repo, name), "commit", "-qm", "first")
			}
		}
		host(t, repo, "-c", "advice.addEmbeddedRepo=false", "add", "sub") // as a submodule that is not committed yet
		id, s := r.must(source.Request{Repo: repo, Dirty: true})
		if got, want := strings.Join(s.LeftOut, ", "), "closed: it cannot be read, young: a repository without a commit, run.sh: it cannot be read, grown: a repository of its own"; got != want {
			t.Errorf("left out are %s, want %s", got, want)
		}
		dir := r.lay(id, s)
		if got := r.inside(dir, s, "diff", "--name-status", "--no-renames", s.Commit, s.Carried); got != "M\tREADME.md\nA\tsub\n" {
			t.Errorf("carried are %q", got)
		}
	})
}

// A file outside of a sparse checkout is not in the copy, so that it cannot be missed there.
func TestAStrayOfASparseCheckoutStays(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	write(t, filepath.Join(repo, "doc/a"), "a\n", 0o644)
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "third")
	host(t, repo, "sparse-checkout", "set", "web")
	write(t, filepath.Join(repo, "doc/stray"), "stray\n", 0o644)
	write(t, filepath.Join(repo, "web/new"), "new\n", 0o644)
	id, s := r.must(source.Request{Repo: repo, Dirty: true})
	if len(s.LeftOut) != 1 || !strings.HasPrefix(s.LeftOut[0], "doc/stray: outside of the sparse checkout") {
		t.Errorf("left out are %q", s.LeftOut)
	}
	if got := r.inside(r.lay(id, s), s, "status", "--porcelain"); got != "?? web/new\n" || !strings.HasPrefix(s.Sparse, "/*\n!/*/\n/web/") {
		t.Errorf("status: %q, sparse %q", got, s.Sparse)
	}

	// Which files other patterns mean only git knows: then all are there.
	host(t, repo, "sparse-checkout", "set", "--no-cone", "/web/", "!/web/n*")
	if dir, s := clean(r, source.Request{Repo: repo}, ""); s.Sparse != "" || line(r.inside(dir, s, "ls-files", "doc")) != "doc/a" {
		t.Errorf("sparse %q", s.Sparse)
	} else if _, err := os.Stat(filepath.Join(dir, "doc/a")); err != nil {
		t.Error(err)
	}
}

// Who may only read a repository works on a copy of its objects.
func TestARepositoryThatMayNotBeWrittenIsCopied(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		r, repo := newRig(t), newRepo(t)
		host(t, repo, "tag", "v1")
		if err := os.Chmod(filepath.Join(repo, ".git"), 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(repo, ".git"), 0o755) })
		dir, s := clean(r, source.Request{Repo: repo}, repo)
		if shared := strings.HasPrefix(s.Objects[0], repo); shared != (os.Geteuid() == 0) {
			t.Errorf("source %+v", s)
		}
		if got := line(r.inside(dir, s, "log", "-1", "--format=%s")); got != "second" {
			t.Errorf("log: %q", got)
		}
	})
}

// A tree that would write git's own files is refused for good, and nothing of it is written.
func TestATreeThatGitRefuses(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	object := func(kind string, text []byte) string {
		file := filepath.Join(t.TempDir(), kind)
		write(t, file, string(text), 0o644)
		return line(host(t, repo, "hash-object", "-w", "--literally", "-t", kind, file))
	}
	entry := func(mode, name, id string) []byte {
		raw, err := hex.DecodeString(id)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte(mode+" "+name+"\x00"), raw...)
	}
	hooks := object("tree", entry("100755", "post-checkout", object("blob", []byte("#!/bin/sh\n"))))
	tree := object("tree", entry("40000", ".GIT", object("tree", entry("40000", "hooks", hooks))))
	commit := line(host(t, repo, "commit-tree", "-m", "hostile", tree))
	id, s := r.must(source.Request{Repo: repo, Ref: commit})
	dir := r.workspace()
	if err := r.b.Lay(t.Context(), id, s, dir); thole.CodeOf(err) != thole.CodeUnsupported || thole.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, ".GIT")); err == nil {
		t.Error("it was written")
	}
}
