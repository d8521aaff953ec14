package repository

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func anywhere(string) error { return nil }

type rig struct {
	*testing.T
	top string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, top}
}

func (r *rig) path(name string) string { return filepath.Join(r.top, name) }

func (r *rig) git(dir string, args ...string) string {
	r.Helper()
	cmd := exec.Command(lab.Git(r.T), append([]string{"-C", r.path(dir), "-c", "user.name=p", "-c", "user.email=p@p", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v %s", args, err, out)
	}
	return string(out)
}

func (r *rig) write(name, text string) {
	r.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) init(name string, args ...string) {
	r.Helper()
	if err := os.MkdirAll(r.path(name), 0o755); err != nil {
		r.Fatal(err)
	}
	r.git(name, append([]string{"init", "-q", "-b", "main"}, args...)...)
	r.git(name, "commit", "-q", "--allow-empty", "-m", "one")
}

// read-only are the paths that a box would show so, below the top.
func (r *rig) covered(dir string, hooks ...string) []string {
	r.Helper()
	p, err := Locate(r.path(dir), anywhere)
	if err != nil {
		r.Fatal(err)
	}
	p.Home = r.top
	g, err := p.Guard(hooks)
	if err != nil {
		r.Fatal(err)
	}
	defer g.Release()
	var out []string
	for _, m := range g.Mounts {
		if !m.Write {
			out = append(out, strings.TrimPrefix(m.Path, r.top+"/"))
		}
	}
	return out
}

// Wherever a repository may lie, it is found, with all of its git directories.
func TestLocate(t *testing.T) {
	r := newRig(t)
	r.init("main")
	r.init("lib")
	r.git("main", "submodule", "--quiet", "add", r.path("lib"), "sub")
	r.git("main", "commit", "-q", "-m", "two")
	r.git("main", "worktree", "add", "-q", r.path("linked"))
	r.git("", "clone", "-q", "--shared", r.path("main"), r.path("shared"))
	r.write("main/a/b/file", "")
	r.write("none/file", "")
	r.init("apart", "--separate-git-dir", r.path("apart.git"))
	main := r.path("main/.git")
	for dir, want := range map[string]Place{
		"main":     {Top: r.path("main"), Git: main, Common: main},
		"main/a/b": {Top: r.path("main"), Git: main, Common: main},
		"main/sub": {Top: r.path("main/sub"), Git: main + "/modules/sub", Common: main + "/modules/sub"},
		"linked":   {Top: r.path("linked"), Git: main + "/worktrees/linked", Common: main},
		"shared":   {Top: r.path("shared"), Git: r.path("shared/.git"), Common: r.path("shared/.git"), Objects: []string{main + "/objects"}},
		"none":     {},
	} {
		want.Dir = r.path(dir)
		if got, err := Locate(r.path(dir), anywhere); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v, want %+v", dir, got, err, want)
		}
	}
	if got, err := Locate(r.path("main/a"), func(path string) error {
		if path == r.path("main") {
			return os.ErrPermission
		}
		return nil
	}); err != nil || got.Top != "" {
		t.Errorf("below a work tree that cannot be shown: %+v, %v", got, err)
	}

	// A file alone opens nothing.
	if _, err := Locate(r.path("apart"), anywhere); thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(thole.HintOf(err), "core.worktree") {
		t.Errorf("a git directory that does not know its work tree: %v (%s)", err, thole.HintOf(err))
	}
	r.git("apart", "config", "core.worktree", r.path("apart"))
	if got, err := Locate(r.path("apart"), anywhere); err != nil || got.Git != r.path("apart.git") || !slices.Equal(got.Outside(), []string{r.path("apart.git")}) {
		t.Errorf("now it does: %+v, %v", got, err)
	}
	r.write("thief/.git", "gitdir: "+main+"/worktrees/linked\n")
	r.write("lost/.git", "gitdir: /nonexistent\n")
	r.init("led")
	r.write("led/.git/commondir", "../../main/.git\n")
	r.git("", "init", "-q", "--bare", "bare")
	if err := errs(os.Mkdir(r.path("link"), 0o755), os.Symlink("../main/.git", r.path("link/.git"))); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"thief", "lost", "led", "bare", "link", "main/.git/refs"} {
		if got, err := Locate(r.path(dir), anywhere); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
			t.Errorf("%s: %+v, %v (%s)", dir, got, err, thole.HintOf(err))
		}
	}
}

func errs(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// Everything is covered that git takes programs or paths from, also what a configuration
// leads to, and what is not there is there only for as long.
func TestGuard(t *testing.T) {
	r := newRig(t)
	r.init("main")
	r.write("main/.shared", "[core]\n\thooksPath = more/hooks\n[include]\n\tpath = .further\n")
	r.write("main/.further", "")
	r.write("main/.husky/_/x", "")
	r.git("main", "config", "core.hooksPath", ".husky/_")
	r.git("main", "config", "include.path", "../.shared")
	r.git("main", "config", "includeIf.onbranch:x.path", "/nonexistent")
	want := []string{"main/.further", "main/.git/config", "main/.git/config.worktree", "main/.git/hooks", "main/.git/info", "main/.git/objects/info/alternates", "main/.githooks", "main/.husky/_", "main/.shared", "main/more"}
	if got := r.covered("main", ".githooks", "~nobody/hooks", "/elsewhere"); !slices.Equal(got, want) {
		t.Errorf("covered:\n%v, want\n%v", got, want)
	}
	_ = filepath.WalkDir(r.top, func(path string, e fs.DirEntry, _ error) error {
		if fi, err := e.Info(); err == nil && fi.Mode()&fs.ModeSticky != 0 {
			t.Errorf("%s is left", path)
		}
		return nil
	})
	if got := r.git("main", "status", "--short"); got != "?? .further\n?? .husky/\n?? .shared\n" {
		t.Errorf("git status afterwards: %q", got)
	}
	r.git("main", "config", "core.hooksPath", "~/main/of-home")
	if got := r.covered("main"); !slices.Contains(got, "main/of-home") {
		t.Errorf("hooks in the home: %v", got)
	}
	if got := r.covered("main/.husky"); !slices.Contains(got, "main/.husky/.git") || !slices.Contains(got, "main/.husky/HEAD") || !slices.Contains(got, "main/.git/config") {
		t.Errorf("below the top: %v", got)
	}

	// What has been left by a process that was killed is taken over, and removed.
	if err := create(r.path("main/.git/config.worktree"), false); err != nil {
		t.Fatal(err)
	}
	r.covered("main")
	if exists(r.path("main/.git/config.worktree")) {
		t.Error("what a killed process left stays")
	}
	// What a user has put there meanwhile stays.
	p, err := Locate(r.path("main"), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Guard(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.write("main/more/hooks/mine", "")
	if err := os.Rename(r.path("main/.further"), r.path("main/.git/config.worktree")); err != nil {
		t.Fatal(err)
	}
	g.Release()
	if !exists(r.path("main/more/hooks/mine")) || !exists(r.path("main/.git/config.worktree")) {
		t.Error("what is somebody's own was removed")
	}
}

// What cannot be covered is refused, with what helps.
func TestGuardRefuses(t *testing.T) {
	for name, do := range map[string]func(r *rig) error{
		"hooks by a link": func(r *rig) error {
			return errs(os.RemoveAll(r.path("main/.git/hooks")), os.Symlink("../h", r.path("main/.git/hooks")))
		},
		"configuration by a link": func(r *rig) error {
			return errs(os.Rename(r.path("main/.git/config"), r.path("main/c")), os.Symlink("../c", r.path("main/.git/config")))
		},
		"a second name": func(r *rig) error { return os.Link(r.path("main/.git/config"), r.path("main/c")) },
		"of a hook": func(r *rig) error {
			r.write("main/.git/hooks/x", "")
			return os.Link(r.path("main/.git/hooks/x"), r.path("main/x"))
		},
		"named hooks by a link": func(r *rig) error {
			r.write("main/real/hooks/x", "")
			r.git("main", "config", "core.hooksPath", "way/hooks")
			return os.Symlink("real", r.path("main/way"))
		},
	} {
		r := newRig(t)
		r.init("main")
		if err := do(r); err != nil {
			t.Fatal(err)
		}
		p, err := Locate(r.path("main"), anywhere)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := p.Guard(nil); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, thole.HintOf(err))
			g.Release()
		}
	}
}

// The repositories in an index are those that git itself finds there, in whichever form.
func TestGitlinks(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		r := newRig(t)
		r.init("main", "--object-format="+format)
		commit := strings.TrimSpace(r.git("main", "rev-parse", "HEAD"))
		var info strings.Builder
		blob := strings.TrimSpace(r.git("main", "hash-object", "-w", "--stdin"))
		want := map[string]bool{}
		for i := range 300 {
			name := fmt.Sprintf("d%d/%s", i%7, strings.Repeat("long", i))
			if i%50 == 1 {
				want[name] = true
				fmt.Fprintf(&info, "160000 %s 0\t%s\n", commit, name)
				continue
			}
			fmt.Fprintf(&info, "100644 %s 0\t%s\n", blob, name)
		}
		cmd := exec.Command(lab.Git(t), "-C", r.path("main"), "update-index", "--index-info")
		cmd.Stdin = strings.NewReader(info.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		for _, step := range [][]string{{"--index-version", "2"}, {"--index-version", "4"}, {"--split-index"}, {"--add", "--cacheinfo", "160000," + commit + ",later"}, {"--index-version", "3"}} {
			r.git("main", append([]string{"update-index"}, step...)...)
			if strings.HasSuffix(step[len(step)-1], ",later") {
				want["later"] = true
			}
			got, err := gitlinks(r.path("main/.git"), r.path("main/.git"))
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%s, after %v: %d of %d, %v", format, step, len(got), len(want), err)
			}
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 62) + "\x00a\x00linkxxxx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "index")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, sum := range []int{20, 32} {
			_, _ = indexLinks(path, sum, map[string]bool{}) // it ends
		}
	})
}
