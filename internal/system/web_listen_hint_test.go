package system

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A port that this user may not take is not one that another program has.
func TestListenHint(t *testing.T) {
	for err, want := range map[error]string{syscall.EACCES: "below 1024", syscall.EADDRINUSE: "end the program"} {
		if got := listenHint(fmt.Errorf("listen: %w", err)); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
