package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
)

// A template arrives as its directory was: objects have no modes and no links, so they are
// recorded besides.
func TestTemplateKeepsModesAndLinks(t *testing.T) {
	app := "app/" + string(thole.DefaultOwner.App) + "/"
	prefix := app + "registry/1/template/"
	r := newRig(t, func(c *manager.Config) {
		c.Manifests = recipes{"1": {WorkspaceTemplatePrefix: prefix, ConflictPolicy: workspace.KeepSession}}
	})
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{"bin/run": 0o755, "plain": 0o644, "private/key": 0o600, "deep/er/script": 0o750} {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(path), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, to := range map[string]string{"current": "bin/run", "deep/up": "../plain"} {
		if err := os.Symlink(to, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{"empty": 0o755, "private": 0o700} {
		if err := os.MkdirAll(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	index, err := workspace.DescribeTemplate(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.object(prefix+workspace.TemplateFiles, string(index))
	for _, path := range []string{"bin/run", "plain", "private/key", "deep/er/script"} { // as any tool would store them
		r.object(prefix+path, path)
	}
	b := r.box(newThread())
	r.restore(b)
	for path, want := range map[string]os.FileMode{
		"bin/run": 0o755, "plain": 0o644, "private/key": 0o600, "deep/er/script": 0o750, "private": os.ModeDir | 0o700, "empty": os.ModeDir | 0o755, "bin": os.ModeDir | 0o755,
	} {
		info, err := os.Lstat(filepath.Join(b.dir, path))
		if err != nil || info.Mode() != want {
			t.Errorf("%s is %v, want %v: %v", path, info.Mode(), want, err)
		}
	}
	for path, want := range map[string]string{"current": "bin/run", "deep/up": "../plain"} {
		if to, err := os.Readlink(filepath.Join(b.dir, path)); err != nil || to != want {
			t.Errorf("%s leads to %q, want %q: %v", path, to, want, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(b.dir, workspace.TemplateFiles)); !os.IsNotExist(err) {
		t.Errorf("the record of modes was laid too: %v", err)
	}
}

func TestTemplateFilesThatLie(t *testing.T) {
	for text, want := range map[string]string{
		`{"version":1,"files":{"../x":{"link":"y"}}}`:                              "clean relative path",
		`{"version":1,"files":{"a":{"mode":"rwx"}}}`:                               "is not a mode",
		`{"version":1,"files":{"a":{"mode":"7777"}}}`:                              "is not a mode",
		`{"version":1,"files":{"b":{"mode":"0755"}}}`:                              "is not stored",
		`{"version":1,"files":{"a":{"link":"b"}}}`:                                 "a link and something else",
		`{"version":1,"files":{"a/b":{"link":"c"}}}`:                               "is no directory",
		`{"version":1,"files":{"a":{"dir":true,"mode":"0755"}}}`:                   "not what is stored",
		`{"version":2,"files":{}}`:                                                 "version 2",
		`{"version":1,"files":{},"more":1}`:                                        "more",
		`{"version":1,"files":{"d":{"link":"x"},"d/e":{"dir":true,"mode":"755"}}}`: "",
	} {
		tree := workspace.Tree{Version: workspace.TreeVersion, Entries: []workspace.Entry{{Path: "a", Kind: 'f', Mode: 0o644}}}
		if err := tree.Describe([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
