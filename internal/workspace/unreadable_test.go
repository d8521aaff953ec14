package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What an agent made unreadable for itself is synced and restored with its mode,
// whichever user thole runs as.
func TestUnreadableFiles(t *testing.T) { asEachUser(t, testUnreadableFiles) }

func testUnreadableFiles(t *testing.T) {
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	b.put(t, "secret", "secret")
	b.put(t, "closed/in/file", "deep")
	b.put(t, "closed/in/deeper/still", "deeper")
	b.put(t, "blind/file", "may be listed and not entered")
	b.put(t, "frozen/file", "frozen")
	modes := func(dir string, set func(path string, mode os.FileMode)) {
		set(filepath.Join(dir, "secret"), 0)
		set(filepath.Join(dir, "frozen"), 0o500)
		set(filepath.Join(dir, "blind"), 0o400)
		set(filepath.Join(dir, "closed/in"), 0)
	}
	chmod := func(path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // or the directory could not be removed
		_ = exec.Command("chmod", "-R", "u+rwx", filepath.Dir(b.dir)).Run()
	})
	check := func(path string, mode os.FileMode) {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	open := func(path string, _ os.FileMode) { chmod(path, 0o700) }
	chmod(filepath.Join(b.dir, "closed/in/deeper"), 0)
	modes(b.dir, chmod)
	if err := os.Chmod(b.dir, 0); err != nil { // even the workspace itself
		t.Fatal(err)
	}
	snap := r.sync(b)
	modes(b.dir, check)
	if err := r.manager.Verify(t.Context(), b.stopped(), snap); err != nil {
		t.Fatal(err)
	}
	out := r.box(thread)
	r.restore(out)
	modes(out.dir, check)
	modes(b.dir, open)
	modes(out.dir, open)
	for _, dir := range []string{b.dir, out.dir} { // it could not be looked at before
		check(filepath.Join(dir, "closed/in/deeper"), 0)
		chmod(filepath.Join(dir, "closed/in/deeper"), 0o700)
	}
	if diff := cmp.Diff(listing(t, b.dir), listing(t, out.dir, ".kb", ".user-files")); diff != "" {
		t.Fatal(diff)
	}
}
