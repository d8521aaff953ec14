package branch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/source"
)

// clean lays a source and wants the files of its commit, and a clean status.
func clean(r *rig, q source.Request, want string) (string, thole.Source) {
	r.t.Helper()
	id, s := r.must(q)
	dir := r.lay(id, s)
	if got := r.inside(dir, s, "status", "--porcelain"); got != "" {
		r.t.Errorf("status of a fresh thread:\n%s", got)
	}
	if want != "" {
		equalTrees(r.t, dir, want)
	}
	return dir, s
}

func TestAWorktreeHasItsOwnHead(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	other := filepath.Join(t.TempDir(), "other")
	host(t, repo, "worktree", "add", "-q", "-b", "side", other, "HEAD~1")
	_, s := clean(r, source.Request{Repo: other}, other)
	if s.Repo != other || s.Commit != line(host(t, repo, "rev-parse", "side")) {
		t.Errorf("source %+v", s)
	}
}

func TestABareRepository(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	bare := filepath.Join(t.TempDir(), "bare.git")
	host(t, repo, "clone", "-q", "--bare", repo, bare)
	_, s := clean(r, source.Request{Repo: bare}, repo)
	if s.Repo != bare || s.Dir != "" {
		t.Errorf("source %+v", s)
	}
	if _, err := r.resolve(newThread(), source.Request{Repo: bare, Dirty: true}); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("uncommitted files of a bare repository: %v", err)
	}
	if _, s := clean(r, source.Request{Repo: filepath.Join(repo, ".git")}, repo); s.Repo != repo {
		t.Errorf("by its git directory: %+v", s)
	}
}

func TestAShallowClone(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	cut := filepath.Join(t.TempDir(), "cut")
	host(t, repo, "clone", "-q", "--depth=1", "file://"+repo, cut)
	dir, s := clean(r, source.Request{Repo: cut}, repo)
	if got := r.inside(dir, s, "log", "--format=%s"); got != "second\n" {
		t.Errorf("log: %q", got)
	}
	write(t, filepath.Join(cut, "README.md"), "three\n", 0o644)
	id, s := r.must(source.Request{Repo: cut, Dirty: true})
	if got := r.inside(r.lay(id, s), s, "status", "--porcelain"); got != " M README.md\n" {
		t.Errorf("status: %q", got)
	}
	if _, err := r.resolve(newThread(), source.Request{Repo: "file://" + cut}); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("a copy of a shallow clone: %v", err)
	}
}

func TestASparseCheckout(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	sparse := filepath.Join(t.TempDir(), "sparse")
	host(t, repo, "clone", "-q", "--no-checkout", repo, sparse)
	host(t, sparse, "sparse-checkout", "set", "web")
	host(t, sparse, "checkout", "-q", "main")
	dir, _ := clean(r, source.Request{Repo: sparse}, sparse)
	if _, err := os.Stat(filepath.Join(dir, "web/src/app.js")); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(sparse, "web/more"), "more\n", 0o644)
	id, s := r.must(source.Request{Repo: sparse, Dirty: true})
	if got := r.inside(r.lay(id, s), s, "status", "--porcelain"); got != "?? web/more\n" {
		t.Errorf("status: %q", got)
	}
}

func TestAPartialClone(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	host(t, repo, "config", "uploadpack.allowFilter", "true")
	partial := filepath.Join(t.TempDir(), "partial")
	host(t, repo, "clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+repo, partial)
	_, err := r.resolve(newThread(), source.Request{Repo: partial})
	if thole.CodeOf(err) != thole.CodeUnsupported || !strings.Contains(err.Error(), "partial clone and lacks") {
		t.Errorf("without its files: %v", err)
	}
	host(t, partial, "checkout", "-q", "main")
	clean(r, source.Request{Repo: partial}, repo)
	if _, err := r.resolve(newThread(), source.Request{Repo: partial, Ref: "HEAD~1"}); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("an earlier commit: %v", err)
	}
}

func TestSubmodulesStayEmpty(t *testing.T) {
	r, repo, sub := newRig(t), newRepo(t), newRepo(t)
	host(t, repo, "submodule", "--quiet", "add", sub, "lib")
	host(t, repo, "commit", "-qm", "with a submodule")
	dir, s := clean(r, source.Request{Repo: repo}, "")
	if !slices.Equal(s.Submodules, []string{"lib"}) || s.LFS != nil {
		t.Errorf("named are %q and %q", s.Submodules, s.LFS)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "lib")); err != nil || len(entries) != 0 {
		t.Errorf("the submodule has %v, %v", entries, err)
	}
	if got := r.inside(dir, s, "submodule", "status"); !strings.HasPrefix(got, "-"+line(host(t, sub, "rev-parse", "HEAD"))) {
		t.Errorf("submodule status: %q", got)
	}
	// A submodule is a repository itself, and what changed in it is not the outer one's.
	clean(r, source.Request{Repo: filepath.Join(repo, "lib")}, filepath.Join(repo, "lib"))
	write(t, filepath.Join(repo, "lib/README.md"), "other\n", 0o644)
	if _, s := r.must(source.Request{Repo: repo, Dirty: true}); s.Carried != "" {
		t.Errorf("carried %+v", s)
	}
}

// What a copy lacks is named as far as the commit has it, for a repository of the user as
// for a mirror; lists that git cannot read name nothing.
func TestWhatIsElsewhereIsNamed(t *testing.T) {
	r, repo, sub := newRig(t), newRepo(t), newRepo(t)
	host(t, repo, "submodule", "--quiet", "add", sub, "lib/ödd [a]*")
	write(t, filepath.Join(repo, ".gitattributes"), "*.bin filter=lfs diff=lfs -text\n# *.no filter=lfs\n*.txt text\n*.other filter=lfsx\n", 0o644)
	write(t, filepath.Join(repo, "web/.gitattributes"), "*.bin filter=lfs\n/big/** filter=lfs\n", 0o644)
	write(t, filepath.Join(repo, ".gitmodules"), host(t, repo, "show", ":.gitmodules")+"[submodule \"gone\"]\n\tpath = gone\n[submodule \"a file\"]\n\tpath = README.md\n[include]\n\tpath = /etc/passwd\n", 0o644)
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "with parts elsewhere")
	for _, at := range []string{repo, "file://" + repo} {
		if _, s := r.must(source.Request{Repo: at}); !slices.Equal(s.Submodules, []string{"lib/ödd [a]*"}) || !slices.Equal(s.LFS, []string{"*.bin", "/big/**"}) {
			t.Errorf("of %s are named %q and %q", at, s.Submodules, s.LFS)
		}
		if _, s := r.must(source.Request{Repo: at, Ref: "HEAD~1"}); s.Submodules != nil || s.LFS != nil {
			t.Errorf("of an earlier commit are named %q and %q", s.Submodules, s.LFS)
		}
	}
	write(t, filepath.Join(repo, ".gitmodules"), "[submodule \"broken\n", 0o644)
	host(t, repo, "-c", "submodule.recurse=false", "commit", "-qm", "broken", ".gitmodules")
	if _, s := r.must(source.Request{Repo: repo}); s.Submodules != nil || len(s.LFS) != 2 {
		t.Errorf("of a broken list are named %q and %q", s.Submodules, s.LFS)
	}
}

func TestAnOddlyNamedRepository(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	odd := filepath.Join(t.TempDir(), "#odd : \"näme\"\n\\x")
	host(t, repo, "clone", "-q", repo, odd)
	dir, s := clean(r, source.Request{Repo: odd}, odd)
	if got := r.inside(dir, s, "log", "--format=%s"); got != "second\nfirst\n" {
		t.Errorf("log: %q", got)
	}
	write(t, filepath.Join(odd, "README.md"), "four\n", 0o644)
	id, s := r.must(source.Request{Repo: odd, Dirty: true})
	if got := r.inside(r.lay(id, s), s, "status", "--porcelain"); got != " M README.md\n" {
		t.Errorf("status: %q", got)
	}
	if err := os.Rename(odd, odd+"\xff"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.resolve(newThread(), source.Request{Repo: odd + "\xff"}); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("a path that cannot be recorded: %v", err)
	}
}

// A repository may borrow from another one of the user's, and another person may have made
// it so: agents see what the commit needs and no more of that one.
func TestWhatARepositoryBorrowsIsCopied(t *testing.T) {
	r, secret := newRig(t), newRepo(t)
	borrower := filepath.Join(t.TempDir(), "borrower")
	host(t, secret, "clone", "-q", "--shared", secret, borrower)
	write(t, filepath.Join(secret, "key"), "hidden\n", 0o644)
	host(t, secret, "add", "-A")
	host(t, secret, "commit", "-qm", "secret")
	hidden := line(host(t, secret, "rev-parse", "HEAD"))
	write(t, filepath.Join(borrower, "README.md"), "three\n", 0o644)
	host(t, borrower, "commit", "-qam", "third")
	write(t, filepath.Join(borrower, "README.md"), "four\n", 0o644)
	for _, dirty := range []bool{false, true} {
		id, s := r.must(source.Request{Repo: borrower, Dirty: dirty})
		dir := r.lay(id, s)
		if got := r.inside(dir, s, "log", "--format=%s"); got != "third\nsecond\nfirst\n" {
			t.Errorf("log: %q", got)
		}
		for _, at := range s.Objects {
			if !strings.HasPrefix(at, r.home) {
				t.Errorf("%s is shown", at)
			}
		}
		if out, err := r.cfg.Git.Own(t.Context(), dir, "cat-file", "-e", hidden); err == nil {
			t.Errorf("the agent sees another repository: %s", out)
		}
	}
}

// What leads to a repository that nobody named is not followed.
func TestARepositoryThatLeadsElsewhere(t *testing.T) {
	r, secret := newRig(t), newRepo(t)
	tree := filepath.Join(t.TempDir(), "w")
	host(t, secret, "worktree", "add", "-q", "--detach", tree)
	gitDir := filepath.Join(secret, ".git")
	for name, plant := range map[string]func(dir string) error{
		"a link": func(dir string) error { return os.Symlink(gitDir, filepath.Join(dir, ".git")) },
		"a file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+gitDir+"\n"), 0o644)
		},
		"a worktree's file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+filepath.Join(gitDir, "worktrees/w")+"\n"), 0o644)
		},
		"a common directory": func(dir string) error {
			host(t, dir, "init", "-q")
			return os.WriteFile(filepath.Join(dir, ".git/commondir"), []byte(gitDir+"\n"), 0o644)
		},
		"a pattern file": func(dir string) error {
			host(t, filepath.Dir(dir), "clone", "-q", secret, dir)
			host(t, dir, "config", "core.sparseCheckout", "true")
			return os.Symlink(filepath.Join(secret, "README.md"), filepath.Join(dir, ".git/info/sparse-checkout"))
		},
		"a directory of patterns": func(dir string) error {
			host(t, filepath.Dir(dir), "clone", "-q", secret, dir)
			host(t, dir, "config", "core.sparseCheckout", "true")
			if err := os.RemoveAll(filepath.Join(dir, ".git/info")); err != nil {
				return err
			}
			write(t, filepath.Join(secret, "sparse-checkout"), "hidden", 0o600)
			return os.Symlink(secret, filepath.Join(dir, ".git/info"))
		},
		"a pipe": func(dir string) error {
			host(t, dir, "init", "-q")
			return syscall.Mkfifo(filepath.Join(dir, ".git/objects/info/alternates"), 0o644)
		},
	} {
		dir := filepath.Join(t.TempDir(), "hostile")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := plant(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := r.resolve(newThread(), source.Request{Repo: dir}); thole.CodeOf(err) != thole.CodeInvalid && thole.CodeOf(err) != thole.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	clean(r, source.Request{Repo: tree}, tree)
}

func TestObjectNamesOfSHA256(t *testing.T) {
	r, repo := newRig(t), filepath.Join(t.TempDir(), "long")
	host(t, t.TempDir(), "init", "-q", "--object-format=sha256", repo)
	write(t, filepath.Join(repo, "a"), "a\n", 0o644)
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "first")
	write(t, filepath.Join(repo, "b"), "b\n", 0o644)
	clean(r, source.Request{Repo: repo}, "")
	id, s := r.must(source.Request{Repo: repo, Dirty: true})
	equalTrees(t, r.lay(id, s), repo)
}

// Where agents are other users and may not read the objects, these are copied.
func TestObjectsThatOthersMayNotReadAreCopied(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user's agents are that user")
	}
	r, repo := newRig(t), newRepo(t)
	if err := os.Chmod(filepath.Join(repo, ".git/objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, s := clean(r, source.Request{Repo: repo}, repo)
	if s.Repo != repo || len(s.Objects) != 1 || !strings.HasPrefix(s.Objects[0], r.home) {
		t.Errorf("source %+v", s)
	}
	if refs := host(t, repo, "for-each-ref", "refs/thole"); refs != "" {
		t.Errorf("held in the repository: %s", refs)
	}
}

// The server is root, the repository another user's, and nobody else may read it.
func TestARepositoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root sees repositories of others")
	}
	r, repo := newRig(t), newRepo(t)
	write(t, filepath.Join(repo, "more"), "more\n", 0o600)
	err := filepath.WalkDir(repo, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 61234, 61234)
	})
	if err == nil {
		err = os.Chmod(repo, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	id, s := r.must(source.Request{Repo: repo, Dirty: true})
	if got := r.inside(r.lay(id, s), s, "status", "--porcelain"); got != "?? more\n" {
		t.Errorf("status: %q", got)
	}
}
