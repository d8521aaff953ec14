// Package powerloss cuts the power at every I/O operation of a piece of work
// and checks what a disk could be left with. It records what the work does to
// files, then for each prefix of that record builds directories that a real disk
// may show after a cut: un-synced writes lost, kept, or torn into 512-byte sectors
// of which any may be missing; files, renames and removals that were not made
// durable there or not.
//
// It sees SQLite through a VFS that wraps the driver's own, so the store under
// test is the real one, and other code through Disk's file operations. It cannot
// see files written past both.
package powerloss

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/testkit/scratch"
)

// maxFailures ends the search: after these the cause is plain.
const maxFailures = 20

// Enumerate does work once and calls check for every state that a power cut
// could have left. acked is what the work had acknowledged by then. rounds is how
// many differently torn states are tried at each operation besides "all lost" and
// "all kept".
func Enumerate(t *testing.T, rounds int, work func(d *Disk) error, check func(dir string, acked []string) error) {
	t.Helper()
	d := newDisk(t.TempDir())
	defer d.release()
	if err := work(d); err != nil {
		t.Fatalf("work failed without a power cut: %v", err)
	}
	if len(d.ops) == 0 {
		t.Fatal("the work did no I/O that could be seen: is Disk.VFS in the store's Config?")
	}
	states, failures := explore(scratch.Dir(t), d, rounds, check)
	for _, err := range failures {
		t.Error(err)
	}
	t.Logf("%d operations, %d different states after a power cut", len(d.ops), states)
}

// explore checks every state that differs from all before it.
func explore(root string, d *Disk, rounds int, check func(dir string, acked []string) error) (states int, failures []error) {
	ops, img := d.ops, newImage()
	seen := map[[sha256.Size]byte]bool{}
	for i := 0; i <= len(ops); i++ {
		for round := -2; i >= d.start && round < rounds && len(failures) < maxFailures; round++ {
			state := img.after(chooser(i, round))
			sum := state.sum(len(img.acked))
			if seen[sum] {
				continue
			}
			seen[sum] = true
			states++
			dir := filepath.Join(root, fmt.Sprint(states))
			err := state.write(dir)
			if err == nil {
				err = check(dir, img.acked)
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("power cut after %d of %d operations (%s), round %d: %w", i, len(ops), describe(ops, i), round, err))
			}
			_ = os.RemoveAll(dir)
		}
		if i < len(ops) {
			img.apply(ops[i])
		}
	}
	return states, failures
}

func describe(ops []op, i int) string {
	if i == 0 {
		return "at the start"
	}
	o := ops[i-1]
	return fmt.Sprintf("last: %s %s", o.kind, filepath.Base(o.path))
}

// chooser decides whether an un-synced effect survives. Rounds -2 and -1 lose
// and keep all; the others are random but the same on every run.
func chooser(op, round int) func() bool {
	switch round {
	case -2:
		return func() bool { return false }
	case -1:
		return func() bool { return true }
	}
	h := fnv.New64a()
	fmt.Fprint(h, op, "/", round)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	return func() bool { return r.Uint64()&1 == 0 }
}
