package appserver

import (
	"runtime"

	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// userAgent has the protocol's version as its first x.y.z: clients compare it.
func userAgent(c app.ClientInfo) string {
	return "thole/" + version.Codex + " (" + runtime.GOOS + "; " + runtime.GOARCH + ") unknown (" + c.Name + "; " + c.Version + ")"
}

func goos() string {
	if runtime.GOOS == "darwin" {
		return "macos"
	}
	return runtime.GOOS
}

// printable reports whether s may stand in an HTTP header.
func printable(s string) bool {
	for _, r := range s {
		if r < 0x20 || r > 0x7e {
			return false
		}
	}
	return true
}
