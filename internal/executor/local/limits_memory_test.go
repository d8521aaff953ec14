package local_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
)

const envContained = "THOLE_CONTAINED"

// A process that goes beyond the memory limit is killed, the turn shows it, the
// executor lives on and counts it. This runs in a container, below whose own
// group an executor's may be made without letting anything out of its bounds.
func TestMemoryLimitHolds(t *testing.T) {
	if os.Getenv(envContained) == "" {
		contained(t)
		return
	}
	groups := local.FindGroups("/cgroup", ownGroup(t))
	if slices.Contains(groups.Missing(), "memory") {
		t.Fatal("the container's memory group was not found")
	}
	b := setup(t, "")
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Groups: groups})
	b.id = "01890000-0000-7000-8000-00000000000b"
	if err := b.driver.Create(t.Context(), executor.Spec{ID: b.id, Thread: "thread", Scope: executor.ScopeThread, Limits: executor.Limits{Memory: 200 << 20}}); err != nil {
		t.Fatal(err)
	}
	info := b.start()
	if got := b.run(info, "sim: run head -c 400000000 /dev/zero | tail -c 400000000 > /dev/null; echo code $?"); !strings.Contains(got, "code 137") {
		t.Errorf("what takes twice the memory there is ended with %q", got)
	}
	if got := b.driver.Starved(b.id); got != 1 {
		t.Errorf("starved %d times", got)
	}
	if got := b.run(info, "sim: run echo on"); got != "on\n" {
		t.Errorf("after it: %q", got)
	}
}

// ownGroup is the container's group. In the second version of control groups the
// processes in it make room for groups below it.
func ownGroup(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	unified := ""
	for line := range strings.Lines(string(text)) {
		at := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if at[1] == "memory" {
			return at[2]
		}
		if at[1] == "" {
			unified = at[2]
		}
	}
	room := filepath.Join("/cgroup", unified, "main")
	if err := os.Mkdir(room, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(room, "cgroup.procs"), []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	return unified
}

// contained runs this test in a container.
func contained(t *testing.T) {
	text, err := os.ReadFile("/proc/cgroups")
	if err != nil || !strings.Contains(string(text), "\nmemory\t") {
		t.Skipf("this kernel has no memory controller: %v", err)
	}
	engine := lab.Docker(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("thole-memory-%d", os.Getpid())
	t.Cleanup(func() { _ = exec.Command("docker", "--host", engine.Host, "rm", "--force", name).Run() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "--host", engine.Host, "run", "--rm", "--name", name, "--network", "none", "--memory", "1g", "--cgroupns", "host",
		"--volume", "/sys/fs/cgroup:/cgroup", "--volume", self+":/test:ro", "--volume", binary+":/thole:ro",
		"--env", envContained+"=1", "--env", "THOLE_TEST_BINARY=/thole", engine.Image,
		"/test", "-test.run=^TestMemoryLimitHolds$", "-test.v").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
