//go:build linux

package sandbox

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/protocol/exec"
)

// TestConfined shows that the second line holds without the first: plain opens,
// no Access asked.
func TestConfined(t *testing.T) {
	if v, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); no != 0 || v < 1 {
		t.Skip("this kernel has no Landlock")
	}
	in, out := t.TempDir(), t.TempDir()
	p := compile(t, entry(in, exec.AccessWrite))
	var inside, outside, link error
	if err := os.Symlink(out, in+"/link"); err != nil {
		t.Fatal(err)
	}
	for range 20 { // threads are used up and made again
		if err := Confined(p, func() {
			inside = os.WriteFile(in+"/f", []byte("x"), 0o600)
			outside = os.WriteFile(out+"/f", []byte("x"), 0o600)
			link = os.WriteFile(in+"/link/f", []byte("x"), 0o600)
		}); err != nil {
			t.Fatal(err)
		}
		if inside != nil || !errors.Is(outside, unix.EACCES) || !errors.Is(link, unix.EACCES) {
			t.Fatalf("inside %v, outside %v, through a link %v", inside, outside, link)
		}
	}
	if err := os.WriteFile(out+"/f", []byte("x"), 0o600); err != nil {
		t.Fatalf("the confinement outlived its thread: %v", err)
	}
}
