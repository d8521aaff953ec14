// Package crash kills a child process at every durable step of a piece of work
// and checks what it left behind. The child is the test binary itself; it dies by
// SIGKILL immediately before or after the commit of a named step, so nothing
// deferred, buffered or in memory survives.
//
// It proves what a process crash can break. What a power cut can break is
// powerloss's part.
package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"

	"github.com/tholehq/thole/internal/testkit/scratch"
)

const (
	envTest = "THOLE_CRASH_TEST" // the test whose work this child is to do
	envDir  = "THOLE_CRASH_DIR"
	envKill = "THOLE_CRASH_KILL" // "point step occurrence"; empty: run to the end

	traceFile = "crash-trace"
	ackFile   = "crash-acks"

	// maxOccurrences bounds how often one step is killed at the same point: a
	// step repeated a hundred times is one state, not a hundred.
	maxOccurrences = 3
)

// Work is what the child gets.
type Work struct {
	// Dir is the directory for the store and everything else that survives.
	Dir string

	mu   sync.Mutex // guards seen
	seen map[string]int
	kill string
}

// Hook goes into store.Config of the store the child opens.
func (w *Work) Hook(p sqldb.Point, step string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := string(p) + " " + step
	w.seen[at]++
	at = fmt.Sprintf("%s %d", at, w.seen[at])
	w.write(traceFile, at)
	if at == w.kill {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
}

// Ack notes that the caller of the work was answered something, and may rely on
// it from now on.
func (w *Work) Ack(what string) { w.write(ackFile, what) }

// write appends a line. A killed process leaves its writes to the kernel, so no
// sync is needed.
func (w *Work) write(name, line string) {
	f, err := os.OpenFile(filepath.Join(w.Dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(2)
	}
}

// Enumerate does work once to the end and once for each durable step it passes,
// killed there, each time in a child process and a fresh directory, and calls
// check on what is left. acked is what the child acknowledged before it died;
// killed is the place of its death, "" for the run to the end. Check usually
// reopens the store, runs recovery, and compares.
//
// The work must pass its steps in the same order each time. Nothing that the
// child need not repeat may stand before Enumerate in the test.
func Enumerate(t *testing.T, work func(w *Work) error, check func(t *testing.T, dir string, acked []string, killed string)) {
	t.Helper()
	enumerate(t, 1, false, work, check)
}

// Sample is Enumerate for work that is slow to check and does not pass each step
// equally often every time: it kills at every nth place only, and at all of them
// with THOLE_SOAK=1. It proves, but does not count as coverage of, the steps.
func Sample(t *testing.T, n int, work func(w *Work) error, check func(t *testing.T, dir string, acked []string, killed string)) {
	t.Helper()
	if os.Getenv("THOLE_SOAK") == "1" {
		n = 1
	}
	enumerate(t, n, true, work, check)
}

func enumerate(t *testing.T, every int, loose bool, work func(w *Work) error, check func(t *testing.T, dir string, acked []string, killed string)) {
	t.Helper()
	if os.Getenv(envTest) == t.Name() {
		w := &Work{Dir: os.Getenv(envDir), kill: os.Getenv(envKill), seen: map[string]int{}}
		if err := work(w); err != nil {
			fmt.Fprintln(os.Stderr, "crash work:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir := scratch.Dir(t)
	if out, err := child(t, dir, ""); err != nil {
		t.Fatalf("work failed without a kill: %v\n%s", err, out)
	}
	check(t, dir, lines(t, dir, ackFile), "")
	trace := lines(t, dir, traceFile)
	if len(trace) == 0 {
		t.Fatal("the work passed no durable step: is Work.Hook in the store's Config?")
	}
	for i, at := range sample(trace) {
		if i%every != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(at, " ", "_"), func(t *testing.T) {
			dir := scratch.Dir(t)
			out, err := child(t, dir, at)
			var exit *exec.ExitError
			died := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
			// Loose work may pass a step less often this time and live to its end.
			if !died && !(loose && err == nil) {
				t.Fatalf("the child did not die at %q: %v\n%s", at, err, out)
			}
			check(t, dir, lines(t, dir, ackFile), at)
		})
	}
	if !t.Failed() && !loose {
		if err := record(t.Name(), trace); err != nil {
			t.Errorf("record crash coverage: %v", err)
		}
	}
}

// sample keeps the first occurrences of each step and its last.
func sample(trace []string) []string {
	last := map[string]int{}
	for i, at := range trace {
		last[at[:strings.LastIndexByte(at, ' ')]] = i
	}
	seen := map[string]int{}
	var kept []string
	for i, at := range trace {
		step := at[:strings.LastIndexByte(at, ' ')]
		if seen[step]++; seen[step] < maxOccurrences || last[step] == i {
			kept = append(kept, at)
		}
	}
	return kept
}

// child runs the test that called Enumerate, and nothing else, in this binary.
func child(t *testing.T, dir, kill string) ([]byte, error) {
	name := t.Name()
	if kill != "" {
		name = name[:strings.LastIndexByte(name, '/')]
	}
	var run []string
	for part := range strings.SplitSeq(name, "/") {
		run = append(run, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(run, "/"), "-test.count=1", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), envTest+"="+name, envDir+"="+dir, envKill+"="+kill)
	return cmd.CombinedOutput()
}

func lines(t *testing.T, dir, name string) []string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}
