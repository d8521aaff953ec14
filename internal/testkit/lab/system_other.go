//go:build !linux

package lab

import (
	"syscall"
	"testing"
)

// Leash starts a program in a group of its own.
func Leash() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Disk skips the test: there is no tmpfs here.
func Disk(t *testing.T, _, _ string, _ bool) {
	t.Helper()
	t.Skip("needs a tmpfs, which only Linux has")
}
