package lab

import (
	"syscall"
	"testing"
)

// Leash starts a program in a group of its own, which dies with the test.
func Leash() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Disk puts a file system of its own on a directory, with the options of tmpfs,
// and skips the test where that is not allowed.
func Disk(t *testing.T, dir, options string, readOnly bool) {
	t.Helper()
	var flags uintptr
	if readOnly {
		flags = syscall.MS_RDONLY
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skip("only root can mount a disk: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}
