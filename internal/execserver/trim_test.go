//go:build linux

package execserver

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What trim gives back it gives back for good until it is used, and the program
// goes on.
func TestTrim(t *testing.T) {
	resident := func() (kb int) {
		raw, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(raw), "\nRssFile:")
		_, _ = fmt.Sscan(rest, &kb)
		return kb
	}
	before := resident()
	trim()
	if after := resident(); after >= before {
		t.Errorf("%d kB of the file before, %d kB after", before, after)
	}
}
