package shelf_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// A shelf does not grow a file for each object of each turn, and after it was packed, next to
// turns that go on, every state is still there.
func TestACrowdedShelfIsPacked(t *testing.T) {
	const few = 6
	shelf.PackAfter(t, few)
	for what, prepare := range map[string]func(b *bench){"a branch": func(*bench) {}, "in place": func(b *bench) { b.inPlace(b.repo) }} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, plainFiles)
			prepare(b)
			bare := filepath.Join(b.home, string(b.th.ID)+".git")
			turn := func() {
				b.agent(func(dir string) {
					for i := range few {
						b.write(filepath.Join(dir, "d", fmt.Sprint(i)), fmt.Sprintf("%d of turn %d\n", i, b.th.Turns))
					}
				})
			}
			turns := 0
			for loose := 0; loose <= few; turns++ {
				turn()
				loose, _ = shelf.CountObjects(bare)
			}
			own := func() string { // without what it borrows
				t.Helper()
				list := filepath.Join(bare, "objects", "info", "alternates")
				if err := os.Rename(list, list+".away"); err != nil {
					t.Fatal(err)
				}
				out := b.git(bare, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
				if err := os.Rename(list+".away", list); err != nil {
					t.Fatal(err)
				}
				return out
			}
			all := own()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				b.shelf.Collect(ctx, func(context.Context, thole.ThreadID) bool { return false })
			}()
			turn() // meanwhile
			poll.Until(t, "the shelf is packed", func() bool {
				loose, packs := shelf.CountObjects(bare)
				return loose <= few && packs == 1
			})
			cancel()
			<-done
			now := own()
			for _, id := range strings.Fields(all) {
				if !strings.Contains(now, id) {
					t.Errorf("object %s is gone", id)
				}
			}
			b.git(bare, "fsck", "--strict")
			for n := 1; n <= turns; n++ {
				if d := b.diff(shelf.Range{Turn: n}); d.Total != few {
					t.Errorf("turn %d: %+v", n, d)
				}
			}
		})
	}
}
