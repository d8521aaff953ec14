package watchdog

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// LeaseName is the file in which a server that is not alone on its store renews the lease of
// the executors of its home. It lies next to the socket of the model gateway, where executord
// sees it and agents do not.
const LeaseName = "lease"

// Renew records that the server of this machine was alive at a time of Now. It writes in one
// piece, so that no reader sees half of it.
func Renew(path string, at int64) error {
	next := path + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%d\n", at), 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// renewed reads when the lease was last renewed; false where that cannot be known.
func renewed(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	at, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return at, err == nil
}

// expired reports whether the lease has run out. Who has a terminal open, or asks something,
// does not renew it: another server may count on the end of this executor.
func (w *Dog) expired(now int64) bool {
	if at, ok := renewed(w.lease); ok && at > w.held {
		w.held = at
	}
	return now-w.held > int64(w.After)
}
