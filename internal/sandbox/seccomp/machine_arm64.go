//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// foreign is beyond every number.
const (
	arch    = unix.AUDIT_ARCH_AARCH64
	foreign = 0x40000000
)

// machine are further calls that only this machine has.
var machine []uint32

// machineModes are those of them that give files their mode.
var machineModes []modeCall
