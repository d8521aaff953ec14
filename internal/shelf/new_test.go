package shelf_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A checkpoint takes onto the shelf what is new, however many files there are: a turn that
// changes one of them does not store the others once more.
func TestACheckpointTakesWhatIsNew(t *testing.T) {
	files := map[string]string{}
	for n := range 300 { // more than are unpacked one by one
		files[fmt.Sprintf("d%d/f%d", n%3, n)] = fmt.Sprintf("file %d\n", n)
	}
	b := newBench(t, files)
	for n := range 2 {
		b.agent(func(dir string) { b.write(filepath.Join(dir, "d1/f1"), fmt.Sprintf("turn %d\n", n)) })
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
