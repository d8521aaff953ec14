package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// The empty .git that an executor holds a place with is no repository: a run there begins
// without files, as it does without that thread.
func TestAnEmptyDotGitIsNoRepository(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "below")
	if err := os.MkdirAll(filepath.Join(below, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if inRepository(below) {
		t.Error("an empty directory was taken for a repository")
	}
	for file, text := range map[string]string{filepath.Join(below, ".git", "HEAD"): "ref: refs/heads/main\n", filepath.Join(top, ".git"): "gitdir: x\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil || !inRepository(below) {
			t.Errorf("%s makes no repository: %v", file, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
