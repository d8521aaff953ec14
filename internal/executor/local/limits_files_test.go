package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/executor"
)

// What is written where, in either version of control groups. A limit of zero is
// none.
func TestGroupFiles(t *testing.T) {
	limits := executor.Limits{CPUs: 1.5, Memory: 1 << 30, Pids: 7}
	for name, tc := range map[string]struct {
		unified bool
		limits  executor.Limits
		groups  []string
		want    map[string]string
	}{
		"one hierarchy": {true, limits, []string{"g/thole-id"}, map[string]string{
			"g/thole-id/cpu.max": "150000 100000", "g/thole-id/memory.max": "1073741824", "g/thole-id/pids.max": "7"}},
		"one for each": {false, limits, []string{"cpu/g/thole-id", "memory/g/thole-id", "pids/g/thole-id"}, map[string]string{
			"cpu/g/thole-id/cpu.cfs_period_us": "100000", "cpu/g/thole-id/cpu.cfs_quota_us": "150000",
			"memory/g/thole-id/memory.limit_in_bytes": "1073741824", "pids/g/thole-id/pids.max": "7"}},
		"only processes": {true, executor.Limits{Pids: 7}, []string{"g/thole-id"}, map[string]string{"g/thole-id/pids.max": "7"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			g := Groups{dirs: map[string]string{}, unified: tc.unified}
			for _, c := range controllers {
				g.dirs[c] = filepath.Join(root, c, "g")
				if tc.unified {
					g.dirs[c] = filepath.Join(root, "g")
				}
			}
			made, err := g.make("id", tc.limits)
			if err != nil {
				t.Fatal(err)
			}
			for i := range made {
				made[i] = strings.TrimPrefix(made[i], root+"/")
			}
			if !slices.Equal(made, tc.groups) {
				t.Errorf("groups %v", made)
			}
			files, err := filepath.Glob(filepath.Join(root, "*", "thole-id", "*"))
			more, err2 := filepath.Glob(filepath.Join(root, "*", "*", "thole-id", "*"))
			if err != nil || err2 != nil || len(files)+len(more) != len(tc.want) {
				t.Errorf("files %v %v", files, more)
			}
			for file, want := range tc.want {
				if got, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(got) != want {
					t.Errorf("%s holds %q, %v", file, got, err)
				}
			}
		})
	}
	if missing := FindGroups(t.TempDir(), "/nowhere").Missing(); len(missing) != len(controllers) {
		t.Errorf("missing %v in a group that is not there", missing)
	}
}
