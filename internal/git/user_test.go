package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// What a user's configuration includes for some repositories counts there alone, and the
// repository's own goes over it.
func TestSettingsOfAUser(t *testing.T) {
	home := lab.Open(t)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	repo := filepath.Join(home, "work", "repo")
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	host(t, repo, "init", "-q", "-b", "main")
	host(t, repo, "config", "user.signingkey", "of the repository")
	write(t, filepath.Join(home, "dotfiles", "gitconfig"), "[user]\n\tname = Ada\n\temail = ada@home\n\tsigningkey = k\n[includeIf \"gitdir:~/work/\"]\n\tpath = ~/dotfiles/work\n[core]\n\texcludesFile = ~/dotfiles/ignored\n", 0o644)
	write(t, filepath.Join(home, "dotfiles", "work"), "[user]\n\temail = ada@work\n", 0o644)
	if err := os.Symlink("dotfiles/gitconfig", filepath.Join(home, ".gitconfig")); err != nil {
		t.Fatal(err)
	}
	u := git.User{Git: runner(t), Home: home}
	if got := u.Ignored(t.Context()); got != "" {
		t.Errorf("ignored by %q, which is not there", got)
	}
	write(t, filepath.Join(home, "dotfiles", "ignored"), "*.swp\n", 0o644)
	if got := u.Ignored(t.Context()); got != filepath.Join(home, "dotfiles", "ignored") {
		t.Errorf("ignored by %q", got)
	}
	if got := u.Settings(t.Context()); got["user.email"] != "ada@home" || got["user.name"] != "Ada" {
		t.Errorf("alone: %v", got)
	}
	c := git.Cmd{Dir: repo, Show: []string{repo}, Env: map[string]string{"GIT_DIR": filepath.Join(repo, ".git"), "GIT_WORK_TREE": repo}}
	for own, want := range map[bool]string{true: "ada@work", false: "ada@home"} {
		if got, err := u.SettingsIn(t.Context(), c, own); err != nil || got["user.email"] != want || got["user.name"] != "Ada" || got["user.signingkey"] != "of the repository" {
			t.Errorf("in a repository, own %t: %v, %v", own, got, err)
		}
	}
	if got := (git.User{Git: runner(t)}).Settings(t.Context()); len(got) != 0 {
		t.Errorf("nobody's: %v", got)
	}
}

func TestMainRemote(t *testing.T) {
	for want, config := range map[string]map[string]string{
		"origin": {"remote.origin.url": "a", "remote.fork.url": "b", "branch.main.remote": "fork"},
		"a.b":    {"remote.a.b.url": "a", "remote.other.fetch": "x", "remote.pushdefault": "x"},
		"":       {"remote.one.url": "a", "remote.two.url": "b"},
	} {
		if got := git.MainRemote(config); got != want {
			t.Errorf("%v: %q, want %q", config, got, want)
		}
	}
}
