// Package bench holds our speed promises. Each is a ratio between ours and a peer
// measured in turns within one run, because absolute figures belong to a machine.
// Every run of the tests does a short form against a loose bound, so that no
// benchmark rots; THOLE_BENCH=1 does the long form and writes RESULTS.md, where a
// promise that was missed stays visible as missed.
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/atomicfile"
)

// Long reports whether this run measures for the record.
func Long() bool { return os.Getenv("THOLE_BENCH") == "1" }

// Case compares one figure. Ours and Theirs do one round and return it.
type Case struct {
	Name string // heading in RESULTS.md
	Unit string
	Peer string // what Theirs is, with its version
	// Promise and Loose bound ours/theirs from above; with AtLeast, from below.
	Promise, Loose float64
	AtLeast        bool
	Ours, Theirs   func() float64
	Rounds         int    // at least 5 in the long form; default 7
	Note           string // kept with the figures: how it is measured, why it is missed
}

// Run alternates the two and judges the ratio of the medians: against Loose in
// the short form, which fails the test; against Promise in the long one, which
// records the verdict. The short form believes one round that is within the bound;
// one that is not may be the machine's fault, so more rounds judge it, twice.
func (c Case) Run(t *testing.T) {
	t.Helper()
	if Long() {
		ours, theirs := c.measure(max(c.Rounds, 7))
		c.record(t, ours, theirs)
		return
	}
	for try := 1; ; try++ {
		rounds := 3
		if try == 1 {
			rounds = 1
		}
		ours, theirs := c.measure(rounds)
		ratio := middle(ours) / middle(theirs)
		t.Logf("%s: %s ours, %s peer, ratio %.2f", c.Name, figure(ours, c.Unit), figure(theirs, c.Unit), ratio)
		if c.within(ratio, c.Loose) {
			return
		}
		if try == 3 {
			t.Fatalf("ratio %.2f misses even the loose bound %.2f", ratio, c.Loose)
		}
	}
}

func (c Case) within(ratio, bound float64) bool {
	if c.AtLeast {
		return ratio >= bound
	}
	return ratio <= bound
}

// measure changes who goes first from round to round.
func (c Case) measure(rounds int) (ours, theirs []float64) {
	for i := range rounds {
		if i%2 == 0 {
			ours = append(ours, c.Ours())
			theirs = append(theirs, c.Theirs())
		} else {
			theirs = append(theirs, c.Theirs())
			ours = append(ours, c.Ours())
		}
	}
	return ours, theirs
}

func middle(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)/2]
}

// figure is the median and the spread of the rounds.
func figure(all []float64, unit string) string {
	return fmt.Sprintf("%.4g %s (%.4g to %.4g)", middle(all), unit, slices.Min(all), slices.Max(all))
}

func (c Case) record(t *testing.T, ours, theirs []float64) {
	t.Helper()
	ratio := middle(ours) / middle(theirs)
	verdict, sign := "held", "at most"
	if c.AtLeast {
		sign = "at least"
	}
	if !c.within(ratio, c.Promise) {
		verdict = "MISSED"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | median (min to max of %d rounds) |\n|---|---|\n", len(ours))
	fmt.Fprintf(&b, "| ours | %s |\n| %s | %s |\n", figure(ours, c.Unit), c.Peer, figure(theirs, c.Unit))
	fmt.Fprintf(&b, "| **ratio** | **%.2f**, promised %s %.2f: %s |\n", ratio, sign, c.Promise, verdict)
	if c.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Note)
	}
	t.Logf("%s\n%s", c.Name, b.String())
	if err := Record("RESULTS.md", c.Name, b.String()); err != nil {
		t.Fatal(err)
	}
}

// Record puts a section into a results file of this folder, replacing the one of
// the same name, and stamps it with versions and load.
func Record(file, name, body string) error {
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	text := fmt.Sprintf("%s\n\n%s\nMeasured %s, %s %s/%s, %d CPUs, load %s.\n\n",
		name, strings.TrimRight(body, "\n")+"\n", time.Now().UTC().Format(time.DateOnly),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), load())
	sections := strings.Split(string(old), "## ")
	if len(old) == 0 {
		sections = []string{"# Results\n\nWritten by `make bench`: ours and the peer in turns, in one run.\n\n"}
	}
	at := slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, name+"\n") })
	if at < 0 {
		sections = append(sections, text)
	} else {
		sections[at] = text
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(strings.TrimRight(strings.Join(sections, "## "), "\n")+"\n"), 0o644)
}

func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}
