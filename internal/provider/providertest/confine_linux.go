package providertest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confineVar names the program that this test binary becomes after it gave up
// namespaces; see Main.
const confineVar = "THOLE_TEST_CONFINE"

// Main is TestMain of every package that runs the suite. Besides running tests
// it is the launcher of the rows without user namespaces: it denies itself
// privileges and namespaces, as hardened containers do, and becomes the CLI.
func Main(m *testing.M) {
	if os.Getenv(mcpVar) != "" {
		serveMCP()
		os.Exit(0)
	}
	if program := os.Getenv(confineVar); program != "" {
		os.Unsetenv(confineVar)
		err := denyNamespaces()
		if err == nil {
			err = syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
		}
		fmt.Fprintln(os.Stderr, "confine:", err)
		os.Exit(126)
	}
	os.Exit(m.Run())
}

// denyNamespaces sets no-new-privileges and a filter under which unshare, setns,
// mount and clone with a namespace flag are refused.
func denyNamespaces() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		jeq  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		jset = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret  = unix.BPF_RET | unix.BPF_K
		deny = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		none = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	namespaces := uint32(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the system call's number
		{Code: jeq, K: unix.SYS_UNSHARE, Jt: 7},
		{Code: jeq, K: unix.SYS_SETNS, Jt: 6},
		{Code: jeq, K: unix.SYS_MOUNT, Jt: 5},
		{Code: jeq, K: unix.SYS_CLONE3, Jt: 5}, // its flags are out of a filter's reach; libc falls back to clone
		{Code: jeq, K: unix.SYS_CLONE, Jf: 2},
		{Code: load, K: 16}, // clone's first argument, low half
		{Code: jset, K: namespaces, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: deny},
		{Code: ret, K: none},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// TSYNC applies it to every thread of this program before it becomes another.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// confine makes the bench's provider run its CLI without user namespaces.
func (b *Bench) confine(yes bool) {
	b.Helper()
	if !yes || b.Harness.At == nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.Provider = b.script("#!/bin/sh\n" + confineVar + "='" + b.Info.Binary + "' exec '" + self + "' \"$@\"\n")
}
