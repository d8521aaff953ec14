package branch_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func TestABranchIsACopyOfTheRepository(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		r, repo := newRig(t), newRepo(t)
		host(t, repo, "remote", "add", "origin", "https://user:s3cret@example.com/a/b.git")
		before := host(t, repo, "for-each-ref")
		write(t, filepath.Join(repo, "README.md"), "uncommitted\n", 0o644)
		id, s := r.must(source.Request{Repo: filepath.Join(repo, "web/src"), Name: "fix-the-login-page-abcd"})
		head := line(host(t, repo, "rev-parse", "HEAD"))
		if s.Repo != repo || s.Commit != head || s.Dir != "web/src" || s.Carried != "" || len(s.Objects) != 1 || s.Objects[0] != filepath.Join(repo, ".git/objects") {
			t.Errorf("source %+v", s)
		}
		if s.Branch != "thole/fix-the-login-page-abcd" {
			t.Errorf("branch %q", s.Branch)
		}
		dir := r.lay(id, s)
		if got := r.inside(dir, s, "status", "--porcelain=v1", "--branch"); line(got) != "## "+s.Branch {
			t.Errorf("status:\n%s", got)
		}
		if got := line(r.inside(dir, s, "rev-parse", "HEAD")); got != head {
			t.Errorf("HEAD is %s", got)
		}
		if got := r.inside(dir, s, "log", "--format=%s"); got != "second\nfirst\n" {
			t.Errorf("log: %q", got)
		}
		for key, want := range map[string]string{"user.name": "Ada \"L\" \\ [x]", "user.email": "ada@example.com", "remote.origin.url": "https://example.com/a/b.git"} {
			if got := line(r.inside(dir, s, "config", key)); got != want {
				t.Errorf("%s is %q", key, got)
			}
		}
		host(t, repo, "worktree", "add", "-q", "--detach", filepath.Join(t.TempDir(), "w"), "HEAD")
		equalTrees(t, dir, strings.Fields(strings.Split(host(t, repo, "worktree", "list"), "\n")[1])[0])
		// The agent commits as the user, into its own objects.
		write(t, filepath.Join(dir, "README.md"), "agent\n", 0o644)
		r.inside(dir, s, "commit", "-qam", "third")
		if got := line(r.inside(dir, s, "log", "-1", "--format=%an <%ae>")); got != `Ada "L" \ <ada@example.com>` && got != `Ada "L" \ [x] <ada@example.com>` {
			t.Errorf("author %s", got)
		}
		// Nothing but the thread's ref is new in the repository.
		after := strings.Replace(host(t, repo, "for-each-ref"), head+" commit\trefs/thole/base/"+string(id)+"\n", "", 1)
		if after != before {
			t.Errorf("refs are\n%s\nand were\n%s", after, before)
		}
		if os.Geteuid() == 0 {
			for _, name := range []string{".git/HEAD", ".git/index", "README.md", "web", "in"} {
				var st syscall.Stat_t
				if err := syscall.Lstat(filepath.Join(dir, name), &st); err != nil || st.Uid != agentUser {
					t.Errorf("%s belongs to %d, %v", name, st.Uid, err)
				}
			}
		}
	})
}

func TestRefs(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	first := line(host(t, repo, "rev-parse", "HEAD~1"))
	host(t, repo, "branch", "old", "HEAD~1")
	host(t, repo, "tag", "-am", "t", "v1", "HEAD~1")
	host(t, repo, "update-ref", "refs/remotes/origin/far", "HEAD~1")
	for _, ref := range []string{"old", "v1", "far", "origin/far", "HEAD~1", first, first[:10]} {
		if _, s := r.must(source.Request{Repo: repo, Ref: ref}); s.Commit != first || s.Ref != ref {
			t.Errorf("%s is %+v", ref, s)
		}
	}
	empty := t.TempDir()
	host(t, empty, "init", "-q")
	for name, c := range map[string]struct {
		q    source.Request
		code thole.Code
		says string
	}{
		"no such ref":      {source.Request{Repo: repo, Ref: "none"}, thole.CodeNotFound, `no commit "none"`},
		"an option":        {source.Request{Repo: repo, Ref: "--all"}, thole.CodeInvalid, "dash"},
		"a tree":           {source.Request{Repo: repo, Ref: "HEAD:web"}, thole.CodeNotFound, "no commit"},
		"no commit":        {source.Request{Repo: empty}, thole.CodeNotFound, "no commit yet"},
		"no repository":    {source.Request{Repo: t.TempDir()}, thole.CodeNotFound, "in no git repository"},
		"nothing there":    {source.Request{Repo: "/not/there"}, thole.CodeNotFound, "no such file"},
		"relative":         {source.Request{Repo: "project"}, thole.CodeInvalid, "absolute"},
		"a file":           {source.Request{Repo: filepath.Join(repo, "README.md")}, thole.CodeInvalid, "not a directory"},
		"a branch's name":  {source.Request{Repo: repo, Name: "../x"}, thole.CodeInvalid, "letters"},
		"unnamed":          {source.Request{}, thole.CodeInvalid, "no repository"},
		"no such dir":      {source.Request{Repo: repo, Dir: "none"}, thole.CodeNotFound, `no directory "none"`},
		"dir outside":      {source.Request{Repo: repo, Dir: "../x"}, thole.CodeInvalid, "not below"},
		"dirty elsewhere":  {source.Request{Repo: repo, Ref: "old", Dirty: true}, thole.CodeInvalid, "belong to its HEAD"},
		"a helper":         {source.Request{Repo: "ext::sh -c id"}, thole.CodeInvalid, "not fetched"},
		"git protocol":     {source.Request{Repo: "git://example.com/a"}, thole.CodeInvalid, "not fetched"},
		"password":         {source.Request{Repo: "https://a:b@example.com/a"}, thole.CodeInvalid, "password"},
		"token":            {source.Request{Repo: "https://ghp_0123456789@example.com/a"}, thole.CodeInvalid, "token"},
		"thole's own home": {source.Request{Repo: r.home}, thole.CodeNotFound, "in no git repository"},
	} {
		id := newThread()
		_, err := r.resolve(id, c.q)
		if thole.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || thole.HintOf(err) == "" && name != "an option" {
			t.Errorf("%s: %v (%s), hint %q", name, err, thole.CodeOf(err), thole.HintOf(err))
		}
		if refs := host(t, repo, "for-each-ref", "refs/thole/base/"+string(id)); refs != "" {
			t.Errorf("%s: %s is held", name, refs)
		}
	}
	if _, err := r.b.Resolve(t.Context(), newThread(), source.Request{Kind: thole.SourceBranch, Repo: repo, Actor: thole.LocalActor}); thole.CodeOf(err) != thole.CodeForbidden {
		t.Errorf("from elsewhere: %v", err)
	}
	inside := filepath.Join(r.home, "repo")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	host(t, inside, "init", "-q")
	if _, err := r.resolve(newThread(), source.Request{Repo: inside}); thole.CodeOf(err) != thole.CodeForbidden {
		t.Errorf("a repository in the home: %v", err)
	}
}
