package system

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/testkit/gitremote"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// serve answers on the home's socket, as far as changes and names of threads go.
func (r *branchRig) serve(home string) {
	r.t.Helper()
	owner, err := daemon.Own(r.t.Context(), home, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	methods := r.changed.Methods()
	maps.Copy(methods, threads.Service{Threads: r.machine}.Methods())
	others := http.NewServeMux()
	others.HandleFunc("GET "+changes.PatchPath("{thread}"), r.changed.ServePatch)
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = daemon.Serve(ctx, daemon.Config{Owner: owner, Role: "daemon", Methods: methods, Attach: func(context.Context, jsonrpc.Stream) {}, OtherPaths: others, Ready: func() { close(ready) }})
	}()
	<-ready
	r.t.Cleanup(func() { stop(); <-done; _ = owner.Release() })
}

// thole runs a command of the program as its user types it.
type command struct {
	t    *testing.T
	home string
	dir  string
	env  []string
}

func (c command) run(args ...string) (out, errs string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, lab.Thole(c.t), append([]string{"--home", c.home}, args...)...)
	cmd.Dir, cmd.Env = c.dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(c.home, "user")}, c.env...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func (c command) must(args ...string) string {
	c.t.Helper()
	out, errs, code := c.run(args...)
	if code != 0 {
		c.t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

// The commands show and bring out what a thread did, and push it with the user's own git
// over every transport.
func TestChangesOnTheCommandLine(t *testing.T) {
	r := newBranchRig(t, lab.Bwrap(t))
	base := lab.Open(t)
	repo, remote := filepath.Join(base, "repo"), filepath.Join(base, "remote.git")
	userGit(t, base, "init", "-q", "-b", "main", repo)
	userGit(t, base, "init", "-q", "--bare", remote)
	userGit(t, remote, "config", "http.receivepack", "true")
	if err := os.WriteFile(filepath.Join(repo, "a.txt"), []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "same.txt"), []byte("same\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	userGit(t, repo, "add", "-A")
	userGit(t, repo, "commit", "-q", "-m", "first")
	userGit(t, repo, "remote", "add", "origin", remote)
	r.serve(r.home)
	c := command{t: t, home: r.home, dir: base}
	th := r.thread(source.Request{Repo: repo, Name: "on-the-line"})
	id := string(th.ID)
	if said, turn := r.run(th.ID, `printf 'two\n' >> a.txt; printf 'x\033[31m\n' > "odd$(printf '\n\033')name"; printf '\0' > bin`); turn.Outcome != thole.OutcomeCompleted {
		t.Fatal(said)
	}
	var want strings.Builder
	if err := r.changed.Patch(t.Context(), thole.LocalActor, th.ID, httpapi.ChangesQuery{Context: 3}, &want); err != nil {
		t.Fatal(err)
	}
	if got := c.must("thread", "diff", id); got != want.String() || !strings.Contains(got, "+x\x1b[31m") {
		t.Errorf("diff into a pipe:\n%q\nwant\n%q", got, want.String())
	}
	if got := c.must("thread", "diff", id, "a.txt", "-U0"); !strings.Contains(got, "@@ -1,0 +2 @@") || strings.Count(got, "diff --git") != 1 {
		t.Errorf("one file: %s", got)
	}
	stat := c.must("thread", "diff", id, "--stat")
	if !strings.Contains(stat, "a.txt") || !strings.Contains(stat, "+1 -0") || !strings.Contains(stat, `"odd\n\x1bname"`) || !strings.Contains(stat, "binary") || !strings.HasSuffix(stat, "3 files changed, 2 lines added, 0 removed\n") {
		t.Errorf("--stat: %q", stat)
	}
	if got := c.must("thread", "diff", id, "--turn", "1", "--name-only"); got != "a.txt\nbin\n"+`"odd\n\x1bname"`+"\n" {
		t.Errorf("--name-only: %q", got)
	}
	var shown struct {
		Files []struct{ Path, Patch string }
		Turns []struct{ Number int }
	}
	if err := json.Unmarshal([]byte(c.must("--json", "thread", "diff", id)), &shown); err != nil || len(shown.Files) != 3 || !strings.Contains(shown.Files[0].Patch, "+two") || len(shown.Turns) != 1 {
		t.Errorf("--json: %+v, %v", shown, err)
	}
	for _, args := range [][]string{{"thread", "undo", id, "x"}, {"thread", "pull", id, "--as", "a..b"}, {"thread", "push", id, "--remote", "ext::sh -c x"}} {
		if _, errs, code := c.run(args...); code != 2 || !strings.Contains(errs, "try:") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	if _, errs, code := c.run("thread", "diff", "nonsense"); code != 3 || !strings.Contains(errs, "try:") {
		t.Errorf("a thread that does not exist: exit %d: %s", code, errs)
	}
	for _, args := range [][]string{{"nosuch"}, {"nosuch", "--stat"}, {"a.txt/below"}, {"nosuch", "--turn", "1"}} {
		if out, errs, code := c.run(append([]string{"thread", "diff", id}, args...)...); code != 3 || out != "" || !strings.Contains(errs, "no file or directory") {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	if out, errs, code := c.run("thread", "diff", id, "same.txt"); code != 0 || out != "" || !strings.Contains(errs, "nothing changed in same.txt") {
		t.Errorf("a file that did not change: exit %d: %s%s", code, out, errs)
	}
	if _, errs, code := c.run("thread", "diff", id, "--turn", "7"); code != 3 || !strings.Contains(errs, "no turn 7") {
		t.Errorf("exit %d: %s", code, errs)
	}

	if out := c.must("thread", "apply", id, "--check"); !strings.Contains(out, "3 files would change in "+repo) {
		t.Errorf("%s", out)
	}
	if err := os.WriteFile(filepath.Join(repo, "a.txt"), []byte("one\nmine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := c.run("thread", "apply", id); code != 4 || !strings.Contains(errs, "a.txt: both changed it") || !strings.Contains(errs, "nothing was written") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	userGit(t, repo, "checkout", "-q", "a.txt")
	if out := c.must("thread", "pull", id); !strings.Contains(out, "branch "+th.Files.Branch+" of "+repo) || !strings.Contains(out, "1 commit") {
		t.Errorf("%s", out)
	}
	if out := c.must("thread", "merge", id); !strings.Contains(out, "merged into main") {
		t.Errorf("%s", out)
	}

	// A path is no forge, so nothing is pushed for a request there.
	if _, errs, code := c.run("thread", "pr", id); code != 7 || !strings.Contains(errs, "no address of a forge") || userGit(t, remote, "for-each-ref", "refs/heads/thole") != "" {
		t.Errorf("exit %d: %s", code, errs)
	}

	// Over a path, HTTP and SSH; the user's helper knows the password.
	if err := os.MkdirAll(filepath.Join(r.home, "user"), 0o700); err != nil {
		t.Fatal(err)
	}
	helper := "[credential]\n\thelper = \"!f() { echo username=" + gitremote.User + "; echo password=" + gitremote.Password + "; }; f\"\n[safe]\n\tdirectory = *\n"
	if err := os.WriteFile(filepath.Join(r.home, "user", ".gitconfig"), []byte(helper), 0o600); err != nil {
		t.Fatal(err)
	}
	sshd := gitremote.SSH(t)
	c.env = []string{"GIT_SSH_COMMAND=" + sshd.Command(), "NO_PROXY=127.0.0.1", "GIT_DIR=/nonexistent"}
	for as, to := range map[string]string{"": "", "over/http": gitremote.HTTP(t, base) + "/remote.git", "over/ssh": sshd.URL + remote, "over/file": "file://" + remote} {
		args := []string{"--json", "thread", "push", id}
		if to != "" {
			args = append(args, "--remote", to, "--as", as)
		}
		var p struct{ Remote, Branch, Commit string }
		if err := json.Unmarshal([]byte(c.must(args...)), &p); err != nil || as == "" && (p.Remote != remote || p.Branch != th.Files.Branch) {
			t.Errorf("%+v, %v", p, err)
		}
		if got := userGit(t, remote, "rev-parse", "refs/heads/"+p.Branch); got != p.Commit {
			t.Errorf("%s has %s, not %s", to, got, p.Commit)
		}
		userGit(t, remote, "fsck", "--strict")
	}
	if out := c.must("thread", "undo", id); !strings.Contains(out, "before turn 1: 3 files changed") || !strings.Contains(out, "\nmodified \"a.txt\"\n") {
		t.Errorf("%s", out)
	}
	if out := c.must("thread", "diff", id); out != "" {
		t.Errorf("after the undo: %s", out)
	}
	if out := c.must("thread", "undo", id, "2"); !strings.Contains(out, "before turn 2") {
		t.Errorf("%s", out)
	}
	if got := c.must("thread", "diff", id); got != want.String() {
		t.Errorf("after both: %s", got)
	}
	for _, what := range []string{"apply", "pull", "merge", "push"} {
		if _, errs, code := c.run("thread", what, "01890000-0000-7000-8000-000000000009"); code != 3 {
			t.Errorf("%s of no thread: exit %d: %s", what, code, errs)
		}
	}
}
