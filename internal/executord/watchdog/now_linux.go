package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is a clock that all processes of this machine share, that nobody sets, and that goes on
// while the machine sleeps.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Now().UnixNano()
	}
	return t.Nano()
}
