//go:build !linux

package local

import thole "github.com/tholehq/thole"

// Delegated is "" where there are no control groups.
func Delegated(string) string { return "" }

// CheckPlatform refuses: executors are confined by bubblewrap, limited by control
// groups and found again through /proc, and nothing here does the same.
func CheckPlatform() error {
	return thole.Errorf(thole.CodeUnsupported, "local executors run on Linux only").
		WithHint("run thole on a Linux machine, in a virtual machine or a container, and connect to it")
}
