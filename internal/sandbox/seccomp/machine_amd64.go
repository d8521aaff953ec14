//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// foreign is where the numbers of the x32 machine begin, which shares ours.
const (
	arch    = unix.AUDIT_ARCH_X86_64
	foreign = 0x40000000
)

// machine are further calls that only this machine has.
var machine = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_CREATE_MODULE}

// machineModes are those of them that give files their mode.
var machineModes = []modeCall{{nr: unix.SYS_CHMOD, mode: 1}, {nr: unix.SYS_CREAT, mode: 1}, {nr: unix.SYS_MKNOD, mode: 1}, {nr: unix.SYS_OPEN, flags: 1, mode: 2, opens: true}}
