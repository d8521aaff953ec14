package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
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
		b := limited(t, bwrap, groups, executor.Limits{CPUs: 1, Pids: 60})
		info := b.start()
		got := b.run(info, `sim: run sh -c 'for i in $(seq 100); do sleep 1 & done' 2>&1 | head -3; echo on`)
		if !strings.Contains(got, "fork") || !strings.Contains(got, "on") {
			t.Errorf("a hundred processes where sixty may be: %q", got)
		}
		quota, err := os.ReadFile(b.group("cpu", "cpu.cfs_quota_us"))
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

// limited is an executor with limits.
func limited(t *testing.T, bwrap string, groups local.Groups, l executor.Limits) *bench {
	t.Helper()
	b := setup(t, bwrap)
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: bwrap, Groups: groups})
	b.id = thole.NewID[thole.ExecutorID](time.Now())
	if err := b.driver.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread, Limits: l}); err != nil {
		t.Fatal(err)
	}
	return b
}

// group is a file of the executor's control group.
func (b *bench) group(controller, file string) string {
	return fmt.Sprintf("/sys/fs/cgroup/%s/thole-test-%d/thole-%s/%s", controller, os.Getpid(), b.id, file)
}

// A bomb of processes fills the box of its agent and nothing else: executord is not
// in there and answers, a neighbour works, and after the turn's end there is room
// again. Without the limit it goes as far as it likes.
func TestAForkBombStaysInItsBox(t *testing.T) {
	groups := given(t, "pids", "cpu")
	const may = 60
	each(t, func(t *testing.T, bwrap string) {
		free := limited(t, bwrap, groups, executor.Limits{CPUs: 1})
		if got := free.run(free.start(), fmt.Sprintf("sim: run sh -c 'n=0; for i in $(seq %d); do sleep 1000 & n=$((n+1)); done; echo $n' 2>&1", 2*may)); strings.TrimSpace(got) != strconv.Itoa(2*may) {
			t.Errorf("the bomb does not go off without a limit: %q", got)
		}
		b := limited(t, bwrap, groups, executor.Limits{CPUs: 1, Pids: may})
		info := b.start()
		c := executorclient.Dial(info.Endpoint, info.Token)
		defer c.Close()
		bomb := b.request("sim: run sh -c '(while :; do sleep 1000 & done); exec sleep 1000'", thole.ProfileFull)
		if _, err := c.Run(t.Context(), bomb); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "a process that was refused", func() bool {
			refused, _ := os.ReadFile(b.group("pids", "pids.events"))
			var n int
			_, _ = fmt.Sscanf(string(refused), "max %d", &n)
			return n > 0
		})
		for range 20 { // as many threads as it likes
			if _, err := c.Status(t.Context()); err != nil {
				t.Fatalf("executord next to a bomb: %v", err)
			}
		}
		if got := free.run(free.start(), "sim: run echo on"); got != "on\n" {
			t.Errorf("its neighbour: %q", got)
		}
		members, err := os.ReadFile(b.group("pids", "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		for pid := range strings.FieldsSeq(string(members)) {
			if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.Contains(string(line), "\x00serve\x00") {
				t.Errorf("executord, process %s, is in the group of its agents", pid)
			}
		}
		if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: bomb.Turn.ID, Kill: true}); err != nil {
			t.Fatal(err)
		}
		if err := c.Events(t.Context(), bomb.Turn.ID, 0, func([]wire.LogEvent) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := b.run(info, "sim: run echo on"); got != "on\n" {
			t.Errorf("after it: %q", got)
		}
	})
}

// Where there are no control groups the limits of memory and processes hold all the
// same; without them the same attacks succeed.
func TestLimitsWithoutControlGroups(t *testing.T) {
	t.Parallel()
	lab.EveryUser(t, func(t *testing.T) {
		const (
			fork   = "sim: run sh -c 'n=0; for i in $(seq 120); do sleep 1000 & n=$((n+1)); done; echo $n' 2>&1"
			memory = `sim: run sh -c 'x=$(head -c 200000000 /dev/zero | tr "\0" a); sleep %d & wait'; echo code $?`
		)
		for name, tc := range map[string]struct {
			limits executor.Limits
			fork   string
			hold   int // seconds that the memory is held
			memory string
		}{
			"limits": {executor.Limits{Pids: 60, Memory: 150 << 20}, "fork", 60, "code 137"},
			"none":   {executor.Limits{}, "120", 0, "code 0"},
		} {
			t.Run(name, func(t *testing.T) {
				b := limited(t, lab.Bwrap(t), local.Groups{}, tc.limits)
				info := b.start()
				if got := b.run(info, fork); !strings.Contains(got, tc.fork) {
					t.Errorf("120 processes: %q", got)
				}
				if got := b.run(info, fmt.Sprintf(memory, tc.hold)); !strings.Contains(got, tc.memory) {
					t.Errorf("200 MB: %q", got)
				}
				if got := b.run(info, "sim: run echo on"); got != "on\n" {
					t.Errorf("after it: %q", got)
				}
			})
		}
	})
}
