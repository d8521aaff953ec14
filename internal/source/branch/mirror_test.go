package branch_test

import (
	"context"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/branch"
	"github.com/tholehq/thole/internal/testkit/gitremote"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// direct keeps proxies of this machine out of a test.
func direct(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "SSH_AUTH_SOCK"} {
		t.Setenv(name, "")
	}
}

// serveHTTP serves the repositories in a directory with git's own server; those below
// /closed/ only to who has a password.
func serveHTTP(t *testing.T, dir string) string {
	t.Helper()
	backend := &cgi.Handler{Path: filepath.Join(line(host(t, dir, "--exec-path")), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
			"GIT_CONFIG_KEY_1=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_1=true"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/closed"); ok {
			if name, password, _ := r.BasicAuth(); name != "ada" && name != "x-access-token" || password != "s3cret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who?", http.StatusUnauthorized)
				return
			}
			r.URL.Path = rest
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestAURLIsFetchedIntoAMirror(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		direct(t)
		r, repo := newRig(t), newRepo(t)
		write(t, filepath.Join(r.user, ".gitconfig"), "[user]\n\tname = Grace\n\temail = g@example.com\n", 0o644)
		host(t, repo, "branch", "old", "HEAD~1")
		lost := line(host(t, repo, "commit-tree", "-m", "on no branch", "-p", "HEAD", "HEAD^{tree}"))
		url := serveHTTP(t, filepath.Dir(repo)) + "/" + filepath.Base(repo)
		dir, s := clean(r, source.Request{Repo: url}, repo)
		if s.Repo != url || s.Commit != line(host(t, repo, "rev-parse", "HEAD")) || len(s.Objects) != 1 || !strings.HasPrefix(s.Objects[0], filepath.Join(r.home, branch.Mirrors)) {
			t.Errorf("source %+v", s)
		}
		if got := r.inside(dir, s, "config", "--get-regexp", "user|origin.url"); got != "user.name Grace\nuser.email g@example.com\nremote.origin.url "+url+"\n" && got != "user.email g@example.com\nuser.name Grace\nremote.origin.url "+url+"\n" {
			t.Errorf("configuration %q", got)
		}
		if _, s := r.must(source.Request{Repo: url, Ref: lost}); s.Commit != lost {
			t.Errorf("a commit on no branch: %+v", s)
		}
		write(t, filepath.Join(repo, "README.md"), "three\n", 0o644)
		host(t, repo, "commit", "-qam", "third")
		_, later := clean(r, source.Request{Repo: url, Ref: "main", Dir: "web"}, repo)
		if later.Objects[0] != s.Objects[0] || later.Commit == s.Commit || later.Dir != "web" {
			t.Errorf("later %+v", later)
		}
		if _, s := r.must(source.Request{Repo: url, Ref: "origin/old"}); s.Commit != line(host(t, repo, "rev-parse", "old")) {
			t.Errorf("another branch: %+v", s)
		}
		for name, q := range map[string]source.Request{"ref": {Repo: url, Ref: "none"}, "directory": {Repo: url, Dir: "none"}, "repository": {Repo: url + "x"}} {
			if _, err := r.resolve(newThread(), q); thole.CodeOf(err) != thole.CodeNotFound || thole.HintOf(err) == "" {
				t.Errorf("no such %s: %v", name, err)
			}
		}
		// The repository may go: what was fetched is here.
		if err := os.RemoveAll(repo); err != nil {
			t.Fatal(err)
		}
		if got := r.inside(dir, s, "log", "--format=%s"); got != "second\nfirst\n" {
			t.Errorf("log: %q", got)
		}
	})
}

func TestFetchesFailWithTheReason(t *testing.T) {
	direct(t)
	r, repo := newRig(t), newRepo(t)
	url := serveHTTP(t, filepath.Dir(repo))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	gone := httptest.NewServer(nil)
	gone.Close()
	empty := filepath.Join(filepath.Dir(repo), "empty.git")
	host(t, filepath.Dir(repo), "init", "-q", "--bare", empty)
	for _, c := range []struct {
		url  string
		code thole.Code
		says string
	}{
		{url + "/closed/project", thole.CodeForbidden, "who you are"},
		{"http://nowhere.invalid/a", thole.CodeNotFound, "no such host"},
		{gone.URL + "/a", thole.CodeUnavailable, "does not answer"},
		{url + "/none", thole.CodeNotFound, "no repository"},
		{url + "/empty.git", thole.CodeNotFound, "no commit yet"},
	} {
		if _, err := r.resolve(newThread(), source.Request{Repo: c.url}); thole.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || thole.HintOf(err) == "" {
			t.Errorf("%s: %v (%s), %s", c.url, err, thole.CodeOf(err), thole.HintOf(err))
		}
	}
	short := r.cfg
	short.FetchTime = time.Second
	r.b = branch.New(short)
	if _, err := r.resolve(newThread(), source.Request{Repo: "http://" + silent.Addr().String() + "/a"}); thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("a silent host: %v", err)
	}
	r.b = branch.New(r.cfg)
	// A token that the asker keeps for the server proves it, and no other server sees it.
	kept, asked := r.cfg, ""
	kept.Token = func(_ context.Context, who thole.Owner, host string) (string, error) {
		asked = string(who.User) + " at " + host
		return "s3cret", nil
	}
	r.b = branch.New(kept)
	if _, s := r.must(source.Request{Repo: url + "/closed/project"}); s.Commit == "" || !strings.HasSuffix(asked, " at "+strings.TrimPrefix(url, "http://")) {
		t.Errorf("source %+v, asked for the token of %q", s, asked)
	}
	r.b = branch.New(r.cfg)
	// The user's own git knows the password; a commit that could run something is refused.
	write(t, filepath.Join(r.user, ".gitconfig"), "[credential]\n\thelper = \"!f() { echo username=ada; echo password=s3cret; }; f\"\n", 0o644)
	_, s := r.must(source.Request{Repo: url + "/closed/project"})
	if s.Repo != url+"/closed/project" {
		t.Errorf("source %+v", s)
	}
	write(t, filepath.Join(repo, ".gitmodules"), "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch\n", 0o644)
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "hostile")
	if _, err := r.resolve(newThread(), source.Request{Repo: url + "/project"}); err == nil || !strings.Contains(err.Error(), "gitmodulesUrl") {
		t.Errorf("a hostile commit: %v", err)
	}
	if _, err := r.resolve(newThread(), source.Request{Repo: "file://" + repo}); err == nil || !strings.Contains(err.Error(), "gitmodulesUrl") {
		t.Errorf("a hostile commit of this machine: %v", err)
	}
}

// A file URL is copied and does not depend on the repository any more.
func TestAFileURLIsCopied(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	url := "file://" + repo
	dir, s := clean(r, source.Request{Repo: url}, repo)
	write(t, filepath.Join(repo, "README.md"), "three\n", 0o644)
	host(t, repo, "commit", "-qam", "third")
	_, later := clean(r, source.Request{Repo: url}, repo)
	if later.Objects[0] != s.Objects[0] || host(t, repo, "for-each-ref", "refs/thole") != "" {
		t.Errorf("later %+v", later)
	}
	if err := os.RemoveAll(repo); err != nil {
		t.Fatal(err)
	}
	if got := r.inside(dir, s, "log", "--format=%s"); got != "second\nfirst\n" {
		t.Errorf("log: %q", got)
	}
}

func TestARepositoryOverSSH(t *testing.T) {
	direct(t)
	r, repo := newRig(t), newRepo(t)
	sshd := gitremote.SSH(t)
	url := sshd.URL + repo
	ssh := func(key, known string) { t.Setenv("GIT_SSH_COMMAND", gitremote.Login(key, known)) }
	ssh(sshd.Key, filepath.Join(t.TempDir(), "none"))
	if _, err := r.resolve(newThread(), source.Request{Repo: url}); thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "key is not known") {
		t.Errorf("an unknown host: %v", err)
	}
	ssh(sshd.Other, sshd.Known)
	if _, err := r.resolve(newThread(), source.Request{Repo: url}); thole.CodeOf(err) != thole.CodeForbidden {
		t.Errorf("a wrong key: %v", err)
	}
	ssh(sshd.Key, sshd.Known)
	clean(r, source.Request{Repo: url}, repo)
	if _, err := r.resolve(newThread(), source.Request{Repo: url + "/none"}); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("no repository: %v", err)
	}
}
