package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/testkit/forges"
	"github.com/tholehq/thole/internal/testkit/gitremote"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// A thread's work becomes one pull request at each forge, from the command line with what
// the user's git helper has, and over HTTP with what is kept in the vault.
func TestPullRequests(t *testing.T) {
	base := lab.Open(t)
	server := gitremote.HTTP(t, base)
	host := strings.TrimPrefix(server, "http://")
	for kind, one := range map[string]struct {
		start func(testing.TB) *forges.Server
		api   string
		path  string
	}{"github": {forges.GitHub, "", "owner/name"}, "gitlab": {forges.GitLab, "/api/v4", "group/sub/name"}, "gitea": {forges.Gitea, "/api/v1", "owner/name"}} {
		t.Run(kind, func(t *testing.T) {
			f := one.start(t)
			r := newBranchRig(t, lab.Bwrap(t), func(c *config.Config) { c.Changes.Forges = []string{host + "=" + kind + " " + f.URL + one.api} })
			remote := filepath.Join(base, one.path+".git")
			if err := os.RemoveAll(remote); err != nil {
				t.Fatal(err)
			}
			repo := filepath.Join(base, kind)
			userGit(t, base, "init", "-q", "--bare", "-b", "trunk", remote)
			userGit(t, remote, "config", "http.receivepack", "true")
			userGit(t, base, "init", "-q", "-b", "trunk", repo)
			if err := os.WriteFile(filepath.Join(repo, "a.txt"), []byte("one\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			userGit(t, repo, "add", "-A")
			userGit(t, repo, "commit", "-q", "-m", "first")
			userGit(t, repo, "remote", "add", "origin", server+"/"+one.path+".git")
			r.serve(r.home)
			th := r.thread(source.Request{Repo: repo, Name: "greet"})
			if said, turn := r.run(th.ID, `echo "@everybody fixes #12 <b>"; echo two >> a.txt`); turn.Outcome != thole.OutcomeCompleted {
				t.Fatal(said)
			}
			c := command{t: t, home: r.home, dir: base, env: []string{"NO_PROXY=127.0.0.1"}}
			if err := os.MkdirAll(filepath.Join(r.home, "user"), 0o700); err != nil {
				t.Fatal(err)
			}
			if _, errs, code := c.run("thread", "pr", string(th.ID)); code == 0 || len(f.Pulls()) != 0 {
				t.Fatalf("without a password: exit %d: %s", code, errs)
			}
			helper := "[credential]\n\thelper = \"!f() { echo username=" + gitremote.User + "; echo password=" + gitremote.Password + "; }; f\"\n"
			if err := os.WriteFile(filepath.Join(r.home, "user", ".gitconfig"), []byte(helper), 0o600); err != nil {
				t.Fatal(err)
			}
			out := c.must("thread", "pr", string(th.ID), "--draft")
			pulls := f.Pulls()
			if len(pulls) != 1 || !pulls[0].Draft || pulls[0].Head != th.Files.Branch || pulls[0].Base != "trunk" || pulls[0].Title == "" || !strings.HasPrefix(out, f.URL) {
				t.Fatalf("%s: %+v", out, pulls)
			}
			if body := pulls[0].Body; !strings.Contains(body, string(th.ID)) || strings.Contains(body, "@everybody") || strings.Contains(body, "#12") || strings.Contains(body, "<b>") {
				t.Errorf("a body that acts: %q", body)
			}
			if got := userGit(t, remote, "show", th.Files.Branch+":a.txt"); got != "one\ntwo" {
				t.Errorf("pushed: %q", got)
			}

			// The same over HTTP, with a token that is kept: the request that is open is found.
			again, err := r.changed.PullRequest(t.Context(), thole.LocalActor, th.ID, httpapi.NewPullRequest{Title: "other"})
			if thole.CodeOf(err) != thole.CodeUnavailable {
				t.Errorf("without a token: %+v, %v", again, err)
			}
			r.token = forges.Token
			if again, err = r.changed.PullRequest(t.Context(), thole.LocalActor, th.ID, httpapi.NewPullRequest{Title: "other"}); err != nil || !again.Existing || again.Number != 1 || len(f.Pulls()) != 1 {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}
