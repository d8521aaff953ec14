package workspace_test

import (
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
	"github.com/tholehq/thole/internal/workspace/side"
)

func paths(t *testing.T, r *rig, id workspace.SnapshotID) (out []string) {
	t.Helper()
	v, err := r.manager.ViewSnapshot(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var add func(dir string)
	add = func(dir string) {
		list, err := v.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Entries {
			if out = append(out, e.Path); e.Kind == "directory" {
				add(e.Path)
			}
		}
	}
	add("")
	slices.Sort(out)
	return out
}

// What an agent calls like the place of the conversations is a name like any other: it
// stays where it is, is stored under another name, and comes back.
func TestAgentsHaveThePlacesNameForThemselves(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"directory": func(path string) error {
			return errors.Join(os.MkdirAll(filepath.Join(path, "codex"), 0o755), os.WriteFile(filepath.Join(path, "codex/sessions"), []byte("mine"), 0o644))
		},
		"file": func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		"link": func(path string) error { return os.Symlink("/etc", path) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.t = t
			thread := newThread()
			b := r.box(thread)
			r.restore(b)
			b.put(t, ".agent_data/codex/sessions/1", "talk")
			if err := put(filepath.Join(b.dir, workspace.AgentData)); err != nil {
				t.Fatal(err)
			}
			id := r.sync(b)
			if err := r.manager.Verify(t.Context(), b.stopped(), id); err != nil {
				t.Error(err)
			}
			out := r.box(thread)
			r.restore(out)
			for _, pair := range [][2]string{{b.dir, out.dir}, {b.data, out.data}} {
				if diff := cmp.Diff(listing(t, pair[0]), listing(t, pair[1])); diff != "" {
					t.Error(diff)
				}
			}
			if again := r.sync(out); again != id {
				t.Error("a restored tree is another")
			}
		})
	}
}

// A stopped executor of an earlier version is read as it is, and what it stored is laid
// where conversations are now. Moved, it is the same tree.
func TestExecutorsOfAnEarlierVersion(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	data := b.data
	b.old(r)
	r.restore(b)
	b.put(t, "main.go", "package main")
	b.put(t, ".agent_data/codex/sessions/1", "talk")
	id, err := r.manager.Sync(t.Context(), b.stopped(), "test")
	if err != nil {
		t.Fatal(err)
	}
	out := r.box(thread)
	r.restore(out)
	if got := contents(t, out); got["main.go"] != "package main" || got[".agent_data/codex/sessions/1"] != "talk" {
		t.Errorf("restored: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(out.dir, workspace.AgentData)); !os.IsNotExist(err) {
		t.Errorf("conversations are in the workspace: %v", err)
	}
	if err := errors.Join(os.Remove(data), os.Rename(filepath.Join(b.dir, workspace.AgentData), data)); err != nil {
		t.Fatal(err)
	}
	b.data = data
	again, err := r.manager.Sync(t.Context(), b.stopped(), "test")
	if err != nil || again != id {
		t.Errorf("moved it is another tree: %v, %v", again != id, err)
	}
}

// A side without files has conversations and nothing else, whatever a manifest lays.
func TestASideWithoutFiles(t *testing.T) {
	app := "app/" + string(thole.DefaultApp) + "/"
	registry := app + "registry/1/"
	r := newRig(t, func(c *manager.Config) {
		m := workspace.Manifest{
			ConflictPolicy: workspace.KeepSession, WorkspaceTemplatePrefix: registry + "template/",
			RequiredPaths: []string{"/workspace/main.go", "/workspace/.agent_data"}, ProtectedPaths: []string{"/workspace/.agent_data"},
			SeedFiles: []workspace.SeedFile{{From: registry + "seed", To: "/workspace/seeded"}},
			MountPoints: []workspace.MountPoint{{Name: workspace.MountAppKB, TargetPath: "/workspace/.kb/app", ReadOnly: true},
				{Name: workspace.MountUserFiles, TargetPath: "/workspace/.user-files"}, {Name: workspace.MountAgentData, TargetPath: "/workspace/.agent_data"}},
			CleanupRules: []workspace.CleanupRule{{Action: workspace.RemoveIfExists, Path: "/workspace/x"}},
		}
		c.Manifests = recipes{"1": m}
	})
	r.object(registry+"template/main.go", "template")
	r.object(registry+"seed", "seed")
	r.object(app+"kb/known", "known")
	thread := newThread()
	without := func() *box {
		b := r.box(thread)
		b.local = side.New(side.Config{Data: b.data, Home: b.home, State: b.state, Client: r.client})
		b.target.Side = workspace.Remote(&wire{side.Handler(b.local)})
		return b
	}
	b := without()
	r.restore(b)
	b.put(t, ".agent_data/codex/sessions/1", "talk")
	b.put(t, "main.go", "the user's own")
	id := r.sync(b)
	want := []string{".agent_data", ".agent_data/claude", ".agent_data/claude/claude", ".agent_data/codex", ".agent_data/codex/sessions", ".agent_data/codex/sessions/1"}
	if got := paths(t, r, id); !slices.Equal(slices.DeleteFunc(got, func(p string) bool { return strings.Contains(p, "opencode") }), want) {
		t.Errorf("stored: %q", got)
	}
	stopped := b.stopped()
	stopped.Dir = ""
	if err := r.manager.Verify(t.Context(), stopped, id); err != nil {
		t.Error(err)
	}
	out := without()
	r.restore(out)
	if got := contents(t, out); len(got) != 1 || got[".agent_data/codex/sessions/1"] != "talk" {
		t.Errorf("restored: %q", got)
	}
	rec := httptest.NewRecorder()
	side.Handler(out.local).ServeHTTP(rec, httptest.NewRequest("PUT", "/workspace/file?path=x", strings.NewReader("x")))
	if text, _ := io.ReadAll(rec.Body); rec.Code < 400 {
		t.Errorf("a file was written: %s", text)
	}
}
