//go:build linux

package bench

import "syscall"

// cpu is the processor time this process has used, in nanoseconds.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
