package opencode

import (
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
)

// Plugins of the workspace are refused where its settings do not count, however they
// are spelled; settings without any are not.
func TestPluginsOfTheWorkspaceAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		path, text string
		refused    bool
	}{
		"none":       {"README.md", "plugin", false},
		"settings":   {"opencode.json", `{"model":"x"}`, false},
		"a file":     {".opencode/plugin/x.js", "x", true},
		"more":       {".opencode/plugins/x.ts", "x", true},
		"by name":    {"opencode.jsonc", `{"plugin":["./x.js"]}`, true},
		"escaped":    {".opencode/opencode.json", `{"\u0070lugins":["./x.js"]}`, true},
		"not a file": {"opencode.json/x", "x", true},
	} {
		s := &session{}
		s.Cfg.Dir, s.Cfg.NoProject = t.TempDir(), true
		path := filepath.Join(s.Cfg.Dir, c.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.refusePlugins(); (thole.CodeOf(err) == thole.CodeForbidden) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Cfg.NoProject = false; s.refusePlugins() != nil {
			t.Errorf("%s: refused where settings count", name)
		}
	}
	s := &session{}
	s.Cfg.Dir, s.Cfg.NoProject = t.TempDir(), true
	if err := os.Symlink(t.TempDir(), filepath.Join(s.Cfg.Dir, ".opencode")); err != nil {
		t.Fatal(err)
	}
	if thole.CodeOf(s.refusePlugins()) != thole.CodeForbidden {
		t.Error("a link leads to plugins")
	}
}
