package shelf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/internal/git"
)

// Each checkpoint leaves its new objects as files of their own, or as one more pack. When
// there are many, all that lie on the shelf become one pack, with nothing of what it borrows:
// git repack would copy that, or leave out what the user's repository happens to have and
// may lose. No lock is held and no turn waits: what is removed is in the new pack by then,
// so that another run of git finds it there, and one that is killed loses nothing.

// Bounds of a shelf that is not packed; tests have the first one smaller.
var maxLooseObjects = 2_000

const (
	maxPacks   = 20
	maxPacking = 64 // shelves that wait
)

// stored is what lies in the directory of objects of a shelf: paths, without the ending for
// packs, and the names of the loose ones.
type stored struct{ loose, names, packs []string }

func listObjects(dir string) (s stored) {
	entries, _ := os.ReadDir(dir) // what cannot be read is not packed either
	for _, e := range entries {
		files, _ := os.ReadDir(filepath.Join(dir, e.Name()))
		for _, f := range files {
			path, id := filepath.Join(dir, e.Name(), f.Name()), e.Name()+f.Name()
			if stem, ok := strings.CutSuffix(path, ".idx"); ok && e.Name() == "pack" {
				s.packs = append(s.packs, stem)
			} else if validID(id) {
				s.loose, s.names = append(s.loose, path), append(s.names, id)
			}
		}
	}
	return s
}

func (s stored) crowded() bool { return len(s.loose) > maxLooseObjects || len(s.packs) > maxPacks }

func (o *one) stored() stored { return listObjects(filepath.Join(o.bare, "objects")) }

// tidy has a crowded shelf packed later. One that finds no room is found again after the
// next turn.
func (o *one) tidy() {
	if !o.stored().crowded() {
		return
	}
	select {
	case o.packing <- o:
	default:
	}
}

// pack makes one pack of all objects of the shelf, if there are still many.
func (o *one) pack(ctx context.Context) error {
	was := o.stored()
	if !was.crowded() {
		return nil
	}
	ids := was.names
	for _, stem := range was.packs {
		more, err := o.packed(ctx, stem)
		if err != nil {
			return err
		}
		ids = append(ids, more...)
	}
	to := filepath.Join(o.bare, "objects", "pack", "pack")
	out, err := o.own(ctx, git.Cmd{
		Args:  []string{"pack-objects", "-q", "--delta-base-offset", to},
		Stdin: strings.NewReader(strings.Join(ids, "\n") + "\n"), Config: map[string]string{"pack.threads": "1", "pack.windowMemory": "256m"},
	})
	if err != nil {
		return err
	}
	made := to + "-" + strings.TrimSpace(string(out))
	for _, end := range []string{".pack", ".idx"} {
		if _, err := os.Stat(made + end); err != nil {
			return fmt.Errorf("git made no pack: %w", err)
		}
	}
	for _, path := range was.loose {
		_ = os.Remove(path) // or the next time
	}
	for _, stem := range was.packs {
		if stem == made {
			continue
		}
		for _, end := range []string{".idx", ".rev", ".pack"} { // the first makes it a pack
			_ = os.Remove(stem + end)
		}
	}
	return nil
}

// packed are the names of the objects in a pack.
func (o *one) packed(ctx context.Context, stem string) (ids []string, err error) {
	idx, err := os.Open(stem + ".idx")
	if err != nil {
		return nil, err
	}
	defer idx.Close()
	format := "sha1"
	if o.sha256() {
		format = "sha256"
	}
	out, err := o.own(ctx, git.Cmd{Args: []string{"show-index", "--object-format=" + format}, Stdin: idx, Limit: maxRaw})
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) >= 2 && validID(fields[1]) {
			ids = append(ids, fields[1])
		}
	}
	return ids, err
}
