package shelf_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/shelf"
)

// A checkpoint takes onto the shelf what is new, however many files there are: a turn that
// changes one of them does not store the others once more.
func TestACheckpointTakesWhatIsNew(t *testing.T) {
	files := map[string]string{}
	for n := range 300 { // more than are unpacked one by one
		files[fmt.Sprintf("d%d/f%d", n%3, n)] = fmt.Sprintf("file %d\n", n)
	}
	b := newBench(t, files)
	runs, git := 0, runner(t)
	bwrap := git.Box
	git.Box = func(ctx context.Context) (string, error) {
		runs++
		return bwrap(ctx)
	}
	b.shelf = shelf.New(shelf.Config{Dir: b.home, Git: git})
	for n := range 2 {
		runs = 0
		b.agent(func(dir string) { b.write(filepath.Join(dir, "d1/f1"), fmt.Sprintf("turn %d\n", n)) })
	}
	// Most of what a checkpoint takes are boxes: one that asks what changed, one that takes it
	// in, and one that packs it.
	if runs != 3 {
		t.Errorf("it took %d boxes", runs)
	}
	loose, packed := 0, 0
	for line := range strings.Lines(b.git(filepath.Join(b.home, string(b.th.ID)+".git"), "count-objects", "-v")) {
		_, _ = fmt.Sscanf(line, "count: %d", &loose)
		_, _ = fmt.Sscanf(line, "in-pack: %d", &packed)
	}
	if loose+packed == 0 || loose+packed > 20 {
		t.Errorf("the shelf stores %d objects, and %d in packs", loose, packed)
	}
}
