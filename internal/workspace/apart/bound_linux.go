package apart

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// bound limits what this process may take from now on, and lets it go first where memory
// is short. It is a limit of addresses: one of data is looked at too late, because the
// collector reserves its space before it makes it data.
func bound(bytes uint64) error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // without it the limit still holds
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return err
	}
	limit := pages*uint64(os.Getpagesize()) + bytes
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit})
}
