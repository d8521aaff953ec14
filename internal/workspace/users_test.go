package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asEachUser runs a test once for each kind of user that thole runs as. What a
// mode forbids depends on it: root with capabilities may do everything, root in a
// sandbox that dropped them no more than anybody else. Without root there is only
// the user there is.
func asEachUser(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	const role = "THOLE_TEST_USER"
	if got := os.Getenv(role); got != "" || os.Getuid() != 0 {
		if got == "bare root" {
			dropCapabilities(t, role)
		}
		test(t)
		return
	}
	t.Run("root", test)
	name := t.Name()
	for _, user := range []string{"bare root", "somebody"} {
		t.Run(user, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "ws-user")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
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
			cmd := exec.Command(binary, "-test.run=^"+name+"$", "-test.v")
			cmd.Dir = dir
			cmd.Env = []string{"TMPDIR=" + dir, "HOME=" + dir, "PATH=/usr/bin:/bin", role + "=" + user}
			if user == "somebody" {
				if err := os.Chown(dir, 65534, 65534); err != nil {
					t.Fatal(err)
				}
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// dropCapabilities leaves this process the user it is and nothing more: root gets
// back with an exec what the bounding set allows, so that goes too.
func dropCapabilities(t *testing.T, role string) {
	t.Helper()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadDir(closed); os.IsPermission(err) {
		return
	}
	if os.Getenv(role+"_BARE") != "" {
		t.Fatal("a closed directory can be read without capabilities: the test proves nothing")
	}
	runtime.LockOSThread()
	for c := range uintptr(64) {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	t.Fatal(syscall.Exec(os.Args[0], os.Args, append(os.Environ(), role+"_BARE=1")))
}
