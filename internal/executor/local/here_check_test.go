package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// A directory that is gone, or another one by now, is an error and never an empty place.
func TestADirectoryThatIsGone(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		top := owned(t)
		dir := filepath.Join(top, "project")
		write(t, filepath.Join(dir, "file"), "one\n")
		b := here(t, lab.Bwrap(t), dir)
		b.give(top)
		b.start()
		if err := b.driver.CheckFiles(t.Context(), b.id); err != nil {
			t.Errorf("it is there: %v", err)
		}
		for what, do := range map[string]func() error{
			"gone":     func() error { return os.Rename(dir, dir+".away") },
			"replaced": func() error { return os.Mkdir(dir, 0o755) },
		} {
			_ = os.Rename(dir+".away", dir)
			if what == "replaced" {
				_ = os.Rename(dir, dir+".away")
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
			b.give(top)
			err := b.driver.CheckFiles(t.Context(), b.id)
			if thole.CodeOf(err) != thole.CodeGone || !strings.Contains(err.Error(), what) || thole.HintOf(err) == "" {
				t.Errorf("%s, while it runs: %v (%s)", what, err, thole.HintOf(err))
			}
			if err := b.driver.Stop(t.Context(), b.id); err != nil {
				t.Fatal(err)
			}
			if _, err := b.driver.Start(t.Context(), b.id); thole.CodeOf(err) != thole.CodeGone || !strings.Contains(err.Error(), what) {
				t.Errorf("%s, at a start: %v", what, err)
			}
			if what == "replaced" {
				_ = os.Remove(dir)
			}
		}
		_ = os.Rename(dir+".away", dir)
		if got := b.attack(b.start(), "cat file"); got != "one\n" {
			t.Errorf("it is back: %q", got)
		}
	})
}

// Where a person may not have agents work.
func TestCheckHere(t *testing.T) {
	top := owned(t)
	home := filepath.Join(top, "person")
	t.Setenv("HOME", home)
	for _, dir := range []string{".ssh/x", ".config/nvim", ".config/gcloud/x", "project/gcloud", "project/.git/objects", "project/.git/refs", ".thole/x", "bare/objects", "bare/refs", "lies", "dot/claude", "dot/x", ".opencode/skill", ".codex"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(home, "file"), "")
	write(t, filepath.Join(home, "project/.git/HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(home, "project/.git/config"), "")
	write(t, filepath.Join(home, "project/.env"), "KEY=1\n")
	write(t, filepath.Join(home, "bare/HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(home, "lies/.git"), "gitdir: "+home+"/project/.git\n")
	if err := os.Symlink(".ssh", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("project", filepath.Join(home, "other")); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{".claude": "dot/claude", ".codex/AGENTS.md": "../notes/agents.md"} {
		if err := os.Symlink(to, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(home, "notes/agents.md"), "")
	for path, want := range map[string]string{
		home + "/dot": "configuration of agents", home + "/dot/claude": "configuration of agents", home + "/.opencode/skill": "configuration of agents", home + "/notes": "configuration of agents", home + "/dot/x": "",
		"/": "whole home directory", "/srv": "shared by everybody", "/etc": "belongs to the system", "/usr/local": "belongs to the system", "/proc/self": "belongs to the system", top: "whole home directory", home: "whole home directory",
		home + "/.ssh": "holds keys", home + "/.ssh/x": "holds keys", home + "/link": "holds keys", home + "/.config": "keys of many programs", home + "/.config/gcloud": "holds keys", home + "/.config/gcloud/x": "holds keys",
		home + "/.thole": "thole's own files", home + "/.thole/x": "thole's own files", home + "/file": "not a directory", home + "/none": "does not exist", "project": "not an absolute path",
		home + "/bare": "bare repository", home + "/bare/refs": "bare repository", home + "/project/.git": "lies in a git directory", home + "/lies": "does not say that it belongs here",
		home + "/project": "", home + "/project/gcloud": "", home + "/other": "", home + "/.config/nvim": "",
	} {
		place, err := local.CheckHere(path, filepath.Join(home, ".thole"))
		if (want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || path != "project" && !strings.Contains(path, "none") && thole.HintOf(err) == "") {
			t.Errorf("%s: %v (%s), want %q", path, err, thole.HintOf(err), want)
		}
		if err == nil && strings.Contains(place.Dir, "other") {
			t.Errorf("%s is %s: a link", path, place.Dir)
		}
	}
	if os.Getuid() == 0 {
		return
	}
	if _, err := local.CheckHere("/root", home+"/.thole"); err == nil {
		t.Error("another user's directory")
	}
}
