package provider_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// put writes an executable file; an empty text makes it a native program.
func put(t *testing.T, path, text string) string {
	t.Helper()
	if text == "" {
		text = "\x7fELF and so on"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindBinary(t *testing.T) {
	const script = "#!/usr/bin/env node\n"
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := provider.Binary{Title: "Tool", Name: "tool", Install: "get tool", Homes: []string{".tool/bin/tool"},
		NativePatterns: []string{"@maker/tool-" + provider.NodePlatform() + "/vendor/*/tool"}}
	for name, c := range map[string]struct {
		wrapper, native string // below the case's own directory
		configured      bool
		want            string
	}{
		"native on the PATH":            {"", "bin/tool", false, "bin/tool"},
		"script beside its native":      {"lib/node_modules/@maker/tool/cli.js", "lib/node_modules/@maker/tool-" + provider.NodePlatform() + "/vendor/x/tool", false, "native"},
		"native nested in its package":  {"lib/node_modules/@maker/tool/cli.js", "lib/node_modules/@maker/tool/node_modules/@maker/tool-" + provider.NodePlatform() + "/vendor/x/tool", false, "native"},
		"script alone":                  {"lib/cli.js", "", false, ""},
		"script alone, but asked for":   {"lib/cli.js", "", true, "lib/cli.js"},
		"native in the home":            {"", "home/.tool/bin/tool", false, "native"},
		"nothing":                       {"", "", false, ""},
		"nothing where it was said":     {"", "", true, ""},
		"script whose native is for us": {"lib/node_modules/@maker/tool/cli.js", "lib/node_modules/@maker/tool-plan9-z80/vendor/x/tool", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, filepath.Base(t.Name()))
			t.Setenv("PATH", filepath.Join(dir, "bin"))
			t.Setenv("HOME", filepath.Join(dir, "home"))
			configured := ""
			if c.native != "" {
				put(t, filepath.Join(dir, c.native), "")
			}
			if c.wrapper != "" {
				path := put(t, filepath.Join(dir, c.wrapper), script)
				if c.configured {
					configured = path
				} else if err := errors.Join(os.MkdirAll(filepath.Join(dir, "bin"), 0o755), os.Symlink(path, filepath.Join(dir, "bin/tool"))); err != nil {
					t.Fatal(err)
				}
			} else if c.configured {
				configured = filepath.Join(dir, "no/such/tool")
			}
			want := c.want
			switch want {
			case "":
			case "native":
				want = filepath.Join(dir, c.native)
			default:
				want = filepath.Join(dir, want)
			}
			got, err := b.Find(configured)
			if got != want {
				t.Errorf("found %q, want %q (%v)", got, want, err)
			}
			hint := "get tool"
			if configured != "" { // getting it does not change what was configured
				hint = "correct providers.tool in the configuration, or remove it: then the PATH is searched"
			}
			if want == "" && (!errors.Is(err, provider.ErrMissing) || thole.HintOf(err) != hint) {
				t.Errorf("error %v, hint %q", err, thole.HintOf(err))
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	for said, want := range map[string]string{
		"2.1.325 (Claude Code)": "2.1.325", "codex-cli 0.166.0\n": "0.166.0", "1.18.33": "1.18.33",
		"tool v3.0.0-beta.1+7": "3.0.0-beta.1+7", "soon": "", "1.2": "",
	} {
		if v, text, ok := provider.ParseVersion(said); text != want || ok != (want != "") {
			t.Errorf("%q: %v %q %v", said, v, text, ok)
		}
	}
	older, _, _ := provider.ParseVersion("2.9.9")
	newer, _, _ := provider.ParseVersion("2.10.0")
	if !older.Less(newer) || newer.Less(older) || older.Less(older) {
		t.Error("2.9.9 is older than 2.10.0")
	}
}
