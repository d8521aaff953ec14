package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

const lock = `{"packages": {
	"": {"name": "ui"},
	"node_modules/b": {"version": "2.0.0", "license": "MIT"},
	"node_modules/@a/x": {"version": "1.0.0", "license": "(AFL-2.1 OR BSD-3-Clause)"},
	"node_modules/@a/x/node_modules/b": {"version": "2.0.0", "license": "MIT"},
	"node_modules/tool": {"version": "3.0.0", "dev": true}
}}`

func packages(t *testing.T, text string) []npm {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package-lock.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := webPackages(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is linked is named once, what only builds is not, and the same input gives
// the same bytes. The binary is a real one, this test.
func TestSBOM(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	one, err := json.Marshal(sbom(info, "v1.2.3", packages(t, lock)))
	if err != nil {
		t.Fatal(err)
	}
	two, _ := json.Marshal(sbom(info, "v1.2.3", packages(t, lock)))
	if string(one) != string(two) {
		t.Error("the same input gave two documents")
	}
	for want, n := range map[string]int{
		`"purl":"pkg:golang/github.com/tholehq/thole@v1.2.3"`: 1,
		`"purl":"pkg:golang/std@`:                             1,
		`"purl":"pkg:npm/%40a/x@1.0.0"`:                       1,
		`"purl":"pkg:npm/b@2.0.0"`:                            1,
		`"expression":"(AFL-2.1 OR BSD-3-Clause)"`:            1,
		`tool`: 0,
	} {
		if got := strings.Count(string(one), want); got != n {
			t.Errorf("%s is there %d times, not %d, in\n%s", want, got, n, one)
		}
	}
}

// A package that names no licence stops a release.
func TestNoLicence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "package-lock.json")
	for text, want := range map[string]string{
		`{"packages": {"node_modules/b": {"version": "2.0.0"}}}`: "b has no licence",
		`{"packages": {}}`: "no packages",
		`{`:                "unexpected end",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := webPackages(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCopyLicenses(t *testing.T) {
	web, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"node_modules/b/LICENSE.md": "the text", "node_modules/b/index.js": "code", "node_modules/@a/x/index.js": "code",
	} {
		path := filepath.Join(web, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyLicenses(packages(t, lock), web, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"b@2.0.0/LICENSE.md": "the text", "@a/x@1.0.0/LICENSE": "(AFL-2.1 OR BSD-3-Clause)"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v %q", name, err, text)
		}
	}
	if _, err := os.Stat(filepath.Join(to, "b@2.0.0/index.js")); err == nil {
		t.Error("code was copied")
	}
}

// A module that is linked without its licence stops a release.
func TestCheckLicenses(t *testing.T) {
	info := &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.org/a"}, {Path: "example.org/b"}}}
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := checkLicenses(info, dir); err == nil || !strings.Contains(err.Error(), "example.org/"+name) {
			t.Errorf("before %s: %v", name, err)
		}
		at := filepath.Join(dir, "example.org", name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "LICENSE"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkLicenses(info, dir); err != nil {
		t.Error(err)
	}
}
