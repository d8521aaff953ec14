//go:build !linux

package watchdog

import "time"

// Now is a clock that all processes of this machine share.
func Now() int64 { return time.Now().UnixNano() }
