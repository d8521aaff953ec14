package workspace_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
)

const registry = "app/" + string(thole.DefaultApp) + "/registry/"

// What the thread made in the place of a template's file, of another kind or
// below which something is protected, is its work under every policy that does not
// say otherwise; and a restore that is repeated finds the same.
func TestWhatThreadsPutInTheTemplatesPlace(t *testing.T) {
	for _, tc := range []struct {
		policy workspace.ConflictPolicy
		want   map[string]string
	}{
		{workspace.KeepSession, map[string]string{"file": "session", "folder/in": "session", "link": "-> file", "kept/safe": "session"}},
		{workspace.PreferRegistry, map[string]string{"file": "template", "folder": "template", "link": "template", "kept/safe": "session"}},
		{workspace.Merge, map[string]string{"file": "session", "folder/in": "session", "link": "-> file", "kept/safe": "session"}},
	} {
		t.Run(string(tc.policy), func(t *testing.T) {
			r := newRig(t, func(c *manager.Config) {
				c.Manifests = recipes{"1": {ConflictPolicy: tc.policy, WorkspaceTemplatePrefix: registry + "template", ProtectedPaths: []string{"/workspace/kept/safe"}}}
			})
			r.t = t
			r.object(registry+"template-2/other", "not of this template")
			for _, name := range []string{"file", "folder", "link", "kept"} {
				r.object(registry+"template/"+name, "template")
			}
			b := r.box(newThread())
			r.restore(b)
			for _, name := range []string{"file", "folder", "link", "kept"} {
				if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"file", "folder/in", "kept/safe"} {
				b.put(t, name, "session")
			}
			if err := os.Symlink("file", filepath.Join(b.dir, "link")); err != nil {
				t.Fatal(err)
			}
			r.sync(b)
			next := r.box(b.target.Thread)
			for range 2 {
				r.restore(next)
				got := contents(t, next)
				if to, err := os.Readlink(filepath.Join(next.dir, "link")); err == nil {
					got["link"] = "-> " + to
				}
				if !maps.Equal(got, tc.want) {
					t.Errorf("restored %q, want %q", got, tc.want)
				}
			}
		})
	}
}

// A layer of plain objects knows no modes: those of the thread's directories stay,
// and a file keeps any time, the first of all times too.
func TestModesAndTimesUnderAnotherLayer(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	r.restore(b)
	b.put(t, ".user-files/sub/mine", "session")
	epoch := time.Unix(0, 0)
	if err := os.Chtimes(filepath.Join(b.dir, ".user-files/sub/mine"), epoch, epoch); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{".user-files/sub": 0o500, ".user-files": 0o750} {
		if err := os.Chmod(filepath.Join(b.dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	r.sync(b)
	owner := thole.DefaultOwner
	r.object(fmt.Sprintf("app/%s/project/%s/user/%s/files/sub/theirs", owner.App, owner.Project, owner.User), "user")
	next := r.box(b.target.Thread)
	r.restore(next)
	t.Cleanup(func() {
		for _, at := range []*box{b, next} {
			_ = os.Chmod(filepath.Join(at.dir, ".user-files/sub"), 0o700)
		}
	})
	if got := contents(t, next)[".user-files/sub/theirs"]; got != "user" {
		t.Errorf("the user's file is %q", got)
	}
	for path, mode := range map[string]os.FileMode{".user-files/sub": 0o500, ".user-files": 0o750} {
		if st, err := os.Stat(filepath.Join(next.dir, path)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %v", path, st.Mode(), err, mode)
		}
	}
	if st, err := os.Stat(filepath.Join(next.dir, ".user-files/sub/mine")); err != nil || !st.ModTime().Equal(epoch) {
		t.Errorf("a file of 1970 is of %v, %v", st.ModTime(), err)
	}
}

func TestSeedsOfAPrefix(t *testing.T) {
	seeds := []workspace.SeedFile{{From: registry + "seeds/", To: "/workspace/", IfMissingOnly: true}}
	r := newRig(t, func(c *manager.Config) {
		c.Manifests = recipes{"1": {ConflictPolicy: workspace.KeepSession, SeedFiles: seeds}}
	})
	b := r.box(newThread())
	if err := r.manager.Restore(t.Context(), b.target); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("seeds that are not stored: %v", err)
	}
	r.object(registry+"seeds/README", "seed")
	r.object(registry+"seeds/etc/rc", "seed")
	b.put(t, "README", "session")
	r.restore(b)
	if got, want := contents(t, b), map[string]string{"README": "session", "etc/rc": "seed"}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMountsThatWouldHideEachOther(t *testing.T) {
	mount := func(app, project string, readOnly bool) error {
		return workspace.Manifest{AppID: "a", RuntimeVersion: "1", ConflictPolicy: workspace.Merge, MountPoints: []workspace.MountPoint{
			{Name: workspace.MountAppKB, TargetPath: "/workspace/" + app, ReadOnly: true}, {Name: workspace.MountProjectKB, TargetPath: "/workspace/" + project, ReadOnly: readOnly},
		}}.Validate()
	}
	for _, tc := range []struct {
		app, project string
		readOnly, ok bool
	}{
		{"kb", "kb", true, false}, {"kb", "kb/project", true, false}, {"kb/app", "kb", false, false}, {"kb", "kb/project/", false, false},
		{"kb", "kb2", true, true}, {"kb/app", "kb/project", true, true},
	} {
		if err := mount(tc.app, tc.project, tc.readOnly); (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "meets another") {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// What agents remember is no manifest's to remove, whether it names that protected or not.
func TestNoManifestRemovesWhatAgentsRemember(t *testing.T) {
	for _, rest := range []string{
		`"cleanupRules": [{"action": "remove_if_exists", "path": "/workspace/.agent_data"}]`,
		`"cleanupRules": [{"action": "truncate_if_exists", "path": "/workspace/.agent_data/codex/x"}]`,
		`"mountPoints": [{"name": "app_kb", "targetPath": "/workspace/.agent_data/kb", "readOnly": true}]`,
	} {
		if _, err := workspace.ParseManifest([]byte(`{"appId": "a", "runtimeVersion": "v", ` + rest + `}`)); err == nil || !strings.Contains(err.Error(), "protected") {
			t.Errorf("%s: %v", rest, err)
		}
	}
}
