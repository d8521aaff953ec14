package main

import "golang.org/x/sys/unix"

// keepFiles keeps what this process was started with from what it starts: an
// agent must not read through a file that a user's shell had open. Kernels
// before 5.11 cannot mark a range; there each file is marked.
func keepFiles() {
	if unix.CloseRange(3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	for fd := 3; fd < int(min(limit.Max, 1<<16)); fd++ {
		unix.CloseOnExec(fd)
	}
}
