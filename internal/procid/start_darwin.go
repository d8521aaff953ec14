package procid

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB in sys/proc.h

// startOf is when a process began, in microseconds since 1970: the kernel sets it
// once, whatever the clock does later.
func startOf(pid int) (string, bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid || p.Proc.P_stat == zombie {
		return "", false
	}
	return fmt.Sprintf("%d.%06d", p.Proc.P_starttime.Sec, p.Proc.P_starttime.Usec), true
}

// boot is the kernel's name of this boot, "" if it does not report it.
func boot() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
