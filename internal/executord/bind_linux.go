package executord

import (
	"fmt"

	"github.com/tholehq/thole/internal/box"
	"golang.org/x/sys/unix"
)

// bind lets the kernel refuse more processes than a box may have, before anything runs
// in it. Since Linux 5.14 it counts those of each user namespace, and so of a box; before,
// all that the user has.
func (b *boxes) bind(made *box.Box) error {
	if b.cfg.Processes == 0 || !countsBoxes() {
		return nil
	}
	n := uint64(b.cfg.Processes)
	if err := unix.Prlimit(made.Pid(), unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n}, nil); err != nil {
		return fmt.Errorf("limit the processes of the box: %w", err)
	}
	return nil
}

func countsBoxes() bool {
	var name unix.Utsname
	_ = unix.Uname(&name)
	var major, minor int
	_, _ = fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor) // zero is old
	return major > 5 || major == 5 && minor >= 14
}

func kill(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }
