package executord

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDevcontainerCommands(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                  "",
		`{"image": "x"}`:                      "",
		`{"postCreateCommand": "npm ci"}`:     "(npm ci\n)",
		`{"postCreateCommand": ["a", "b'c"]}`: `'a' 'b'\''c'`,
		`{"postCreateCommand": {"z": "two", "a": ["one"]}}`: "'one' && (two\n)",
		`{ // a comment
		  "onCreateCommand": "echo // no comment", /* one
		  more */ "postCreateCommand": "echo \" , }",
		}`: "(echo // no comment\n) && (echo \" , }\n)",
		`{"updateContentCommand": "cd ${containerWorkspaceFolder}", "onCreateCommand": ""}`: "(cd /w\n)",
	} {
		if got, err := devcontainer([]byte(text), "/w"); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`{"postCreateCommand": 1}`, `{"postCreateCommand": {"a": {"b": "c"}}}`, `[]`, `{"postCreateCommand": "x"`, `"`, `{"a": "\`, `/*`, `//`} {
		if got, err := devcontainer([]byte(text), "/w"); err == nil && got != "" {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// What a repository puts in the place of its settings is not followed out of it.
func TestRecipeStaysInTheWorkspace(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"postCreateCommand": "of the host"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(dir string) error{
		"a link":      func(dir string) error { return os.Symlink(secret, filepath.Join(dir, ".devcontainer.json")) },
		"a directory": func(dir string) error { return os.Symlink(filepath.Dir(secret), filepath.Join(dir, ".devcontainer")) },
		"a long one": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".devcontainer.json"), []byte(`{"postCreateCommand": "`+strings.Repeat("x", maxRecipe)+`"}`), 0o600)
		},
	} {
		dir := t.TempDir()
		if err := plant(dir); err != nil {
			t.Fatal(err)
		}
		if got, _ := findRecipe(dir); got.line != "" {
			t.Errorf("%s: %q", name, got.line)
		}
	}
}

func FuzzDevcontainer(f *testing.F) {
	f.Add([]byte(`{"postCreateCommand": {"a": ["b"]}, // c` + "\n}"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = devcontainer(text, "/w") })
}
