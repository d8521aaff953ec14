// Package memory measures how much a process holds.
package memory

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Peak is the most that this process held, in KiB, since the last reset.
func Peak(t testing.TB, reset bool) int {
	t.Helper()
	return PeakOf(t, os.Getpid(), reset)
}

// PeakOf is the same of another process.
func PeakOf(t testing.TB, pid int, reset bool) int {
	t.Helper()
	proc := "/proc/" + strconv.Itoa(pid)
	if reset {
		if err := os.WriteFile(proc+"/clear_refs", []byte("5"), 0); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
