package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Modes that change while a sync reads what they guard do not fail it, and none is
// left as the sync lent it.
func TestModesThatChangeDuringASync(t *testing.T) {
	t.Parallel()
	asEachUser(t, testRestlessModes)
}

func testRestlessModes(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	for i := range 8 {
		for j := range 8 {
			b.put(t, fmt.Sprintf("d%d/s%d/f", i, j), fmt.Sprint(i, j))
		}
	}
	var paths []string
	for _, pattern := range []string{"d*", "d*/s*", "d*/s*/f"} {
		found, err := filepath.Glob(filepath.Join(b.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var toggled int
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// Those that cannot be reached at the moment come up again.
			if os.Chmod(paths[i*7%len(paths)], []os.FileMode{0, 0o700, 0o400, 0o100}[i%4]) == nil {
				toggled++
			}
		}
	})
	for range 3 {
		if _, err := r.manager.Sync(t.Context(), b.target, "test"); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	wg.Wait()
	if toggled < 20 {
		t.Errorf("modes changed %d times: the test proves nothing", toggled)
	}
	// Outside in, or what is below cannot be reached.
	for _, p := range paths {
		if err := os.Chmod(p, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	last := r.sync(b)
	if err := r.manager.Verify(t.Context(), b.stopped(), last); err != nil {
		t.Error(err)
	}
}

// Nesting without end is refused by name, and once it is gone syncs go on.
func TestNestingWithoutEnd(t *testing.T) {
	r := newRig(t)
	b := r.box(newThread())
	b.put(t, "kept", "kept")
	at, err := beneath.Open(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2100 {
		if err := at.Mkdir("d", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := at.Sub("d")
		at.Close()
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	at.Close()
	if _, err := r.manager.Sync(t.Context(), b.target, "test"); err == nil || !strings.Contains(err.Error(), "nest deeper than 2048") {
		t.Fatalf("a sync of 2100 levels: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(b.dir, "d")); err != nil {
		t.Fatal(err)
	}
	r.sync(b)
}
