package system

import (
	"path/filepath"
	"time"

	"github.com/tholehq/thole/internal/audit/anchor"
)

// SetAuditHeadAside moves the signed head of a home's audit chain away, when an older store was
// put in the place of the one it is of; kept is where it is then, "" when there was none.
func SetAuditHeadAside(home string, now time.Time) (kept string, err error) {
	return anchor.Dir(filepath.Join(home, anchor.DirName)).SetAside(now)
}
