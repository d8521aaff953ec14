package local

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Delegated is the nearest group above this process that its manager gave away
// (systemd's Delegate=yes marks it), "" without one.
func Delegated(root string) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for path := own; path != "/" && path != "."; path = filepath.Dir(path) {
			for _, name := range []string{"user.delegate", "trusted.delegate"} {
				mark := make([]byte, 8)
				if n, err := syscall.Getxattr(filepath.Join(root, path), name, mark); err == nil && string(mark[:n]) == "1" {
					return path
				}
			}
		}
	}
	return ""
}

// CheckPlatform accepts: everything an executor needs is here.
func CheckPlatform() error { return nil }
