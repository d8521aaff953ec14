package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
)

// platformNames are the names in a workspace that belong to the platform: every
// component of the built-in manifest's mount points and of the CLIs' data.
func platformNames(t *testing.T) (out []string) {
	t.Helper()
	m, err := workspace.BuiltIn{}.Manifest(context.Background(), thole.DefaultApp, "")
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{".agent_data/codex", ".agent_data/claude/claude", ".agent_data/opencode/opencode/data/opencode"}
	for _, mp := range m.MountPoints {
		paths = append(paths, strings.TrimPrefix(mp.TargetPath, workspace.Root+"/"))
	}
	seen := map[string]bool{}
	for _, p := range paths {
		for at := p; at != "."; at = filepath.Dir(at) {
			if !seen[at] {
				seen[at] = true
				out = append(out, at)
			}
		}
	}
	if len(out) < 12 {
		t.Fatalf("only %v: the test proves nothing", out)
	}
	return out
}

// obstacles are what an agent can put at a name.
var obstacles = []struct {
	name string
	put  func(path, inside, outside string) error
	kept bool // a snapshot has a place for it
}{
	{"file", func(path, _, _ string) error { return os.WriteFile(path, []byte("mine"), 0o644) }, true},
	{"link to outside", func(path, _, outside string) error { return os.Symlink(outside, path) }, true},
	{"link to inside", func(path, inside, _ string) error { return os.Symlink(inside, path) }, true},
	{"link to itself", func(path, _, _ string) error { return os.Symlink(filepath.Base(path), path) }, true},
	{"pipe", func(path, _, _ string) error { return syscall.Mkfifo(path, 0o644) }, false},
	{"socket", func(path, _, _ string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o644, 0) }, false},
	{"closed directory", func(path, _, _ string) error { return os.Mkdir(path, 0) }, false},
	{"hard link", func(path, _, outside string) error { return os.Link(filepath.Join(outside, "secret"), path) }, true},
}

// ancient is a side of a version that did not take names back: its snapshots have
// what the agent put there.
type ancient struct{ workspace.Side }

func (ancient) Claim(context.Context, workspace.ClaimRequest) (workspace.ClaimResult, error) {
	return workspace.ClaimResult{}, thole.Errorf(thole.CodeNotFound, "there is no such call")
}

// Whatever an agent puts at a name of the platform, its files are saved, the next
// turn finds the platform's directory there, a restore elsewhere works, and
// nothing outside the workspace is touched.
func TestPlatformNamesAreTakenBack(t *testing.T) {
	t.Parallel()
	asEachUser(t, testPlatformNames)
}

func testPlatformNames(t *testing.T) {
	r := newRig(t)
	owner := thole.DefaultOwner
	p, err := workspace.PrefixesOf(owner, newThread())
	if err != nil {
		t.Fatal(err)
	}
	r.object(p.App+"kb/known", "known")
	r.object(p.User+"files/given", "given")
	// Names of one depth do not hide one another, so they are tried together.
	depths := map[int][]string{}
	for _, name := range platformNames(t) {
		n := strings.Count(name, "/") + 1
		depths[n] = append(depths[n], name)
	}
	for depth, all := range depths {
		for _, o := range obstacles {
			for _, old := range []bool{false, true} {
				if old && (o.name == "pipe" || o.name == "socket") {
					continue // no snapshot ever had one
				}
				names := all
				if !old { // the place of the conversations cannot be taken
					names = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == workspace.AgentData })
				}
				title := fmt.Sprintf("%s at depth %d", o.name, depth)
				if old {
					title += " in an old snapshot"
				}
				t.Run(title, func(t *testing.T) {
					t.Parallel()
					mine := *r
					r := &mine
					r.t = t
					thread := newThread()
					b := r.box(thread)
					outside := trap(t, b)
					if old {
						b.old(r)
					}
					r.restore(b)
					b.put(t, "inside/work", "done")
					before := map[string]os.FileInfo{}
					for _, name := range names {
						at := b.at(name)
						err := os.RemoveAll(at)
						if err == nil {
							err = o.put(at, filepath.Join(b.dir, "inside"), outside)
						}
						if err == nil {
							before[name], err = os.Lstat(at)
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					target := b.target
					if old {
						target.Side = ancient{target.Side}
					}
					snap, err := r.manager.Sync(context.Background(), target, "test")
					if err != nil {
						t.Fatal(err)
					}
					if !old {
						for _, name := range names {
							usable(t, b, name)
							if st, err := os.Lstat(b.at(name + ".moved-aside")); o.name != "closed directory" && (err != nil || !os.SameFile(st, before[name])) {
								t.Errorf("what the agent had at %s: %v, %v", name, st, err)
							}
						}
						if err := r.manager.Verify(context.Background(), b.stopped(), snap); err != nil {
							t.Errorf("compare: %v", err)
						}
						if err := errors.Join(r.manager.Link(context.Background(), b.target), r.manager.Validate(context.Background(), b.target)); err != nil {
							t.Errorf("the next turn: %v", err)
						}
					}
					out := r.box(thread)
					r.restore(out)
					for path, want := range map[string]string{"inside/work": "done", ".kb/app/known": "known", ".user-files/given": "given"} {
						if got, err := os.ReadFile(filepath.Join(out.dir, path)); err != nil || string(got) != want {
							t.Errorf("restored %s is %q, %v", path, got, err)
						}
					}
					if list, err := os.ReadDir(filepath.Join(out.dir, "inside")); err != nil || len(list) != 1 {
						t.Errorf("something was written through a link: %v, %v", list, err)
					}
					for _, name := range names {
						usable(t, out, name)
						// Read-only mounts are not part of snapshots, nor is what an old version left there.
						if o.kept && !(old && strings.HasPrefix(name, ".kb/")) {
							at := out.at(name + ".moved-aside")
							if name == workspace.AgentData { // it is the agent's own now
								at = filepath.Join(out.dir, name)
							}
							if st, err := os.Lstat(at); err != nil || st.Mode().Type() != before[name].Mode().Type() {
								t.Errorf("what the agent had at %s: %v, %v", name, st, err)
							}
						}
					}
					r.sync(out)
				})
			}
		}
	}
}

// usable checks that a name of the platform is a directory that serves.
func usable(t *testing.T, b *box, name string) {
	t.Helper()
	at := b.at(name)
	if st, err := os.Lstat(at); err != nil || !st.IsDir() || st.Mode().Perm()&0o700 != 0o700 {
		t.Errorf("%s is %v, %v", name, st, err)
	}
	probe := filepath.Join(at, "probe")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Remove(probe); err != nil {
		t.Error(err)
	}
}
