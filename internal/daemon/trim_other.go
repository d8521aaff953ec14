//go:build !linux

package daemon

import "runtime/debug"

func trim() { debug.FreeOSMemory() }
