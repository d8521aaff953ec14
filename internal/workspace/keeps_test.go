//go:build linux

package workspace_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"golang.org/x/sys/unix"
)

// sparse makes a file with bytes at some places and holes between them.
func (b *box) sparse(t testing.TB, name string, size int64, at ...int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for _, off := range at {
		if _, err := f.WriteAt(bytes.Repeat([]byte{byte(off>>12) | 1}, 4096), off); err != nil {
			t.Fatal(err)
		}
	}
}

func statOf(t testing.TB, path string) *syscall.Stat_t {
	t.Helper()
	st, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t)
}

// holds looks at a restored or exported tree.
func holds(t *testing.T, dir, like string) {
	t.Helper()
	for name, most := range map[string]int64{"sparse": 64 << 10, "large": 5 << 20, "hole": 0} {
		st, want := statOf(t, filepath.Join(dir, name)), statOf(t, filepath.Join(like, name))
		if st.Size != want.Size || st.Blocks*512 > most {
			t.Errorf("%s: %s has %d bytes and takes %d of disk; it had %d, %d", dir, name, st.Size, st.Blocks*512, want.Size, want.Blocks*512)
		}
	}
	skip := []string{"huge", "setid", ".kb", ".agent_data"}
	if a, b := listing(t, dir, skip...), listing(t, like, skip...); a != b {
		t.Errorf("%s:\n%s\nnot\n%s", dir, a, b)
	}
	if st, want := statOf(t, filepath.Join(dir, "huge")), statOf(t, filepath.Join(like, "huge")); st.Size != want.Size {
		t.Errorf("%s: huge has %d bytes, not %d", dir, st.Size, want.Size)
	}
	first := statOf(t, filepath.Join(dir, "one"))
	for _, name := range []string{"deep/two", "three"} {
		if st := statOf(t, filepath.Join(dir, name)); st.Ino != first.Ino {
			t.Errorf("%s: %s is another file than one", dir, name)
		}
	}
	if statOf(t, filepath.Join(dir, "alike")).Ino == first.Ino {
		t.Errorf("%s: two files became one", dir)
	}
	for _, name := range []string{"deep", "deep/er", ".kb"} {
		if name == ".kb" && dir == like {
			continue
		}
		st, want := statOf(t, filepath.Join(dir, name)), statOf(t, filepath.Join(like, name))
		if st.Mtim != want.Mtim {
			t.Errorf("%s: %s is of %v, it was of %v", dir, name, st.Mtim, want.Mtim)
		}
	}
	for _, name := range []string{"one", "deep"} {
		var value [100]byte
		if n, err := unix.Getxattr(filepath.Join(dir, name), "user.origin", value[:]); err != nil || string(value[:n]) != "from\x00"+name {
			t.Errorf("%s: attribute of %s: %q, %v", dir, name, value[:max(n, 0)], err)
		}
	}
	if st := statOf(t, filepath.Join(dir, "setid")); st.Mode&0o6000 != 0 {
		t.Errorf("%s: set-id is %o", dir, st.Mode)
	}
}

// keepsTree has all that a plain copy loses.
func keepsTree(t *testing.T, b *box) {
	b.sparse(t, "sparse", 1<<20, 0, 512<<10)
	b.sparse(t, "large", 64<<20, func() (at []int64) {
		for off := int64(0); off < 4<<20; off += 4096 {
			at = append(at, off+16<<20)
		}
		return append(at, 48<<20)
	}()...)
	b.sparse(t, "hole", 16<<20)
	b.sparse(t, "huge", 8<<40, 7<<40) // nobody reads all of it
	b.put(t, "one", "many names")
	b.put(t, "alike", "many names")
	b.put(t, "deep/er/file", "x")
	for _, name := range []string{"deep/two", "three"} {
		if err := os.Link(filepath.Join(b.dir, "one"), filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.put(t, "setid", "x")
	if err := os.Chmod(filepath.Join(b.dir, "setid"), os.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "deep"} {
		err := unix.Setxattr(filepath.Join(b.dir, name), "user.origin", []byte("from\x00"+name), 0)
		lab.Need(t, "extended attributes", err)
	}
	for i, name := range []string{"deep/er", "deep", ".kb"} {
		at := time.Unix(1_500_000_000+int64(i), 123456789)
		if err := os.Chtimes(filepath.Join(b.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// Holes, hard links, times of directories and attributes come back.
func TestWhatAPlainCopyLoses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	r.restore(b)
	keepsTree(t, b)
	for _, stopped := range []bool{false, true} {
		target := b.target
		if stopped {
			target = b.stopped()
		}
		id, err := r.manager.Sync(t.Context(), target, "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.manager.Verify(t.Context(), b.stopped(), id); err != nil {
			t.Error(err)
		}
		if again := r.sync(b); again != id {
			t.Errorf("stopped %v: nothing changed and there is another snapshot", stopped)
		}
		out := r.box(thread)
		r.restore(out)
		holds(t, out.dir, b.dir)
		if again, err := r.manager.Sync(t.Context(), out.target, "test"); err != nil || again != id {
			t.Errorf("stopped %v: a restored tree is another: %v, %v", stopped, again != id, err)
		}
		to := filepath.Join(t.TempDir(), "out")
		if _, x, err := r.manager.ExportDir(t.Context(), thread, to, false); err != nil || len(x.Skipped) > 0 {
			t.Fatal(x.Skipped, err)
		}
		holds(t, to, b.dir)
		// A change after a hole, and one name less.
		b.sparse(t, "sparse", 1<<20, 4096, 512<<10)
		if err := os.Remove(filepath.Join(b.dir, "one")); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(b.dir, "three"), filepath.Join(b.dir, "one")); err != nil {
			t.Fatal(err)
		}
	}
}

// A file of very many holes keeps the largest.
func TestManyHoles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	var at []int64
	for i := range int64(3000) {
		at = append(at, i*8192)
	}
	b.sparse(t, "many", 64<<20, at...)
	r.sync(b)
	out := r.box(thread)
	r.restore(out)
	st := statOf(t, filepath.Join(out.dir, "many"))
	if st.Size != 64<<20 || st.Blocks*512 > 40<<20 {
		t.Errorf("%d bytes, %d of disk", st.Size, st.Blocks*512)
	}
	have, err := os.ReadFile(filepath.Join(out.dir, "many"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(b.dir, "many"))
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("other bytes: %v", err)
	}
}

// What very many files say alike does not make a tree that nobody reads again.
func TestATreeThatShrinksTooWell(t *testing.T) {
	tree := &workspace.Tree{}
	attrs := []beneath.Attr{{Name: "v", Value: make([]byte, 15<<10)}}
	for i := range 1000 {
		tree.Entries = append(tree.Entries, workspace.Entry{Path: fmt.Sprintf("file-%04d", i), Kind: beneath.File, Attrs: attrs})
	}
	data, _, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := workspace.DecodeTree(data); err != nil || len(got.Entries) != 1000 || len(got.Entries[999].Attrs[0].Value) != 15<<10 {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}
