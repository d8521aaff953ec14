// Package poll waits, in tests, for what signals no change: another
// process, the kernel, a terminal's screen. What can be waited for by a signal is
// not its business.
package poll

import (
	"testing"
	"time"
)

// Limit is generous: only a test that fails waits for it.
const Limit = 2 * time.Minute

// Until fails the test if ok does not become true.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(Limit); !ok(); <-time.After(pause) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}
