package peercred

import (
	"fmt"
	"os"
	"strconv"
)

// sameNamespace proves that a process lives among ours. One in a sandbox does not,
// though the user may be the same.
func sameNamespace(pid int) error {
	if pid == 0 { // how the kernel names a process that this namespace does not show
		return fmt.Errorf("%w: it is not to be seen from here", ErrOtherNamespace)
	}
	ours, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return fmt.Errorf("see our process namespace: %w", err)
	}
	theirs, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	if err != nil {
		return fmt.Errorf("see the process namespace of %d: %w", pid, err)
	}
	if !os.SameFile(ours, theirs) {
		return fmt.Errorf("%w: process %d", ErrOtherNamespace, pid)
	}
	return nil
}
