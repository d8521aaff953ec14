// Package scratch gives tests a directory in memory, where there is one. A test that
// kills processes, or simulates the disk, learns nothing from a real sync and waits for
// thousands of them.
package scratch

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// least is the free memory below which a real disk is the better place.
const least = 1 << 30

// Dir is an empty directory that is removed with the test.
func Dir(t testing.TB) string {
	t.Helper()
	const memory = "/dev/shm"
	var room unix.Statfs_t
	if err := unix.Statfs(memory, &room); err != nil || room.Bavail*uint64(room.Bsize) < least { //nolint:gosec // sizes of blocks are positive
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "thole-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return dir
}
