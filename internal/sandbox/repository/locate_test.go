package repository

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
)

// shapes makes repositories of every shape that git itself makes.
func shapes(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.init("main")
	r.init("lib")
	r.git("main", "submodule", "--quiet", "add", r.path("lib"), "sub")
	r.git("main", "commit", "-q", "-m", "two")
	r.git("main", "worktree", "add", "-q", r.path("linked"))
	return r
}

// Wherever a repository may lie, it is found, with all of its git directories.
func TestLocate(t *testing.T) {
	r := shapes(t)
	r.git("linked", "submodule", "--quiet", "update", "--init")
	r.git("", "clone", "-q", "--shared", r.path("main"), r.path("shared"))
	r.git("", "clone", "-q", "--bare", r.path("main"), r.path("bare.git"))
	r.write("main/a/b/file", "")
	r.write("main/empty/.git/file", "")
	r.write("none/file", "")
	r.init("apart", "--separate-git-dir", r.path("apart.git"))
	r.git("apart", "config", "core.worktree", r.path("apart"))
	r.init("sparse", "--separate-git-dir", r.path("sparse.git"))
	r.git("sparse", "config", "core.worktree", "../sparse")
	r.git("sparse", "config", "extensions.worktreeConfig", "true")
	r.git("sparse", "config", "--worktree", "core.worktree", "../sparse")
	r.git("sparse", "config", "--local", "--unset", "core.worktree")
	r.init("ring")
	r.init("ring2")
	r.write("ring/.git/objects/info/alternates", "# of\n\""+r.path("ring2")+"/.git/objects\"\n/nonexistent\n")
	r.write("ring2/.git/objects/info/alternates", "../../../ring/.git/objects\n"+r.path("none/file")+"\n")
	r.init("moved")
	if err := errs(os.Rename(r.path("moved/.git/objects"), r.path("objects")), os.Symlink("../../objects", r.path("moved/.git/objects"))); err != nil {
		t.Fatal(err)
	}
	main := r.path("main/.git")
	own := func(top string) Place { return Place{Top: top, Git: top + "/.git", Common: top + "/.git"} }
	with := func(p Place, objects ...string) Place { p.Objects = objects; return p }
	for dir, want := range map[string]Place{
		"main":             own(r.path("main")),
		"main/a/b":         own(r.path("main")),
		"main/empty":       own(r.path("main")), // git passes it over too
		"main/.git":        own(r.path("main")),
		"main/.git/refs":   own(r.path("main")),
		"main/sub":         {Top: r.path("main/sub"), Git: main + "/modules/sub", Common: main + "/modules/sub"},
		"linked":           {Top: r.path("linked"), Git: main + "/worktrees/linked", Common: main},
		"linked/sub":       {Top: r.path("linked/sub"), Git: main + "/worktrees/linked/modules/sub", Common: main + "/worktrees/linked/modules/sub"},
		"shared":           with(own(r.path("shared")), main+"/objects"),
		"ring":             with(own(r.path("ring")), r.path("ring2/.git/objects")),
		"moved":            with(own(r.path("moved")), r.path("objects")),
		"apart":            {Top: r.path("apart"), Git: r.path("apart.git"), Common: r.path("apart.git")},
		"sparse":           {Top: r.path("sparse"), Git: r.path("sparse.git"), Common: r.path("sparse.git")},
		"bare.git":         {Git: r.path("bare.git"), Common: r.path("bare.git")},
		"bare.git/objects": {Git: r.path("bare.git"), Common: r.path("bare.git")},
		"none":             {},
	} {
		want.Dir = r.path(dir)
		if want.Git != "" {
			want.UID = os.Geteuid()
		}
		got, err := Locate(r.path(dir), nil)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v, want %+v", dir, got, err, want)
		}
		if refused := got.CheckFiles() != nil; refused != (strings.Contains(dir, ".git")) {
			t.Errorf("%s: files to work on: %v", dir, got.CheckFiles())
		}
	}
	if got, err := Locate(r.path("apart"), nil); err != nil || !slices.Equal(got.Outside(), []string{r.path("apart.git")}) {
		t.Errorf("apart: %v, %v", got.Outside(), err)
	}
	for dir, want := range map[string][]string{"shared": {r.path("shared/.git/objects"), main + "/objects"}, "moved": {r.path("objects")}} {
		if got, err := Locate(r.path(dir), nil); err != nil || !slices.Equal(got.ObjectDirs(), want) {
			t.Errorf("objects of %s: %v, %v", dir, got.ObjectDirs(), err)
		}
	}
}

// What agents must not be shown is not found, and not followed.
func TestLocateWhatIsAllowed(t *testing.T) {
	r := shapes(t)
	r.write("main/a/file", "")
	r.git("", "clone", "-q", "--shared", r.path("main"), r.path("shared"))
	but := func(name string) func(string) error {
		return func(path string) error {
			if path == r.path(name) {
				return os.ErrPermission
			}
			return nil
		}
	}
	if got, err := Locate(r.path("main/a"), but("main")); err != nil || got.Git != "" {
		t.Errorf("below a work tree that cannot be shown: %+v, %v", got, err)
	}
	for dir, no := range map[string]string{"linked": "main/.git", "main/sub": "main/.git/modules/sub", "shared": "main/.git/objects"} {
		if got, err := Locate(r.path(dir), but(no)); err == nil {
			t.Errorf("%s leads to %s: %+v", dir, no, got)
		}
	}
}

// Whatever another person packs or an agent writes, no repository is found that did not agree.
func TestLocateRefuses(t *testing.T) {
	led := func(r *rig, to string) error { r.write("evil/.git", "gitdir: "+to+"\n"); return nil }
	for name, plant := range map[string]func(r *rig) error{
		"a link": func(r *rig) error {
			return errs(os.Mkdir(r.path("evil"), 0o755), os.Symlink("../main/.git", r.path("evil/.git")))
		},
		"a file that leads to a repository":     func(r *rig) error { return led(r, r.path("main/.git")) },
		"a file that climbs to a repository":    func(r *rig) error { return led(r, strings.Repeat("../", 40)+r.path("main/.git")[1:]) },
		"a file that leads to a submodule":      func(r *rig) error { return led(r, "../main/.git/modules/sub") },
		"a file that leads to a bare one":       func(r *rig) error { r.gitDir("bare", ""); return led(r, "../bare") },
		"a file that leads to a linked one":     func(r *rig) error { return led(r, r.path("main/.git/worktrees/linked")) },
		"a file that leads nowhere":             func(r *rig) error { return led(r, "/nonexistent") },
		"a file that leads to itself":           func(r *rig) error { return led(r, ".git") },
		"a file that leads to its directory":    func(r *rig) error { return led(r, ".") },
		"a file that leads to a file":           func(r *rig) error { return led(r, "../main/.gitmodules") },
		"a file that leads into a loop":         func(r *rig) error { return errs(led(r, "loop"), os.Symlink("loop", r.path("evil/loop"))) },
		"a file that leads to a file that does": func(r *rig) error { return led(r, "../linked/.git") },
		"a file that leads to no repository": func(r *rig) error {
			r.own("evil")
			return os.Remove(r.path("evil.git/HEAD"))
		},
		"a file that says nothing":  func(r *rig) error { r.write("evil/.git", ""); return nil },
		"a file that names nothing": func(r *rig) error { r.write("evil/.git", "gitdir: \n"); return nil },
		"a huge file": func(r *rig) error {
			r.own("evil")
			return os.WriteFile(r.path("evil/.git"), []byte("gitdir: ../evil.git"+strings.Repeat("\n", maxLine)), 0o644)
		},
		"a pipe": func(r *rig) error {
			return errs(os.Mkdir(r.path("evil"), 0o755), syscall.Mkfifo(r.path("evil/.git"), 0o644))
		},
		"a socket": func(r *rig) error {
			if err := os.Mkdir(r.path("evil"), 0o755); err != nil {
				return err
			}
			r.Chdir(r.path("evil")) // its path may be too long
			l, err := net.Listen("unix", ".git")
			if err == nil {
				r.Cleanup(func() { l.Close() })
			}
			return err
		},
		"a repository with the configuration of another": func(r *rig) error {
			r.gitDir("evil/.git", "")
			r.write("evil/.git/commondir", "../../main/.git\n")
			return nil
		},
		"a bare one with the configuration of another": func(r *rig) error {
			r.gitDir("evil", "")
			r.write("evil/commondir", "../main/.git\n")
			return nil
		},
		"a git directory elsewhere with the configuration of another": func(r *rig) error {
			r.own("evil")
			r.write("evil.git/commondir", "../main/.git\n")
			return nil
		},
		"a work tree that its repository does not know": func(r *rig) error {
			r.write("evil/git/HEAD", "ref: refs/heads/main\n")
			r.write("evil/git/commondir", r.path("main/.git")+"\n")
			r.write("evil/git/gitdir", r.path("evil/.git")+"\n")
			return led(r, "git")
		},
		"a repository of a repository of a work tree": func(r *rig) error {
			r.gitDir("mid/.git", "")
			r.write("mid/.git/commondir", "../../main/.git\n")
			r.write("mid/.git/worktrees/evil/HEAD", "ref: refs/heads/main\n")
			r.write("mid/.git/worktrees/evil/commondir", "../..\n")
			r.write("mid/.git/worktrees/evil/gitdir", r.path("evil/.git")+"\n")
			return led(r, "../mid/.git/worktrees/evil")
		},
		"a pipe that says where the repository is": func(r *rig) error {
			r.write("evil/git/HEAD", "ref: refs/heads/main\n")
			return errs(led(r, "git"), syscall.Mkfifo(r.path("evil/git/commondir"), 0o644))
		},
		"a pipe as configuration": func(r *rig) error {
			r.own("evil")
			return errs(os.Remove(r.path("evil.git/config")), syscall.Mkfifo(r.path("evil.git/config"), 0o644))
		},
		"a link that says whose work tree it is": func(r *rig) error {
			r.write("evil/.git", "gitdir: ../main/.git/worktrees/linked\n")
			r.write("back", r.path("evil/.git")+"\n")
			return errs(os.Remove(r.path("main/.git/worktrees/linked/gitdir")), os.Symlink(r.path("back"), r.path("main/.git/worktrees/linked/gitdir")))
		},
		"a pipe of objects elsewhere": func(r *rig) error {
			r.gitDir("evil/.git", "")
			return syscall.Mkfifo(r.path("evil/.git/objects/info/alternates"), 0o644)
		},
		"a link of objects elsewhere": func(r *rig) error {
			r.gitDir("evil/.git", "")
			return os.Symlink("/etc/passwd", r.path("evil/.git/objects/info/alternates"))
		},
		"too many objects elsewhere": func(r *rig) error {
			r.gitDir("evil/.git", "")
			var all strings.Builder
			for i := range maxObjects + 1 {
				r.write(fmt.Sprintf("o%d/pack/x", i), "")
				fmt.Fprintf(&all, "%s\n", r.path(fmt.Sprintf("o%d", i)))
			}
			r.write("evil/.git/objects/info/alternates", all.String())
			return nil
		},
		"objects of another user": func(r *rig) error {
			r.gitDir("evil/.git", "")
			r.write("evil/.git/objects/info/alternates", r.path("lib/.git/objects")+"\n")
			return r.another("lib/.git/objects")
		},
		"a file of another user":          func(r *rig) error { r.own("evil"); return r.another("evil/.git") },
		"a git directory of another user": func(r *rig) error { r.own("evil"); return r.another("evil.git") },
		"a work tree of another user":     func(r *rig) error { r.own("evil"); return r.another("evil") },
		"a .git of another user":          func(r *rig) error { r.gitDir("evil/.git", ""); return r.another("evil/.git") },
		"a linked work tree's repository of another user": func(r *rig) error {
			r.linkTree("evil")
			return r.another("main/.git")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t) // by hand: git takes a while
			r.gitDir("main/.git", "")
			r.gitDir("lib/.git", "")
			r.gitDir("main/.git/modules/sub", "[core]\n\tworktree = ../../../sub\n")
			r.write("main/sub/.git", "gitdir: ../.git/modules/sub\n")
			r.write("main/.gitmodules", "")
			r.linkTree("linked")
			for _, dir := range []string{"main", "main/sub", "linked"} {
				if p, err := Locate(r.path(dir), nil); err != nil || p.Top != r.path(dir) {
					t.Fatalf("%+v, %v", p, err)
				}
			}
			if strings.HasSuffix(name, "another user") && os.Geteuid() != 0 {
				t.Skip("only root has files of others")
			}
			if err := plant(r); err != nil {
				t.Fatal(err)
			}
			r.write("evil/below/file", "")
			for _, dir := range []string{"evil", "evil/below"} {
				if got, err := Locate(r.path(dir), nil); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" || got.Git != "" {
					t.Errorf("%s: %+v, %v (%s)", dir, got, err, thole.HintOf(err))
				}
			}
		})
	}
}

// own makes a work tree whose git directory is apart, and says so.
func (r *rig) own(name string) {
	r.Helper()
	r.gitDir(name+".git", "[core]\n\tworktree = "+r.path(name)+"\n")
	r.write(name+"/.git", "gitdir: ../"+name+".git\n")
	if _, err := Locate(r.path(name), nil); err != nil {
		r.Fatal(err)
	}
}

// gitDir makes a git directory.
func (r *rig) gitDir(name, config string) {
	r.Helper()
	r.write(name+"/HEAD", "ref: refs/heads/main\n")
	r.write(name+"/config", config)
	if err := errs(os.MkdirAll(r.path(name+"/objects/info"), 0o755), os.Mkdir(r.path(name+"/refs"), 0o755)); err != nil {
		r.Fatal(err)
	}
}

// linkTree makes a linked work tree of main.
func (r *rig) linkTree(name string) {
	r.Helper()
	at := "main/.git/worktrees/" + name
	r.write(at+"/HEAD", "ref: refs/heads/other\n")
	r.write(at+"/commondir", "../..\n")
	r.write(at+"/gitdir", r.path(name+"/.git")+"\n")
	r.write(name+"/.git", "gitdir: "+r.path(at)+"\n")
}

// another gives a path to another user.
func (r *rig) another(name string) error { return os.Lchown(r.path(name), 61234, 61234) }

// A person names a directory in any way, and hears when it is in no repository.
func TestFind(t *testing.T) {
	r := newRig(t)
	r.init("main")
	r.write("none/file", "")
	if err := os.Symlink("main", r.path("way")); err != nil {
		t.Fatal(err)
	}
	if p, err := Find(r.path("way")); err != nil || p.Top != r.path("main") || p.Dir != r.path("main") {
		t.Errorf("by a link: %+v, %v", p, err)
	}
	for dir, code := range map[string]thole.Code{"main": thole.CodeInvalid, r.path("none"): thole.CodeNotFound, r.path("nothing"): thole.CodeNotFound, r.path("none/file"): thole.CodeInvalid} {
		if _, err := Find(dir); thole.CodeOf(err) != code || thole.HintOf(err) == "" {
			t.Errorf("%s: %v (%s)", dir, err, thole.HintOf(err))
		}
	}
}
