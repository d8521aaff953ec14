package workspace_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// recipes is a ManifestSource of its own.
type recipes map[string]workspace.Manifest

func (r recipes) Manifest(_ context.Context, app thole.AppID, version string) (workspace.Manifest, error) {
	if version == "" {
		version = slices.Max(slices.Collect(maps.Keys(r)))
	}
	m, ok := r[version]
	if !ok {
		return m, thole.Errorf(thole.CodeNotFound, "no version %s", version)
	}
	m.AppID, m.RuntimeVersion = string(app), version
	return m, nil
}

func contents(t *testing.T, b *box) map[string]string {
	t.Helper()
	out := map[string]string{}
	for as, dir := range map[string]string{"": b.dir, workspace.AgentData: b.data} {
		err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err != nil || !info.Mode().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			out[filepath.Join(as, rel)] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestLayers(t *testing.T) {
	owner := thole.DefaultOwner
	app := "app/" + string(owner.App) + "/"
	project := app + "project/" + string(owner.Project) + "/"
	user := project + "user/" + string(owner.User) + "/"
	manifest := workspace.Manifest{
		WorkspaceTemplatePrefix: app + "registry/1/template/", ConflictPolicy: workspace.KeepSession,
		RequiredPaths:  []string{"/workspace/.agent_data", "/workspace/main.go", "/workspace/.kb/app"},
		ProtectedPaths: []string{"/workspace/.agent_data", "/workspace/.claude"},
		SeedFiles:      []workspace.SeedFile{{From: app + "registry/1/seeds/README", To: "/workspace/README", IfMissingOnly: true}},
		MountPoints: []workspace.MountPoint{
			{Name: workspace.MountAppKB, TargetPath: "/workspace/.kb/app", ReadOnly: true},
			{Name: workspace.MountProjectKB, TargetPath: "/workspace/.kb/project", ReadOnly: true},
			{Name: workspace.MountUserFiles, TargetPath: "/workspace/.user-files"}, {Name: workspace.MountAgentData, TargetPath: "/workspace/.agent_data"},
		},
		CleanupRules: []workspace.CleanupRule{{Action: workspace.RemoveIfExists, Path: "/workspace/.tmp"}, {Action: workspace.TruncateIfExists, Path: "/workspace/boot.log"}},
	}
	for _, tc := range []struct {
		policy workspace.ConflictPolicy
		want   map[string]string // after a template and user files that changed meanwhile
	}{
		{workspace.KeepSession, map[string]string{"main.go": "session", "added.go": "template 2", ".claude/settings.json": "session", ".user-files/note": "session"}},
		{workspace.PreferRegistry, map[string]string{"main.go": "template 2", "added.go": "template 2", ".claude/settings.json": "session", ".user-files/note": "user 2"}},
		{workspace.Merge, map[string]string{"main.go": "session", "added.go": "template 2", ".claude/settings.json": "session", ".user-files/note": "user 2"}},
	} {
		t.Run(string(tc.policy), func(t *testing.T) {
			source := recipes{}
			r := newRig(t, func(c *manager.Config) { c.Manifests = source })
			r.t = t
			m := manifest
			m.ConflictPolicy = tc.policy
			source["1"] = m
			r.object(app+"registry/1/template/main.go", "template")
			r.object(app+"registry/1/template/gone.go", "template")
			r.object(app+"registry/1/template/.claude/settings.json", "template")
			r.object(app+"registry/1/seeds/README", "seed")
			r.object(app+"kb/guide.md", "knowledge")
			r.object(project+"kb/deep/plan.md", "plan")
			r.object(user+"files/note", "user")
			thread := newThread()
			b := r.box(thread)
			r.restore(b)
			want := map[string]string{"main.go": "template", "gone.go": "template", ".claude/settings.json": "template", "README": "seed",
				".kb/app/guide.md": "knowledge", ".kb/project/deep/plan.md": "plan", ".user-files/note": "user"}
			if got := contents(t, b); !maps.Equal(got, want) {
				t.Fatalf("first restore: %q", got)
			}
			for path, body := range map[string]string{"main.go": "session", ".claude/settings.json": "session", ".user-files/note": "session", ".tmp/x": "x", "boot.log": "noise",
				"README": "session", ".kb/app/stray": "stray", ".agent_data/codex/c": "conversation"} {
				b.put(t, path, body)
			}
			if err := os.Remove(filepath.Join(b.dir, "gone.go")); err != nil {
				t.Fatal(err)
			}
			r.sync(b)
			// The same version again: what the thread deleted stays deleted.
			same := r.box(thread)
			r.restore(same)
			got := contents(t, same)
			if _, back := got["gone.go"]; back != (tc.policy != workspace.KeepSession) {
				t.Errorf("gone.go is there: %v", back)
			}
			if got["README"] != "session" || got["boot.log"] != "" || got[".agent_data/codex/c"] != "conversation" {
				t.Errorf("second restore: %q", got)
			}
			for _, path := range []string{".tmp/x", ".kb/app/stray"} {
				if _, there := got[path]; there {
					t.Errorf("%s came back", path)
				}
			}
			// Another version. An executor keeps the one it was made with.
			m.WorkspaceTemplatePrefix = app + "registry/2/template/"
			source["2"] = m
			r.object(app+"registry/2/template/main.go", "template 2")
			r.object(app+"registry/2/template/added.go", "template 2")
			r.object(app+"registry/2/template/.claude/settings.json", "template 2")
			r.object(user+"files/note", "user 2")
			if tc.policy == workspace.Merge { // the session's file is the newer one
				b.put(t, "main.go", "session")
				r.sync(b)
			}
			if v, err := r.db.Workspaces().Runtime(t.Context(), b.target.Executor); err != nil || v != "1" {
				t.Errorf("the old executor lives by version %q, %v", v, err)
			}
			next := r.box(thread)
			r.restore(next)
			got = contents(t, next)
			for path, body := range tc.want {
				if got[path] != body {
					t.Errorf("%s is %q, not %q", path, got[path], body)
				}
			}
			if v, err := r.db.Workspaces().Runtime(t.Context(), next.target.Executor); err != nil || v != "2" {
				t.Errorf("the new executor lives by version %q, %v", v, err)
			}
			// A turn made with the old version gets it.
			old := r.box(thread)
			old.target.RuntimeVersion = "1"
			r.restore(old)
			if v, err := r.db.Workspaces().Runtime(t.Context(), old.target.Executor); err != nil || v != "1" {
				t.Errorf("a turn of version 1 runs in %q, %v", v, err)
			}
		})
	}
}

func TestWhatIsRequiredIsChecked(t *testing.T) {
	r := newRig(t, func(c *manager.Config) {
		c.Manifests = recipes{"1": {ConflictPolicy: workspace.KeepSession, RequiredPaths: []string{"/workspace/main.go"}}}
	})
	b := r.box(newThread())
	if err := r.manager.Restore(t.Context(), b.target); err != nil {
		t.Fatal(err)
	}
	if err := r.manager.Validate(t.Context(), b.target); thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), "main.go") {
		t.Fatalf("a missing file: %v", err)
	}
	b.put(t, "main.go", "")
	if err := r.manager.Validate(t.Context(), b.target); err != nil {
		t.Fatal(err)
	}
}

// Data directories of CLIs become links; a real one moves next to its target, and
// nothing of it is lost.
func TestLinks(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	if err := os.MkdirAll(filepath.Join(b.home, ".codex/sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.home, ".codex/sessions/old"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.manager.Link(t.Context(), b.target); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.home, ".codex/new"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := contents(t, b)
	if got[".agent_data/codex/new"] != "new" || got[".agent_data/codex.migrated/sessions/old"] != "old" {
		t.Fatalf("%q", got)
	}
	if to, err := os.Readlink(filepath.Join(b.home, ".claude")); err != nil || !strings.HasPrefix(to, b.data) {
		t.Fatal(to, err)
	}
}

func TestFilters(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	kept := []string{".claude/settings.json", ".claude/agents/a.md", ".codex/config.toml", ".opencode/command/x.md", "node_modules/left/index.js",
		".agent_data/codex/sessions/2026/1.jsonl", ".agent_data/codex/config.toml", ".agent_data/claude/claude/projects/p/1.jsonl", ".agent_data/claude/claude/.claude.json",
		".agent_data/opencode/opencode/data/opencode/opencode.db", "cache/x", "log/x"}
	left := []string{".claude/settings.local.json", ".opencode/node_modules/x/index.js", ".codex/node_modules/y", ".agent_data/codex/auth.json",
		".agent_data/claude/claude/.credentials.json", ".agent_data/opencode/opencode/data/opencode/auth.json", ".agent_data/opencode/opencode/data/opencode/log/1.log",
		".agent_data/opencode/opencode/data/opencode/snapshot/x", ".agent_data/codex/shell_snapshots/s", ".agent_data/codex/log/l", ".agent_data/opencode/node_modules/z"}
	for _, path := range append(kept, left...) {
		b.put(t, path, path)
	}
	r.sync(b)
	out := r.box(thread)
	r.restore(out)
	got := contents(t, out)
	for _, path := range kept {
		if got[path] != path {
			t.Errorf("%s was left out", path)
		}
	}
	for _, path := range left {
		if _, ok := got[path]; ok {
			t.Errorf("%s was stored", path)
		}
	}
}

func FuzzDecodeTree(f *testing.F) {
	good := &workspace.Tree{Objects: []workspace.Object{{ID: "o", Size: 4}}, Entries: []workspace.Entry{folder("a"), file("a/b"), link("l", "a")}}
	data, _, err := good.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := workspace.DecodeTree(data)
		if err != nil {
			return
		}
		again, _, err := tree.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := workspace.DecodeTree(again); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzParseManifest(f *testing.F) {
	m, err := workspace.BuiltIn{}.Manifest(context.Background(), thole.DefaultApp, "")
	if err != nil {
		f.Fatal(err)
	}
	data, err := json.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"appId":"a","cleanupRules":[{"path":"/workspace/.."}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := workspace.ParseManifest(data)
		if err != nil {
			return
		}
		for _, p := range slices.Concat(m.ProtectedPaths, m.RequiredPaths) {
			if !strings.HasPrefix(p, "/workspace") || slices.Contains(strings.Split(p, "/"), "..") {
				t.Fatalf("path %q passed", p)
			}
		}
	})
}
