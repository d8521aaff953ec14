package doctor

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
)

// A root server says whether it can map owners, and what is lost where it cannot. Nobody else
// needs it.
func TestCheckOwners(t *testing.T) {
	if f := owners("/d", nil); !f.OK || !strings.Contains(f.Found, "/d") || f.Problem != "" || f.Disables != "" {
		t.Errorf("%+v", f)
	}
	if f := owners("/d", errors.New("its file system (overlay) cannot")); f.OK || f.Found != "" || !strings.Contains(f.Problem, "/d: its file system (overlay)") || !strings.Contains(f.Disables, "--here") || !strings.Contains(f.Fix, "branch") {
		t.Errorf("%+v", f)
	}
	cfg := config.Default().Executor
	got := checkOwners(cfg)
	if root := os.Geteuid() == 0; (len(got) == 1) != root {
		t.Fatalf("as root %v: %+v", root, got)
	}
	for dir, can := range map[string]bool{t.TempDir(): true, "/proc": false} {
		if t.Chdir(dir); len(got) == 1 {
			if f := checkOwners(cfg)[0]; !can && f.OK || can && f.OK && !strings.Contains(f.Found, dir) {
				t.Errorf("%s: %+v", dir, f)
			}
		}
	}
	cfg.Isolation = "none"
	if got := checkOwners(cfg); len(got) != 0 {
		t.Errorf("without walls: %+v", got)
	}
}
