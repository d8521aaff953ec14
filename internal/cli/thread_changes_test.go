package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/shelf"
)

// One of a thing has no s.
func TestNumbersOfThings(t *testing.T) {
	applied := func(n int, done bool, mode shelf.Mode) string {
		var out bytes.Buffer
		printApplied(&out, io.Discard, view.Applied{Dir: "/d", Done: done, Total: n, Files: make([]view.ChangedFile, n)}, mode)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return lines[len(lines)-1]
	}
	stat := func(files, added int) string {
		var out bytes.Buffer
		printStat(&out, view.Changes{Total: files, Added: added, Removed: 1})
		return strings.TrimSpace(out.String())
	}
	for got, want := range map[string]string{
		applied(1, true, shelf.ApplyNow):    "1 file changed in /d",
		applied(2, true, shelf.ApplyNow):    "2 files changed in /d",
		applied(1, false, shelf.ApplyCheck): "1 file would change in /d; nothing is in the way",
		applied(1, true, shelf.ApplyAbort):  "1 file in /d is as before",
		applied(2, true, shelf.ApplyAbort):  "2 files in /d are as before",
		stat(1, 1):                          "1 file changed, 1 line added, 1 removed",
		stat(0, 2):                          "0 files changed, 2 lines added, 1 removed",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
