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

	"golang.org/x/sys/unix"

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
	for _, path := range hooks {
		p.Named = append(p.Named, Named{path, true})
	}
	g, err := p.Guard()
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
	want := []string{"main/.further", "main/.git/.githooks", "main/.git/.husky", "main/.git/config", "main/.git/config.worktree", "main/.git/hooks", "main/.git/info", "main/.git/more", "main/.git/objects/info/alternates", "main/.githooks", "main/.husky/_", "main/.shared", "main/more"}
	if got := r.covered("main", ".githooks", "/elsewhere"); !slices.Equal(got, want) {
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
	g, err := p.Guard()
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
		"a configuration too long to be read": func(r *rig) error {
			f, err := os.OpenFile(r.path("main/.git/config"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(strings.Repeat("# no\n", maxConfig/5))
			return err
		},
		"configuration that is a pipe": func(r *rig) error {
			return errs(os.Remove(r.path("main/.git/config")), unix.Mkfifo(r.path("main/.git/config"), 0o644))
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
		if g, err := p.Guard(); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" || strings.Contains(name, "pipe") && strings.Contains(thole.HintOf(err), "git config") {
			t.Errorf("%s: %v (%s)", name, err, thole.HintOf(err))
			g.Release()
		}
	}
}

// Hooks for all repositories are known also where the home's configuration is a link, as
// people have who keep it elsewhere.
func TestHooksOfUser(t *testing.T) {
	r := newRig(t)
	r.write("dotfiles/config", "[core]\n\thooksPath = ~/hooks\n[include]\n\tpath = more\n")
	r.write("more", "[core]\n\thooksPath = .githooks\n")
	if err := os.Symlink("dotfiles/config", r.path(".gitconfig")); err != nil {
		t.Fatal(err)
	}
	p := Place{Dir: r.path("dotfiles"), Home: r.top}
	if got, err := p.NamedOutside(); err != nil || !slices.Equal(got, []Named{{r.path("dotfiles/config"), false}, {".githooks", true}}) {
		t.Errorf("%v, %v", got, err)
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

// What the configuration of a submodule, a linked work tree or a repository below leads to
// is covered, relative to its own work tree.
func TestGuardOfEveryRepository(t *testing.T) {
	r := shapes(t)
	r.init("main/vendor/dep")
	r.init("main/apart", "--separate-git-dir", r.path("main/apart.git"))
	r.git("main", "worktree", "add", "-q", "--detach", r.path("main/tree"))
	r.git("", "clone", "-q", "--bare", r.path("lib"), r.path("main/bare.git"))
	r.git("main", "config", "core.hooksPath", ".main # team")
	for _, dir := range []string{"sub", "vendor/dep", "apart", "bare.git"} {
		r.git("main/"+dir, "config", "core.hooksPath", ".hooks")
		r.git("main/"+dir, "config", "include.path", r.path("main/shared"))
	}
	commit := strings.TrimSpace(r.git("lib", "rev-parse", "HEAD"))
	for _, dir := range []string{"sub", "vendor/dep", "tree"} {
		r.git("main/"+dir, "update-index", "--add", "--cacheinfo", "160000,"+commit+",deeper")
	}
	got := r.covered("main")
	for _, want := range []string{"main/.main # team", "main/tree/.main # team", "main/tree/.git", "main/sub/.git", "main/sub/.hooks", "main/sub/deeper", "main/vendor/dep/.hooks", "main/vendor/dep/deeper", "main/tree/deeper", "main/apart/.git",
		"main/apart/.hooks", "main/apart.git/config", "main/bare.git/config", "main/bare.git/.hooks", "main/shared"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not covered", want)
		}
	}
	group := r.covered(".")
	for _, want := range append(got, "linked/.git", "linked/.main # team", "lib/.git/config") {
		if !slices.Contains(group, want) {
			t.Errorf("above all, %s is not covered", want)
		}
	}
}

// A path that configuration elsewhere names is covered where it lies in the place; one that
// may be another one by then is refused.
func TestNamedOutside(t *testing.T) {
	r := newRig(t)
	r.init("main")
	r.write("team", "[core]\n\thooksPath = .githooks\n[include]\n\tpath = way\n")
	if err := os.Symlink("main/more", r.path("way")); err != nil {
		t.Fatal(err)
	}
	r.write("main/.git/config", "[include]\n\tpath = "+r.path("team")+" ; x\n")
	p, err := Locate(r.path("main"), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.NamedOutside(); err != nil || !slices.Equal(got, []Named{{r.path("main/more"), false}, {r.path("main/.githooks"), true}}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"[include]\n\tpath = ~nobody/x\n", "[core]\n\thooksPath = a\tb\n", "[core\n"} {
		r.write("main/.git/config", text)
		if got, err := p.NamedOutside(); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if g, err := p.Guard(); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%q: %v", text, err)
			g.Release()
		}
	}
}

// An index that is written where it lies, and what replaces a guarded name, is seen.
func TestWatch(t *testing.T) {
	r := newRig(t)
	r.init("main")
	r.git("main", "config", "include.path", "../shared/x")
	r.write("main/shared/x", "")
	r.write("main/file", "")
	r.git("main", "add", "file")
	p, err := Locate(r.path("main"), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Guard()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Release()
	seen := make(chan bool)
	stop, err := g.Watch(func() { seen <- true })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		go func() {
			for range seen {
			}
		}()
		stop()
		close(seen)
	}()
	<-seen
	index, err := os.OpenFile(r.path("main/.git/index"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	for _, do := range []func() error{
		func() error { _, err := index.Write([]byte("DIRC")); return err },
		func() error { return os.Rename(r.path("main/file"), r.path("main/shared/x")) },
		func() error { return os.Rename(r.path("main/shared"), r.path("main/other")) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		<-seen
	}
}

// A repository that was guarded all the time is its owner's, and nothing beyond what agents
// write is touched.
func TestDisarm(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"main", "main/own", "main/evil", "beyond"} {
		r.init(name)
		r.git(name, "config", "core.fsmonitor", "x")
	}
	if err := os.Rename(r.path("main/evil"), r.path("evil")); err != nil {
		t.Fatal(err)
	}
	p, err := Locate(r.path("main"), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Guard()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Release()
	if err := os.Rename(r.path("evil"), r.path("main/evil")); err != nil {
		t.Fatal(err)
	}
	for link, gone := range map[string]bool{"own": false, "../beyond": false, ".": false, "none": false, "hidden/../evil": true} {
		trap := Trap{Path: p.Top + "/" + link, place: &p, guards: g}
		if err := trap.Disarm(); err != nil {
			t.Errorf("%s: %v", link, err)
		}
		if there := exists(r.path("main/" + link + "/.git")); there == gone && link != "none" {
			t.Errorf("%s: still there: %v", link, there)
		}
	}
}
