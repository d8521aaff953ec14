package attachment

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/procid"
)

// identify names a running process. Without a boot id it could not be told from
// its successor, so nothing is attached on such a system.
func identify(pid int) (procid.Identity, error) {
	id := procid.Of(pid)
	if id.Start == "" || id.Boot == "" {
		return procid.Identity{}, thole.Errorf(thole.CodeUnavailable, "process %d cannot be identified", pid)
	}
	return id, nil
}
