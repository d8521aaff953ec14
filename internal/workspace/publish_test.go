package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/workspace"
)

// A version of a manifest never changes: one that was in use is found after
// another took its place, and cannot be stored again with other content.
func TestAPublishedVersionStays(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		rows := open(t).Workspaces()
		recipe := func(version, required string) workspace.Manifest {
			return workspace.Manifest{AppID: "app", RuntimeVersion: version, ConflictPolicy: workspace.Merge, RequiredPaths: []string{"/workspace/" + required}}
		}
		if _, err := workspace.Publish(t.Context(), rows, recipe("v1", "a")); err != nil {
			t.Fatal(err)
		}
		if _, err := workspace.Publish(t.Context(), rows, recipe("v1", "b")); thole.CodeOf(err) != thole.CodeConflict || thole.HintOf(err) == "" {
			t.Errorf("another v1: %v", err)
		}
		source, err := workspace.Publish(t.Context(), rows, recipe("v2", "b"))
		if err != nil {
			t.Fatal(err)
		}
		for version, want := range map[string]string{"": "/workspace/b", "v2": "/workspace/b", "v1": "/workspace/a", "builtin-1": "/workspace/.agent_data"} {
			m, err := source.Manifest(t.Context(), "app", version)
			if err != nil || !slices.Equal(m.RequiredPaths, []string{want}) {
				t.Errorf("version %q: %+v, %v", version, m, err)
			}
		}
		if _, err := source.Manifest(t.Context(), "app", "v3"); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("v3: %v", err)
		}
		if m, err := source.Manifest(t.Context(), "other", ""); err != nil || m.RuntimeVersion != "builtin-1" {
			t.Errorf("another app: %+v, %v", m, err)
		}
	})
}

func TestExportIntoADirectory(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	b.put(t, "d/with space\nand line", "one")
	b.put(t, "run.sh", "#!/bin/sh\n")
	out := trap(t, b)
	b.put(t, "zz/secret", "must not go through the link that sorts before it")
	for _, err := range []error{
		os.Chmod(filepath.Join(b.dir, "run.sh"), 0o755), os.Symlink(out, filepath.Join(b.dir, "link")), os.Symlink("d", filepath.Join(b.dir, "zlink")),
		os.Symlink("nowhere\nat all", filepath.Join(b.dir, "d/dangling")), os.Mkdir(filepath.Join(b.dir, "empty"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	id := r.sync(b)
	to := filepath.Join(t.TempDir(), "out")
	s, x, err := r.manager.ExportDir(t.Context(), thread, to, false)
	if err != nil || s.ID != id || x.Files != 3 || x.Links != 3 || len(x.Skipped) != 0 {
		t.Fatalf("%+v, %+v, %v", s, x, err)
	}
	if diff := cmp.Diff(listing(t, b.dir), listing(t, to, ".agent_data")); diff != "" {
		t.Error(diff)
	}
	if got, err := os.ReadFile(filepath.Join(to, "d/with space\nand line")); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if st, err := os.Stat(filepath.Join(to, "run.sh")); err != nil || st.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v, %v", st, err)
	}
	if _, _, err := r.manager.ExportDir(t.Context(), thread, to, false); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("into what is there already: %v", err)
	}
	if _, _, err := r.manager.ExportDir(t.Context(), newThread(), to+"2", false); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("a thread without files: %v", err)
	}
}
