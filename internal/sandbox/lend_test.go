//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestSwapped(t *testing.T) {
	where := func(all []syscall.SysProcIDMap, id int) int {
		for _, m := range all {
			if id >= m.ContainerID && id < m.ContainerID+m.Size {
				return m.HostID + id - m.ContainerID
			}
		}
		return -1
	}
	for _, c := range [][2]int{{0, 1900000000}, {1000, 1900000000}, {1900000000, 1000}, {0, 1}} {
		all := swapped(c[0], c[1])
		for id, want := range map[int]int{c[0]: c[1], c[1]: c[0], 5: 5, 65534: 65534, 1<<32 - 2: 1<<32 - 2} {
			if got := where(all, id); got != want {
				t.Errorf("%v: %d leads to %d, want %d", c, id, got, want)
			}
		}
		if len(all) > 5 {
			t.Errorf("%v: %d ranges", c, len(all))
		}
	}
}

// What lies on a file system that cannot exchange owners is refused with its name.
func TestLendNamesTheFileSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root lends files")
	}
	if err := CheckLend(t.TempDir()); err != nil {
		t.Errorf("a temporary directory: %v", err)
	}
	if err := CheckLend("/proc/self"); err == nil {
		t.Error("/proc can be lent")
	} else {
		t.Log(err)
	}
	if err := CheckLend(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("what is not there can be lent")
	}
}
