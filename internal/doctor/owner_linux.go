package doctor

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/daemon"
)

// listener returns the process that owns the home if it is the one that listens at a port;
// 0 where it is another, or cannot be seen.
func listener(home, listen string) int {
	_, port, err := net.SplitHostPort(listen)
	n, numErr := strconv.Atoi(port)
	if err != nil || numErr != nil {
		return 0
	}
	pid := ownerOf(home)
	if pid == 0 {
		return 0
	}
	sockets := listening(n)
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	open, _ := os.ReadDir(dir)
	for _, fd := range open {
		to, _ := os.Readlink(dir + "/" + fd.Name())
		if inode, is := strings.CutPrefix(to, "socket:["); is && slices.Contains(sockets, strings.TrimSuffix(inode, "]")) {
			return pid
		}
	}
	return 0
}

// ownerOf is the process behind the home's socket, 0 without one.
func ownerOf(home string) int {
	conn, err := net.DialTimeout("unix", daemon.Socket(home), time.Second)
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// listening returns the inodes of the sockets that wait for connections at a port.
func listening(port int) (inodes []string) {
	const state, listen = 3, "0A"
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[state] == listen && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				inodes = append(inodes, f[9])
			}
		}
	}
	return inodes
}
