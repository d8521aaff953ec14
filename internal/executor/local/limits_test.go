package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
)

// given makes a group of this test's own in each of the hierarchies, as an
// administrator would. It never touches memory: this machine's tests may live in
// a group that bounds theirs, and a group next to it would let them out.
func given(t *testing.T, controllers ...string) local.Groups {
	t.Helper()
	path := fmt.Sprintf("/thole-test-%d", os.Getpid())
	for _, c := range controllers {
		dir := filepath.Join("/sys/fs/cgroup", c, path)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("no control group can be made here: %v", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err) // a group of an executor is still in it
			}
		})
	}
	g := local.FindGroups("/sys/fs/cgroup", path)
	for _, c := range controllers {
		if slices.Contains(g.Missing(), c) {
			t.Fatalf("%s was given and not found", c)
		}
	}
	return g
}

// What an executor starts stays within its limits, and its groups go with it.
func TestLimitsHold(t *testing.T) {
	groups := given(t, "pids", "cpu")
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: bwrap, Groups: groups})
		b.id = "01890000-0000-7000-8000-00000000000a"
		if err := b.driver.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread, Limits: executor.Limits{CPUs: 1, Pids: 60}}); err != nil {
			t.Fatal(err)
		}
		info := b.start()
		got := b.run(info, `sim: run sh -c 'for i in $(seq 100); do sleep 1 & done' 2>&1 | head -3; echo on`)
		if !strings.Contains(got, "fork") || !strings.Contains(got, "on") {
			t.Errorf("a hundred processes where sixty may be: %q", got)
		}
		quota, err := os.ReadFile(fmt.Sprintf("/sys/fs/cgroup/cpu/thole-test-%d/thole-%s/cpu.cfs_quota_us", os.Getpid(), b.id))
		if err != nil || strings.TrimSpace(string(quota)) != "100000" {
			t.Errorf("one CPU is %q, %v", quota, err)
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/thole-test-%d/thole-*", os.Getpid()))
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}
