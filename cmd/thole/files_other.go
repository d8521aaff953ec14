//go:build !linux

package main

import "golang.org/x/sys/unix"

// keepFiles keeps what this process was started with from what it starts, by
// marking each file: there is no call that marks a range.
func keepFiles() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	for fd := 3; fd < int(min(limit.Max, 1<<16)); fd++ {
		unix.CloseOnExec(fd)
	}
}
