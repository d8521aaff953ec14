package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// An agent's repository runs nothing when a person types git status where it was
// exported to; with raw, which keeps all, each of these does.
func TestAnExportRunsNothing(t *testing.T) {
	t.Parallel()
	git := lab.Git(t)
	marker := filepath.Join(t.TempDir(), "ran")
	runs := `"touch ` + marker + `; true"`
	in := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	add := func(t *testing.T, b *box, name, text string) {
		t.Helper()
		old, _ := os.ReadFile(filepath.Join(b.dir, name))
		b.put(t, name, string(old)+text)
	}
	move := func(t *testing.T, b *box, from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(b.dir, from), filepath.Join(b.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		plant func(t *testing.T, b *box)
		where string
		types []string
		says  string
	}{
		"fsmonitor": {plant: func(t *testing.T, b *box) { add(t, b, ".git/config", "[core]\n\tfsmonitor = "+runs+"\n") }, says: "core.fsmonitor"},
		"on the line of its section, in capitals, continued": {plant: func(t *testing.T, b *box) {
			add(t, b, ".git/config", "[CORE] fsMonitor = \\\n"+runs+"\n")
		}, says: "core.fsmonitor"},
		"include": {plant: func(t *testing.T, b *box) {
			add(t, b, ".git/config", "[include]\n\tpath = ../evil\n")
			b.put(t, "evil", "[core]\n\tfsmonitor = "+runs+"\n")
		}, says: "include.path"},
		"filter": {plant: func(t *testing.T, b *box) {
			add(t, b, ".git/config", "[filter \"x\"]\n\tclean = "+runs+"\n")
			b.put(t, ".gitattributes", "* filter=x\n")
			b.put(t, "file", "TEXT\n")
		}, says: `filter "x".clean`},
		"hook": {plant: func(t *testing.T, b *box) {
			b.put(t, ".git/hooks/post-checkout", "#!/bin/sh\ntouch "+marker+"\n")
			if err := os.Chmod(filepath.Join(b.dir, ".git/hooks/post-checkout"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, types: []string{"checkout", "-q", "-b", "other"}, says: ".git/hooks"},
		"a repository by another name": {plant: func(t *testing.T, b *box) {
			add(t, b, ".git/config", "[core]\n\tfsmonitor = "+runs+"\n")
			move(t, b, ".git", "elsewhere")
			b.put(t, ".git", "gitdir: elsewhere\n")
		}, says: "elsewhere/config"},
		"common directory": {plant: func(t *testing.T, b *box) {
			add(t, b, ".git/config", "[core]\n\tfsmonitor = "+runs+"\n")
			move(t, b, ".git", "common")
			head, _ := os.ReadFile(filepath.Join(b.dir, "common/HEAD"))
			index, _ := os.ReadFile(filepath.Join(b.dir, "common/index"))
			if err := os.Remove(filepath.Join(b.dir, "common/HEAD")); err != nil {
				t.Fatal(err)
			}
			b.put(t, ".git/HEAD", string(head))
			b.put(t, ".git/index", string(index))
			b.put(t, ".git/commondir", "../common\n")
		}, says: "common/config"},
		"configuration that is a link": {plant: func(t *testing.T, b *box) {
			add(t, b, ".git/config", "[core]\n\tfsmonitor = "+runs+"\n")
			move(t, b, ".git/config", "evil")
			if err := os.Symlink("../evil", filepath.Join(b.dir, ".git/config")); err != nil {
				t.Fatal(err)
			}
		}, says: ".git/config"},
		"repository inside": {plant: func(t *testing.T, b *box) {
			if err := os.MkdirAll(filepath.Join(b.dir, "sub/deep"), 0o755); err != nil {
				t.Fatal(err)
			}
			in(filepath.Join(b.dir, "sub/deep"), "init", "-q")
			add(t, b, "sub/deep/.git/config", "[core]\n\tfsmonitor = "+runs+"\n")
		}, where: "sub/deep", says: "sub/deep/.git/config"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			thread := newThread()
			b := r.box(thread)
			in(b.dir, "init", "-q")
			b.put(t, "file", "text\n")
			in(b.dir, "add", "file")
			in(b.dir, "commit", "-q", "-m", "one")
			in(b.dir, "remote", "add", "origin", "https://example.org/x.git")
			c.plant(t, b)
			_ = os.Remove(marker)
			r.sync(b)
			if c.types == nil {
				c.types = []string{"status"}
			}
			for _, raw := range []bool{true, false} {
				to := filepath.Join(t.TempDir(), "out")
				_, x, err := r.manager.ExportDir(t.Context(), thread, to, raw)
				if err != nil {
					t.Fatal(err)
				}
				in(filepath.Join(to, c.where), c.types...)
				_, err = os.Stat(marker)
				if ran := err == nil; ran != raw {
					t.Errorf("raw %v: the agent's command ran: %v", raw, ran)
				}
				_ = os.Remove(marker)
				if said := strings.Join(x.Stripped, "\n"); strings.Contains(said, c.says) == raw {
					t.Errorf("raw %v: stripped %q", raw, said)
				}
				if got := in(to, "log", "--format=%s"); !raw && got != "one\n" {
					t.Errorf("the history is %q", got)
				}
			}
		})
	}
}
