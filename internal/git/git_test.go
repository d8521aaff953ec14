package git_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// agentUser is a user of the range that agents of root run as.
const agentUser = 1_900_000_123

func runner(t *testing.T) *git.Runner {
	t.Helper()
	bwrap := lab.Bwrap(t)
	return &git.Runner{Program: lab.Git(t), Self: lab.Thole(t), Box: func(context.Context) (string, error) { return bwrap, nil }}
}

// host runs git as a person would, with nobody's configuration.
func host(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(lab.Git(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// hostile is a repository whose configuration starts programs in every way that a
// configuration can. Each program leaves a file in marks.
func hostile(t *testing.T) (repo, marks string) {
	t.Helper()
	base := lab.Open(t)
	repo, marks = filepath.Join(base, "repo"), filepath.Join(base, "marks")
	for _, dir := range []string{repo, marks} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	host(t, repo, "init", "-q", "-b", "main")
	write(t, filepath.Join(repo, "a.txt"), "one\n", 0o644)
	write(t, filepath.Join(repo, ".gitattributes"), "*.txt filter=evil diff=evil merge=evil\n", 0o644)
	host(t, repo, "add", "-A")
	host(t, repo, "commit", "-qm", "first")
	mark := func(name string) string { return "touch " + filepath.Join(marks, name) + ";" }
	write(t, filepath.Join(repo, "more"), "[core]\n\tfsmonitor = \""+mark("included")+" false\"\n", 0o644)
	for k, v := range map[string]string{
		"include.path":       filepath.Join(repo, "more"),
		"core.fsmonitor":     mark("fsmonitor") + " false",
		"core.hooksPath":     filepath.Join(repo, "hooks"),
		"core.sshCommand":    mark("ssh") + " false",
		"core.pager":         mark("pager") + " cat",
		"core.editor":        mark("editor") + " true",
		"core.askPass":       mark("askpass") + " true",
		"alias.status":       "!" + mark("alias"),
		"filter.evil.clean":  mark("clean") + " cat",
		"filter.evil.smudge": mark("smudge") + " cat",
		"diff.evil.textconv": mark("textconv") + " cat",
		"diff.external":      mark("external") + " true",
		"gpg.program":        mark("gpg"),
		"commit.gpgSign":     "true",
		"credential.helper":  "!" + mark("credential"),
		"remote.origin.url":  "ext::sh -c '" + mark("ext") + "'",
	} {
		host(t, repo, "config", k, v)
	}
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit"} {
		write(t, filepath.Join(repo, "hooks", hook), "#!/bin/sh\n"+mark("hook-"+hook)+" exit 0\n", 0o755)
	}
	write(t, filepath.Join(repo, "a.txt"), "two\n", 0o644)
	return repo, marks
}

func marked(t *testing.T, marks string) []string {
	t.Helper()
	entries, err := os.ReadDir(marks)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAHostileRepositoryRunsNothingOnTheHost(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		repo, marks := hostile(t)
		r := runner(t)
		for _, uid := range []int{0, agentUser} {
			for _, args := range [][]string{
				{"status", "--porcelain"}, {"diff"}, {"log", "-p", "--show-signature"}, {"add", "-A"}, {"checkout", "-f", "HEAD", "--", "a.txt"},
				{"update-ref", "refs/thole/x", "HEAD"}, {"commit", "-qam", "second"}, {"fetch", "origin"}, {"ls-remote", "ext::touch " + filepath.Join(marks, "direct")},
			} {
				_, err := r.Run(t.Context(), git.Cmd{Dir: repo, Args: args, Write: []string{repo}, UID: uid,
					Env: map[string]string{"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}})
				t.Logf("%d %v: %v", uid, args, err)
				if found := marked(t, marks); len(found) > 0 {
					t.Fatalf("git %v as %d ran %v", args, uid, found)
				}
			}
		}
		// The attack is real: a person's git runs some of it.
		write(t, filepath.Join(repo, "a.txt"), "three\n", 0o644)
		host(t, repo, "add", "-A")
		if found := strings.Join(marked(t, marks), " "); !strings.Contains(found, "clean") || !strings.Contains(found, "fsmonitor") && !strings.Contains(found, "included") {
			t.Fatalf("without a box only this ran: %s", found)
		}
	})
}

// Without a box, which a person typed, what has a fixed name is still off.
func TestWithoutABoxTheSafeConfigurationHolds(t *testing.T) {
	repo, marks := hostile(t)
	r := &git.Runner{Program: lab.Git(t), Box: func(context.Context) (string, error) { return "", nil }}
	for _, args := range [][]string{{"status", "--porcelain"}, {"update-ref", "refs/thole/x", "HEAD"}, {"fetch", "origin"}} {
		_, _ = r.Run(t.Context(), git.Cmd{Dir: repo, Args: args})
	}
	for _, name := range marked(t, marks) {
		if name != "clean" { // a filter has a name that the repository chose
			t.Errorf("%s ran", name)
		}
	}
}

func TestABoxShowsOnlyWhatItIsTold(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		repo, _ := hostile(t)
		secret := filepath.Join(lab.Open(t), "secret")
		write(t, secret, "s3cret", 0o644)
		r := runner(t)
		if _, err := r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"update-ref", "refs/thole/x", "HEAD"}}); err == nil {
			t.Error("wrote into what is shown read-only")
		}
		out, err := r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"hash-object", secret}})
		if err == nil {
			t.Errorf("read %s: %s", secret, out)
		}
		if _, err := r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"hash-object", "/etc/passwd"}}); err == nil {
			t.Error("read /etc/passwd")
		}
		out, err = r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"rev-parse", "HEAD"}})
		if err != nil || strings.TrimSpace(string(out)) != host(t, repo, "rev-parse", "HEAD") {
			t.Errorf("rev-parse: %s, %v", out, err)
		}
	})
}

// A server that is root runs git as the owner of the files, which may lie where that
// user cannot go.
func TestRootRunsGitAsTheOwnerOfTheFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has other users")
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(closed, "repo")
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(repo, agentUser, agentUser); err != nil {
		t.Fatal(err)
	}
	r := runner(t)
	if _, err := r.Run(t.Context(), git.Cmd{Dir: repo, Write: []string{repo}, UID: agentUser, Args: []string{"init", "-q"}}); err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(repo, ".git", "config"), &st); err != nil || st.Uid != agentUser {
		t.Errorf("the files belong to %d, %v", st.Uid, err)
	}
}

func TestRunsAreBounded(t *testing.T) {
	repo, _ := hostile(t)
	r := runner(t)
	_, err := r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"cat-file", "-p", "HEAD"}, Limit: 10})
	if !errors.Is(err, git.ErrTooLong) {
		t.Errorf("a long answer: %v", err)
	}
	in, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"cat-file", "--batch"}, Stdin: in, Timeout: 300 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an endless run: %v", err)
	}
	_, err = r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"rev-parse", "--verify", "nothing"}})
	var failed *git.Error
	if !errors.As(err, &failed) || failed.Exit != 128 || !strings.Contains(err.Error(), "git rev-parse: fatal") {
		t.Errorf("a failure: %v", err)
	}
	var out bytes.Buffer
	if _, err := r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"hash-object", "--stdin"}, Stdin: strings.NewReader("x"), Stdout: &out}); err != nil || out.Len() != 41 {
		t.Errorf("streams: %q, %v", out.String(), err)
	}
	if _, err := r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo, "/not/there"}, Args: []string{"status"}}); err == nil {
		t.Error("a path that is not there was shown")
	}
}

// The server's environment is not git's.
func TestTheServersEnvironmentStaysOut(t *testing.T) {
	repo, _ := hostile(t)
	other := t.TempDir()
	t.Setenv("GIT_DIR", other)
	t.Setenv("GIT_CONFIG_PARAMETERS", "'core.bare'='true'")
	r := runner(t)
	out, err := r.Own(t.Context(), repo, "rev-parse", "--is-bare-repository")
	if err != nil || strings.TrimSpace(string(out)) != "false" {
		t.Errorf("own: %s, %v", out, err)
	}
	out, err = r.Run(t.Context(), git.Cmd{Dir: repo, Show: []string{repo}, Args: []string{"rev-parse", "--is-bare-repository"}, Config: map[string]string{"core.bare": "false"}})
	if err != nil || strings.TrimSpace(string(out)) != "false" {
		t.Errorf("boxed: %s, %v", out, err)
	}
}

func TestTransport(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/a.git": "https", "http://[::1]:80/a": "http", "ssh://git@h:22/a": "ssh", "git@h:a/b.git": "ssh", "h:a": "ssh", "HTTPS://h/a": "https",
		"ext::sh -c x": "", "file:///a": "", "git://h/a": "", "/a/b": "", "./a:b": "", "-oProxyCommand=x:a": "", "a": "", "fd::3": "", "": "", "ftp://h/a": "",
	} {
		if got := git.Transport(address); got != want {
			t.Errorf("Transport(%q) = %q, want %q", address, got, want)
		}
	}
}
