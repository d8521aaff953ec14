package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/process"
)

// An executord that is killed leaves the groups it made; the next look at what
// exists removes them, and those of living ones stay.
func TestGroupsOfAKilledExecutord(t *testing.T) {
	b, living := setup(t, ""), setup(t, "")
	living.start()
	b.start()
	groups := func(b *bench) []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(process.OwnGroup(), fmt.Sprintf("thole-by-*.%d.*", b.pid())))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	mine, others := groups(b), groups(living)
	if len(mine) == 0 || len(others) == 0 {
		t.Skip("no version 2 cgroup can be made here")
	}
	if err := syscall.Kill(b.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	there := func(paths []string) (n int) {
		for _, p := range paths {
			if _, err := os.Stat(p); err == nil {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(30 * time.Second); there(mine) > 0; time.Sleep(10 * time.Millisecond) { // until it is dead
		if _, err := b.driver.List(t.Context()); err != nil || time.Now().After(end) {
			t.Fatalf("%d of %v are there: %v", there(mine), mine, err)
		}
	}
	if there(others) != len(others) {
		t.Error("the groups of a living executord went too")
	}
}

// pid is executord's.
func (b *bench) pid() int {
	b.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		var pid int
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if _, err := fmt.Sscan(e.Name(), &pid); err == nil && strings.Contains(string(line), b.root) && strings.Contains(string(line), "serve") {
			return pid
		}
	}
	b.Fatal("no executord runs")
	return 0
}
