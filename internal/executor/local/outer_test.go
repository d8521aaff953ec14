package local_test

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// of finds the processes of an executor, and the outermost bubblewrap among them.
func of(t *testing.T, id thole.ExecutorID) (all []int, outer int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	wraps := map[int]int{} // to their parents
	for _, name := range names {
		env, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(env, []byte("THOLE_EXECUTOR="+string(id))) {
			continue
		}
		dir := filepath.Dir(name)
		pid, _ := strconv.Atoi(filepath.Base(dir))
		all = append(all, pid)
		if exe, _ := os.Readlink(dir + "/exe"); filepath.Base(exe) == "bwrap" {
			stat, _ := os.ReadFile(dir + "/stat")
			fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			if len(fields) > 1 {
				wraps[pid], _ = strconv.Atoi(fields[1])
			}
		}
	}
	for pid, parent := range wraps {
		if _, inner := wraps[parent]; !inner {
			outer = pid
		}
	}
	return all, outer
}

// Whatever ends the outer bubblewrap ends all that is inside.
func TestEndingBubblewrapEndsAllOfIt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			b := setup(t, lab.Bwrap(t))
			// A signal that this process was started to ignore (nohup) would be ignored by its children too.
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, sig)
			t.Cleanup(func() { signal.Stop(caught) })
			b.start()
			all, outer := of(t, b.id)
			if outer == 0 || len(all) < 3 {
				t.Fatalf("processes %v, the outer one is %d", all, outer)
			}
			if err := syscall.Kill(outer, sig); err != nil {
				t.Fatal(err)
			}
			poll.Until(t, "the end of all processes", func() bool { left, _ := of(t, b.id); return len(left) == 0 })
			if got, err := b.driver.Inspect(t.Context(), b.id); err != nil || got.State != executor.Stopped {
				t.Errorf("it is %+v, %v", got, err)
			}
		})
	}
}
