//go:build !linux

package procid

import (
	"os/exec"
	"strconv"
	"strings"
)

func startOf(pid int) (string, bool) {
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	s := strings.TrimSpace(string(out))
	return s, err == nil && s != ""
}

// boot is not told here, so that an identity does not outlive a reboot for sure.
func boot() string { return "" }

// SessionOf is not told here.
func SessionOf(int) int { return 0 }

// Session is not told here.
func Session(Identity) []Identity { return nil }
