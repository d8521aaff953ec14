package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What an agent made unreadable for itself is synced and restored with its mode.
// Root may read everything, so the test runs as somebody else.
func TestUnreadableFiles(t *testing.T) {
	if os.Getuid() == 0 {
		dir, err := os.MkdirTemp("", "ws-nobody")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(dir, "test")
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(os.Args[0]))); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, filepath.Base(os.Args[0])), binary); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(binary, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "-test.run=^TestUnreadableFiles$", "-test.v")
		cmd.Dir = dir
		cmd.Env = []string{"TMPDIR=" + dir, "HOME=" + dir, "PATH=/usr/bin:/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	b.put(t, "secret", "secret")
	b.put(t, "closed/in/file", "deep")
	b.put(t, "frozen/file", "frozen")
	modes := func(dir string, set func(path string, mode os.FileMode)) {
		set(filepath.Join(dir, "secret"), 0)
		set(filepath.Join(dir, "frozen"), 0o500)
		set(filepath.Join(dir, "closed/in"), 0)
	}
	chmod := func(path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // or the directory could not be removed
		_ = exec.Command("chmod", "-R", "u+rwx", b.dir).Run()
	})
	check := func(path string, mode os.FileMode) {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	open := func(path string, _ os.FileMode) { chmod(path, 0o700) }
	modes(b.dir, chmod)
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
	if diff := cmp.Diff(listing(t, b.dir), listing(t, out.dir, ".agent_data", ".kb", ".user-files")); diff != "" {
		t.Fatal(diff)
	}
}
