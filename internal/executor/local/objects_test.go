package local

import (
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
)

// Only directories of git objects are shown, and none in which something else could lie.
func TestOnlyGitObjectsAreShown(t *testing.T) {
	home := t.TempDir()
	outside := t.TempDir()
	mkdir := func(path ...string) string {
		t.Helper()
		dir := filepath.Join(path...)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	good := mkdir(outside, "repo/.git/objects")
	for _, name := range []string{"pack", "info", "0a", "ff", "tmp_objdir-x"} {
		mkdir(good, name)
	}
	mirror := mkdir(home, "mirrors/0123.git/objects")
	link := filepath.Join(outside, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	other := mkdir(outside, "documents")
	mkdir(other, "letters")
	d := New(Config{Root: filepath.Join(home, "x"), Home: home})
	for _, dir := range []string{good, mirror} {
		if err := d.checkObject(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for _, dir := range []string{link, other, home, mkdir(home, "objects"), filepath.Dir(home), mkdir(outside, ".ssh/objects"), "/etc", "/", "/proc"} {
		if err := d.checkObject(dir); thole.CodeOf(err) != thole.CodeForbidden || thole.HintOf(err) == "" {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
